//! Takes `[log]`; gives the process its log. Installed once, by the binary; no library does.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::Mutex;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format as Form, Json, JsonFields, Writer};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt as lines};

use crate::config::{Format, Log, Output};
use crate::failure::Failure;
use crate::version;

pub(crate) fn install(log: &Log) -> Result<(), Failure> {
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
    let subscriber = Registry::default().with(layer).with(log.level.targets());
    subscriber.try_init().map_err(|error| Failure::because("cannot set up the log", error))
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
