//! Takes a filter and the file of a document; says whether they match, as a server would judge it. Needs
//! neither a server nor a configuration.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use flare_core::filter::try_filter;
use flare_core::model::Filter;

use crate::cli::say;
use crate::failure::Failure;

/// What is tried on what.
#[derive(Debug, Args)]
pub(crate) struct FilterQuestion {
    /// The filter, such as `document.total > 100 && params.shop == 'bern'`.
    #[arg(value_name = "EXPR")]
    filter: String,
    /// The file of a document in JSON; - reads standard input.
    #[arg(value_name = "FILE")]
    document: PathBuf,
    /// A wildcard value of the document's URL; may be repeated.
    #[arg(short, long, value_name = "NAME=VALUE")]
    param: Vec<String>,
}

/// Says `true` or `false`; one that fails on the document fails here too.
pub(crate) fn ask(question: &FilterQuestion) -> Result<(), Failure> {
    let mut params = Vec::with_capacity(question.param.len());
    for pair in &question.param {
        let usage = || Failure::usage(format!("--param {pair}: must be NAME=VALUE"));
        params.push(pair.split_once('=').ok_or_else(usage)?);
    }
    let refused = |invalid: flare_core::model::Invalid| Failure::usage(invalid.to_string());
    let filter = Filter::new(question.filter.as_str());
    let filter = filter.map_err(|invalid| refused(invalid.within("filter")))?;
    let document = read(&question.document)?;
    let tried = try_filter(&filter, &document, params).map_err(refused)?;
    match tried.error {
        None => say(&format!("{}\n", tried.matches)),
        Some(error) => {
            return Err(Failure::new(format!("no match: the filter fails on it: {error}")));
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Failure::because(format!("cannot read {}", file.display()), error))
}
