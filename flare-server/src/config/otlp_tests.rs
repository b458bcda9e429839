//! `[otlp]`: what is taken, what is refused, and that what a collector is told of ours stays between us.

#[cfg(feature = "otlp")]
use std::time::Duration;

use super::{Config, ConfigError, Layers};

fn from_file(text: &str) -> Result<Config, ConfigError> {
    Layers::new()?.text("flare.toml", text)?.finish()
}

const ENDPOINT: &str = "otlp.endpoint = \"http://127.0.0.1:4318\"";

#[test]
fn without_an_endpoint_the_rest_of_the_table_is_refused() {
    let refused = from_file("otlp.service = \"orders\"").unwrap_err().to_string();
    assert!(refused.contains("otlp.endpoint is empty"), "{refused}");
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_program_that_was_built_without_it_refuses_it() {
    let refused = from_file(ENDPOINT).unwrap_err();
    assert_eq!(refused.key(), "otlp.endpoint");
    assert!(refused.to_string().contains("--features otlp"), "{refused}");
}

#[cfg(feature = "otlp")]
#[test]
fn what_is_wrong_is_refused_by_its_key() {
    for (line, key, said) in [
        ("otlp.endpoint = \"127.0.0.1:4318\"", "otlp.endpoint", "begins with \"http://\""),
        ("otlp.endpoint = \"http://ada:hush@c\"", "otlp.endpoint", "otlp.headers"),
        ("otlp.service = \" \"", "otlp.service", "must name"),
        ("otlp.interval = \"10ms\"", "otlp.interval", "1s"),
        ("otlp.sample = 101", "otlp.sample", "100"),
        ("otlp.signals = []", "otlp.signals", "\"traces\", \"metrics\""),
        ("otlp.headers = [\"authorization=hush\"]", "otlp.headers[0]", "name: value"),
        ("otlp.headers = [\"a: b\", \"no name: hush\"]", "otlp.headers[1]", "name: value"),
    ] {
        let table = if line.starts_with("otlp.endpoint") { "" } else { ENDPOINT };
        let refused = from_file(&format!("{table}\n{line}")).unwrap_err();
        assert_eq!(refused.key(), key, "{line}");
        let text = refused.to_string();
        assert!(text.contains(said) && !text.contains("hush"), "{line}: {text}");
    }
}

#[cfg(feature = "otlp")]
#[test]
fn headers_are_kept_and_never_shown() {
    let text = format!("{ENDPOINT}\notlp.headers = [\"authorization: Bearer hush\"]");
    let config = from_file(&text).unwrap();
    let header = &config.otlp.headers[0];
    assert_eq!(header.parts(), Some(("authorization", "Bearer hush")));
    let shown = format!("{config:?}{}", toml::to_string(&config).unwrap());
    assert!(!shown.contains("hush"), "{shown}");
}

#[cfg(feature = "otlp")]
#[test]
fn what_the_readme_says_of_it_is_accepted() {
    let readme = include_str!("../../README.md");
    let section = readme.split_once("## Watching it").unwrap().1.split("\n## ").next().unwrap();
    let table = section.split_once("```toml\n").unwrap().1.split("```").next().unwrap();
    let config = from_file(table).unwrap();
    assert_eq!(config.otlp.interval, Duration::from_secs(30));
    assert!(config.otlp.sends(super::Signal::Traces) && config.otlp.sends(super::Signal::Metrics));
}
