//! Takes the address of a running server and a time; gives what that server was at meanwhile, in a file.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use reqwest::Url;
use serde_json::Value;

use crate::cli::say;
use crate::client;
use crate::failure::{Chain, Failure};
use crate::status::text;

/// What the server may take beyond the profile's own time.
const MARGIN: Duration = Duration::from_secs(30);

/// Whom to profile, and for how long.
#[derive(Debug, Args)]
pub(crate) struct ProfileOptions {
    /// Write it there; a file that is there is replaced.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The server, with the path it is mounted under if any.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// A bearer token of the scope admin.
    #[arg(long, env = "FLARE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// For so long.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// A flame graph to look at, or a file for pprof's tools.
    #[arg(long, value_enum, default_value_t = Form::Svg)]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Svg,
    Pprof,
}

pub(crate) fn take(options: &ProfileOptions) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start", error))?;
    let profile = runtime.block_on(ask(options))?;
    let shown = options.file.display();
    std::fs::write(&options.file, profile)
        .map_err(|error| Failure::because(format!("cannot write {shown}"), error))?;
    say(&format!("{shown}\n"));
    Ok(())
}

async fn ask(options: &ProfileOptions) -> Result<Vec<u8>, Failure> {
    let ProfileOptions { seconds, format, token, .. } = options;
    let form = match format {
        Form::Svg => "svg",
        Form::Pprof => "pprof",
    };
    let base = options.url.as_str().trim_end_matches('/');
    let url = format!("{base}/debug/profile?seconds={seconds}&format={form}");
    let mut request = client::new(Duration::from_secs(*seconds) + MARGIN)?.get(&url);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await.map_err(|error| {
        Failure::new(format!("no answer from {base}: {}", Chain(&error.without_url())))
    })?;
    let code = answer.status();
    let body = answer.bytes().await;
    let body = body.map_err(|error| Failure::because(format!("no answer from {url}"), error))?;
    if code.is_success() {
        return Ok(body.into());
    }
    let value = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let error = &value["error"];
    let said = [&error["title"], &error["detail"]].map(text).join(": ");
    let help = match code.as_u16() {
        401 | 403 => " (give a token with the scope admin, by --token or FLARE_TOKEN)",
        404 => " (is the server built with the feature profile?)",
        _ => "",
    };
    Err(Failure::new(format!("{base} answers {} {said}{help}", code.as_u16())))
}
