//! Takes the address of a running server; gives how it, its cluster and its subscriptions are, as
//! a table. Knows the REST interface only: it works on any server it can reach.

use std::time::Duration;

use clap::Args;
use flare_core::model::duration::parse_duration;
use flare_core::model::{Invalid, SummaryOrder};
use reqwest::{Client, Url};
use serde_json::Value;

use crate::cli::say;
use crate::client;
use crate::failure::{Chain, Failure};
use crate::table::Table;
use crate::watch::watch;

/// Per request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Entries of a page, as many as the server gives at a time.
const PAGE: usize = 1_000;

/// Whom to ask.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// The server, with the path it is mounted under if any.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// A bearer token that may read.
    #[arg(long, env = "FLARE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Which subscriptions are shown first while watching: those with the greatest lag, the oldest pending change, most
    /// failures in a row or the highest rate.
    #[arg(long, default_value = "lag", value_name = "ORDER", requires = "watch", value_parser = order)]
    order: SummaryOrder,
    /// Show at most this many subscriptions.
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
    /// Show node, cluster, slots and the subscriptions, those first that are furthest behind, again and again until
    /// ctrl-c.
    #[arg(long)]
    watch: bool,
    /// How long to wait in between, as 500ms or 2s.
    #[arg(long, default_value = "1s", value_name = "TIME", requires = "watch", value_parser = interval)]
    interval: Duration,
}

fn order(text: &str) -> Result<SummaryOrder, String> {
    text.parse().map_err(|invalid: Invalid| invalid.reason().to_owned())
}

/// Without a pause, asking would be all that the server is busy with.
fn interval(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|invalid| invalid.reason().to_owned())?;
    let allowed = Duration::from_millis(10)..=Duration::from_hours(1);
    if allowed.contains(&time) { Ok(time) } else { Err("must be from 10ms to 1h".to_owned()) }
}

pub(crate) fn ask(question: &Question) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start", error))?;
    let server = Server { client: client::new(TIMEOUT)?, question };
    if question.watch {
        return runtime.block_on(watch(&server, question.interval));
    }
    say(&runtime.block_on(server.describe())?);
    Ok(())
}

/// A server that can be asked.
pub(crate) struct Server<'a> {
    client: Client,
    question: &'a Question,
}

impl Server<'_> {
    async fn describe(&self) -> Result<String, Failure> {
        let (about, _) = self.about().await?;
        let (subscriptions, left_out) = self.subscriptions().await?;
        let more = match left_out {
            0 => String::new(),
            n => format!("and {n} more; --limit shows more than {}\n", self.question.limit),
        };
        Ok(format!("{about}\n{subscriptions}{more}"))
    }

    /// How the node and its cluster are, a fact in a row; and the cluster's health.
    pub(crate) async fn about(&self) -> Result<(Table, Value), Failure> {
        let status = self.get("status").await?;
        let health = self.get("cluster/health").await?;
        let mut about = Table::default();
        about.row(["server", self.question.url.as_str()]);
        for (name, value) in flat(&status) {
            about.row([name, value]);
        }
        for (name, value) in flat(&health) {
            about.row([format!("cluster {name}"), value]);
        }
        Ok((about, health))
    }

    async fn subscriptions(&self) -> Result<(Table, usize), Failure> {
        const FIGURES: [&str; 7] =
            ["status", "lag", "spreading", "inFlight", "delivered", "failed", "discarded"];
        let mut table = Table::default();
        let heads = FIGURES.map(|name| name.to_uppercase());
        let heads = ["RESOURCE".to_owned(), "SUBSCRIPTION".to_owned()].into_iter().chain(heads);
        table.row(heads.chain(["LAST ERROR".to_owned()]));
        let (mut shown, mut left_out) = (0, 0);
        for resource in self.list("resources", "resources").await? {
            let path = format!("resources/{}/subscriptions", text(&resource["id"]));
            for subscription in self.list(&path, "subscriptions").await? {
                if shown == self.question.limit {
                    left_out += 1;
                    continue;
                }
                shown += 1;
                let id = text(&subscription["id"]);
                let status = self.get(&format!("{path}/{id}/status")).await?;
                let figures = FIGURES.map(|name| text(&status[name]));
                let start = [text(&resource["endpoint"]), id];
                table.row(start.into_iter().chain(figures).chain([text(&status["lastError"])]));
            }
        }
        Ok((table, left_out))
    }

    /// The subscriptions of all resources, those first that were asked for, and all of them together.
    pub(crate) async fn worst(&self) -> Result<(Vec<Value>, Value), Failure> {
        let Question { order, limit, .. } = self.question;
        let (mut worst, mut totals) = (Vec::new(), Value::Null);
        while worst.len() < *limit {
            let most = PAGE.min(limit - worst.len());
            let path = format!("subscriptions?order={order}&limit={most}&offset={}", worst.len());
            let mut page = self.get(&path).await?;
            totals = page["totals"].take();
            let Value::Array(entries) = page["subscriptions"].take() else { break };
            let last = entries.len() < most;
            worst.extend(entries);
            if last {
                break;
            }
        }
        Ok((worst, totals))
    }

    /// All entries of a list, page by page.
    pub(crate) async fn list(&self, path: &str, name: &str) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        loop {
            let page = self.get(&format!("{path}?limit={PAGE}&offset={}", all.len())).await?;
            let entries = page[name].as_array().cloned().unwrap_or_default();
            let last = entries.len() < PAGE;
            all.extend(entries);
            if last {
                return Ok(all);
            }
        }
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        let base = self.question.url.as_str().trim_end_matches('/');
        let url = format!("{base}/{path}");
        let mut request = self.client.get(&url);
        if let Some(token) = &self.question.token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.map_err(|error| {
            let help =
                if error.is_connect() { " (is it running? --url names another)" } else { "" };
            Failure::new(format!("no answer from {base}{help}: {}", Chain(&error.without_url())))
        })?;
        let code = answer.status();
        let body = answer.bytes().await;
        let body =
            body.map_err(|error| Failure::because(format!("no answer from {url}"), error))?;
        let value = serde_json::from_slice::<Value>(&body);
        if !code.is_success() {
            let title = value.map(|value| text(&value["error"]["title"])).unwrap_or_default();
            let help = if code.as_u16() == 401 || code.as_u16() == 403 {
                ": give a token with the scope read, by --token or FLARE_TOKEN"
            } else {
                ""
            };
            return Err(Failure::new(format!("{url} answers {} {title}{help}", code.as_u16())));
        }
        value.map_err(|error| Failure::because(format!("{url} is no Flare server"), error))
    }
}

/// The values of an object that fit in a line, by name.
fn flat(value: &Value) -> Vec<(String, String)> {
    let fields = value.as_object().into_iter().flatten();
    let simple = fields.filter(|(_, value)| !value.is_object() && !value.is_array());
    simple.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// A value as a cell of a table.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(_) => match &value["message"] {
            Value::String(text) => text.clone(),
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}
