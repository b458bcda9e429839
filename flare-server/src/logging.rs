//! Takes `[log]`; gives the process its log. Installed once, by the binary; no library does.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::Mutex;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::{Format as Form, Json, JsonFields, Writer};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt as lines};

use crate::config::{Format, Log, Output};
use crate::failure::Failure;
use crate::otlp::Telemetry;
use crate::version;

/// Spans go to a collector, too, if there is one, whatever the level of the log.
pub(crate) fn install(log: &Log, telemetry: Option<&Telemetry>) -> Result<(), Failure> {
    let (writer, terminal) = writer(&log.output)?;
    // A log that cannot be written must not end the server, nor say so on a broken stream.
    let layer = lines::layer().with_writer(writer).log_internal_errors(false);
    let layer: Box<dyn Layer<_> + Send + Sync> = match log.format {
        Format::Human => layer.with_ansi(terminal).boxed(),
        Format::Json => layer
            .with_ansi(false)
            .fmt_fields(JsonFields::new())
            .event_format(WithCommit(lines::format().json().flatten_event(true)))
            .boxed(),
    };
    let installed = match telemetry.and_then(Telemetry::spans) {
        None => Registry::default().with(layer).with(log.level.targets()).try_init(),
        Some(spans) => {
            let layer = layer.with_filter(log.level.targets());
            // A put's own span is for whoever debugs, in the log; and what others' crates say of
            // themselves is not ours to send.
            let sent = filter_fn(|it| match it.is_span() {
                true => it.target().starts_with("flare") && *it.level() <= Level::DEBUG,
                false => *it.level() <= Level::WARN,
            });
            let spans = spans.with_filter(sent.with_max_level_hint(LevelFilter::DEBUG));
            Registry::default().with(layer).with(spans).try_init()
        }
    };
    installed.map_err(|error| Failure::because("cannot set up the log", error))
}

fn writer(output: &Output) -> Result<(BoxMakeWriter, bool), Failure> {
    Ok(match output {
        Output::Stderr => (BoxMakeWriter::new(io::stderr), io::stderr().is_terminal()),
        Output::Stdout => (BoxMakeWriter::new(io::stdout), io::stdout().is_terminal()),
        Output::File(path) => {
            let opened = File::options().create(true).append(true).open(path);
            let file = opened.map_err(|error| {
                let path = path.display();
                Failure::because(
                    format!("cannot write the log to {path} (log.output); choose a file in a folder that exists and this user may write to"),
                    error,
                )
            })?;
            (BoxMakeWriter::new(Mutex::new(file)), false)
        }
    })
}

/// JSON lines that begin with the commit, so that lines of several versions can be told apart.
struct WithCommit(Form<Json>);

impl<S, N> FormatEvent<S, N> for WithCommit
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let rest = line.strip_prefix('{').unwrap_or(&line);
        write!(writer, "{{\"commit\":\"{}\",{rest}", version::COMMIT)
    }
}
