//! Connections have names of the operator's own: each is read from a file, the environment and flags, refused by the
//! key that is wrong in it, and shown without its secrets.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::*;

fn from_file(text: &str) -> Result<Config, ConfigError> {
    Layers::new()?.text("flare.toml", text)?.finish()
}

fn from_environment(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Layers::new()?.text("flare.toml", text)?.environment(variables)?.finish()
}

const MAIN: &str = "[connections.main]\nuri = \"amqps://flare:hush-1@mq.example.com/orders\"\n";

#[test]
fn there_are_as_many_as_are_named() {
    assert!(from_file("").unwrap().connections.is_empty());
    let config = from_file(&format!(
        "{MAIN}ca-file = \"/etc/flare/mq.pem\"\ntimeout = \"5s\"\n\
         [connections.shop-2]\nuri = \"amqp://127.0.0.1\"\npassword = \"hush-2\""
    ));
    let config = config.unwrap();
    assert_eq!(config.connections.keys().collect::<Vec<_>>(), ["main", "shop-2"]);
    let (main, shop) = (&config.connections["main"], &config.connections["shop-2"]);
    assert_eq!(
        (main.ca_file.as_str(), main.timeout),
        ("/etc/flare/mq.pem", Duration::from_secs(5))
    );
    assert_eq!(shop.uri.expose_secret(), "amqp://127.0.0.1");
    assert_eq!((shop.timeout.as_secs(), shop.heartbeat.as_secs()), (10, 20), "the defaults");
}

#[test]
fn no_secret_of_theirs_is_shown() {
    let config = from_file(&format!("{MAIN}password = \"hush-2\"")).unwrap();
    let shown = config.to_toml().unwrap();
    let lines = ["[connections.main]", "amqps://flare:***@mq.example.com/orders", "\"***\""];
    assert!(lines.iter().all(|line| shown.contains(line)), "{shown}");
    assert!(!format!("{shown}{config:?}").contains("hush"));
}

#[test]
fn each_wrong_value_names_its_key_and_what_is_allowed() {
    for (key, value, says) in [
        ("uri", "\"\"", "must begin with \"amqp://\" or \"amqps://\""),
        ("uri", "\"http://ada:hush@mq\"", "\"amqps://\""),
        ("uri", "\"ada:hush@mq\"", "\"amqps://\""),
        ("uri", "\"amqp://ada:hush@mq:port\"", "is no amqp:// or amqps:// address"),
        ("uri", "\"amqps://ada:hush@mq:port\"", "is no amqp:// or amqps:// address"),
        ("uri", "\"amqps://ada:hush@mq?heartbeat=3\"", "connections.main.heartbeat says it"),
        ("uri", "\"amqp://mq?connection_timeout=3\"", "connections.main.timeout says it"),
        ("uri", "7", "a text in quotes"),
        ("password", "7", "a text in quotes"),
        ("ca-file", "true", "a text in quotes"),
        ("timeout", "\"0s\"", "from 1ms to 1h (flare.toml says \"0s\")"),
        ("timeout", "10", "\"500ms\""),
        ("heartbeat", "\"500ms\"", "from 1s to 1h"),
    ] {
        let uri = if key == "uri" { "" } else { MAIN.split_once('\n').unwrap().1 };
        let refused = from_file(&format!("[connections.main]\n{uri}{key} = {value}")).err();
        let refused = refused.unwrap_or_else(|| panic!("{key} = {value} is accepted"));
        assert_eq!(refused.key(), format!("connections.main.{key}"), "{refused}");
        let message = refused.to_string();
        assert!(message.contains(says) && message.contains("flare.toml"), "{message}");
        assert!(!message.contains("hush"), "{message}");
    }
    let keys = toml::Table::try_from(BrokerConnection::default()).unwrap();
    assert_eq!(keys.len(), 5, "each is tried");
}

#[test]
fn what_says_nothing_of_a_connection_is_refused() {
    for (text, key, says) in [
        ("[connections.main]", "connections.main.uri", "\"amqp://\""),
        (
            "[connections.main]\nurl = \"hush\"",
            "connections.main.url",
            "mean connections.main.uri?",
        ),
        (
            "[connections.main]\nxyzzy = \"hush\"",
            "connections.main.xyzzy",
            "has ca-file, heartbeat",
        ),
        ("[connections]\nuri = \"amqp://a:hush@mq\"", "connections.uri", "takes no value"),
        ("connections.main = \"amqp://a:hush@mq\"", "connections.main", "takes no value"),
        ("[connections.Main]\nuri = \"hush\"", "connections.Main", "of a-z 0-9"),
        ("[connections.a--b]\nuri = \"hush\"", "connections.a--b", "single -"),
        ("[connections.\"\"]\nuri = \"hush\"", "connections.", "1 to 64"),
        ("[connections.main.tls]\nca = \"hush\"", "connections.main.tls", "is no key"),
        ("[connection.main]\nuri = \"hush\"", "connection", "mean connections?"),
        (
            "[connections.main]\nuri = \"amqp://mq\"\nca-file = \"ca.pem\"",
            "connections.main.ca-file",
            "has no effect",
        ),
    ] {
        let refused = from_file(text).unwrap_err();
        assert_eq!(refused.key(), key, "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
        assert!(!refused.to_string().contains("hush"), "{refused}");
    }
}

#[test]
fn each_key_can_be_set_from_the_environment_and_by_a_flag() {
    let variables = [
        ("FLARE_CONNECTIONS__SHOP_2__URI", "amqps://flare@mq"),
        ("FLARE_CONNECTIONS__SHOP_2__PASSWORD", "12345"),
        ("FLARE_CONNECTIONS__SHOP_2__CA_FILE", "ca.pem"),
        ("FLARE_CONNECTIONS__MAIN__TIMEOUT", "3s"),
        ("FLARE_CONNECTIONS__MAIN__HEARTBEAT", "7s"),
    ];
    let config = from_environment(MAIN, &variables).unwrap();
    let (main, shop) = (&config.connections["main"], &config.connections["shop-2"]);
    assert_eq!((main.timeout.as_secs(), main.heartbeat.as_secs()), (3, 7));
    assert!(main.uri.expose_secret().contains("hush-1"), "what the file says stays");
    assert_eq!((shop.password.expose_secret(), shop.ca_file.as_str()), ("12345", "ca.pem"));

    let flag = |path, value| Layers::new()?.flag("--set", path, value)?.finish();
    let config = flag("connections.main.uri", "amqp://mq").unwrap();
    assert_eq!(config.connections["main"].uri.expose_secret(), "amqp://mq");
    let refused = flag("connections.main.urii", "amqp://a:hush@mq").unwrap_err().to_string();
    assert!(
        refused.contains("mean connections.main.uri?") && !refused.contains("hush"),
        "{refused}"
    );
}

#[test]
fn a_variable_with_a_slip_is_refused_and_makes_no_connection() {
    for (variable, says) in [
        ("FLARE_CONNECTIONS__MAIN__PASWORD", "mean FLARE_CONNECTIONS__MAIN__PASSWORD?"),
        ("FLARE_CONNECTIONS_MAIN_URI", "names no key"),
        ("FLARE_CONNECTIONS__MAIN", "names no key"),
        ("FLARE_CONNECTIONS__MIAN__PASSWORD", "connections.mian.uri must begin with"),
    ] {
        let refused = from_environment(MAIN, &[(variable, "hush")]).unwrap_err().to_string();
        assert!(refused.contains(variable) && refused.contains(says), "{refused}");
        assert!(!refused.contains("hush"), "{refused}");
    }
}

#[test]
fn what_the_readme_says_of_brokers_is_accepted() {
    let readme = include_str!("../../README.md");
    let section = readme.split_once("## Documents from brokers").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let text = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = from_file(text).unwrap();
    assert!(config.connections.contains_key("main") && !config.consumers.aws.region.is_empty());
}

#[test]
fn what_the_sample_offers_of_a_connection_is_every_key_with_its_default() {
    let sample = include_str!("../../flare.sample.toml");
    let offered: Vec<_> = sample.lines().filter_map(|line| line.strip_prefix("#> ")).collect();
    let from = offered.iter().position(|line| *line == "[connections.main]").unwrap();
    let table: toml::Table = offered[from..].join("\n").parse().unwrap();
    let mut said = table["connections"]["main"].as_table().unwrap().clone();
    let mut defaults = toml::Table::try_from(BrokerConnection::default()).unwrap();
    assert!(said.remove("uri").is_some() && defaults.remove("uri").is_some());
    assert_eq!(said, defaults);
}
