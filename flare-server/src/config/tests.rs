//! Each wrong value names its key; each layer beats the one below; the sample is the defaults.

use flare_backend_mongo::{MongoConfig as Mongo, Reads, Writes};
use flare_core::port::Part;
use secrecy::ExposeSecret;

use super::*;

fn from_file(text: &str) -> Result<Config, ConfigError> {
    Layers::new()?.text("flare.toml", text)?.finish()
}

fn from_environment(variable: &str, value: &str) -> Result<Config, ConfigError> {
    Layers::new()?.environment([(variable.to_owned(), value.to_owned())])?.finish()
}

/// A key, a wrong value as TOML, and what the refusal has to say.
const WRONG: [(&str, &str, &str); 141] = [
    ("http.server.addr", "\"localhost\"", "\"127.0.0.1:8080\""),
    ("http.server.addr", "8080", "\"127.0.0.1:8080\""),
    ("http.server.timeout", "30", "\"500ms\""),
    ("http.server.timeout", "\"0s\"", "from 1ms to 1h"),
    ("http.server.timeout", "\"1h30m\"", "says \"1h30m\""),
    ("http.server.body-limit", "\"1MB\"", "\"1MiB\""),
    ("http.server.body-limit", "-1", "number of bytes"),
    ("http.server.body-limit", "\"2GiB\"", "from 1KiB to 1GiB"),
    ("http.server.bodies-limit", "\"64MB\"", "\"1MiB\""),
    ("http.server.bodies-limit", "0", "from 1KiB to"),
    ("delivery.content-limit", "1", "from 1KiB to"),
    ("http.server.default-limit", "0", "from 1 to 1000"),
    ("http.server.default-limit", "1001", "from 1 to 1000"),
    ("http.server.default-limit", "\"many\"", "a whole number"),
    ("http.server.default-limit", "-3", "a whole number"),
    ("http.server.connection-limit", "0", "from 1 to"),
    ("http.server.header-timeout", "true", "\"500ms\""),
    ("http.server.header-limit", "\"1KiB\"", "from 8KiB to 1MiB"),
    ("http.auth.tokens", "\"secret-word\"", "must be"),
    ("http.auth.tokens[0].token", "[{ token = \"\", scope = \"read\" }]", "at least 16"),
    (
        "http.auth.tokens[0].token",
        "[{ token = \"secret word and more\", scope = \"read\" }]",
        "spaces",
    ),
    ("http.auth.tokens[0]", "[{ token = \"secret-word\" }]", "needs \"scope\""),
    (
        "http.auth.tokens[0].name",
        "[{ name = \"two\\nlines\", token = \"secret-word-of-ours\", scope = \"read\" }]",
        "can be shown",
    ),
    ("http.auth.tokens[0].scopes", "[{ token = \"secret-word\", scopes = \"read\" }]", "\"scope\""),
    ("http.auth.tokens[0].scope", "[{ token = \"secret-word\", scope = \"root\" }]", "\"admin\""),
    ("repository.engine", "\"postgres\"", "\"sqlite\", \"memory\", \"mongodb\", \"postgresql\""),
    ("repository.sqlite.path", "\"..\"", "the path of a file"),
    ("repository.sqlite.timeout", "\"0s\"", "from 1ms to 1h"),
    ("repository.tombstone-retention", "\"7d\"", "\"72h\""),
    ("repository.dead-letter-retention", "\"0s\"", "from 1s"),
    ("repository.audit-retention", "\"0s\"", "from 1s"),
    ("repository.audit-limit", "-1", "must be"),
    ("repository.memory.max-bytes", "\"1KiB\"", "from 1MiB"),
    ("queue.engine", "\"kafka\"", "\"memory\", \"mongodb\", \"postgresql\", \"sqs\""),
    ("queue.sqs.endpoint", "\"127.0.0.1:4566\"", "\"http://\""),
    ("queue.sqs.region", "\"Frankfurt am Main\"", "\"eu-central-1\""),
    ("queue.sqs.key", "\"AKIA\"", "needs queue.sqs.secret"),
    ("queue.sqs.secret", "\"secret\"", "needs queue.sqs.key"),
    ("queue.sqs.assume-role", "\"admin\"", "\"arn:aws:iam::"),
    ("queue.sqs.prefix", "\"my.orders\"", "1 to 32"),
    ("queue.sqs.placement", "\"alone\"", "must be \"shared\" or \"isolated\""),
    ("queue.sqs.slots", "0", "from 1 to 256"),
    ("queue.sqs.fifo", "\"yes\"", "true or false"),
    ("queue.sqs.message-limit", "\"2MiB\"", "from 1KiB to 1MiB"),
    ("queue.sqs.timeout", "\"10ms\"", "from 1s to 1h"),
    ("lease.engine", "\"zookeeper\"", "\"memory\", \"mongodb\", \"postgresql\", \"etcd\""),
    ("lease.etcd.endpoints", "\"http://etcd:2379\"", "a list in brackets"),
    ("lease.etcd.endpoints", "[\"etcd:2379\"]", "\"http://\""),
    ("lease.etcd.endpoints", "[]", "at least one"),
    ("lease.etcd.endpoints", "[\"http://a:2379\", \"https://b:2379\"]", "all https://"),
    ("lease.etcd.endpoints", "[\"http://ada:secret@etcd:2379\"]", "lease.etcd.username"),
    ("lease.etcd.ttl", "\"1s\"", "from 2s to 10m"),
    ("lease.etcd.prefix", "\"flare\"", "end with /"),
    ("lease.etcd.username", "\"ada\"", "needs lease.etcd.password"),
    ("lease.etcd.password", "\"secret\"", "needs lease.etcd.username"),
    ("lease.etcd.ca-file", "\"ca.pem\"", "are http://"),
    ("lease.etcd.cert-file", "\"cert.pem\"", "needs lease.etcd.key-file"),
    ("lease.etcd.key-file", "\"key.pem\"", "needs lease.etcd.cert-file"),
    ("lease.etcd.domain", "\"etcd\"", "are http://"),
    ("lease.etcd.timeout", "\"0s\"", "from 10ms to 1m"),
    ("lease.etcd.timeout", "\"8s\"", "half of lease.etcd.ttl, 7500ms"),
    ("cluster.enable", "\"yes\"", "true or false"),
    ("cluster.enable", "false", "is always true"),
    ("cluster.exclusive", "\"yes\"", "true or false"),
    ("cluster.name", "7", "a text in quotes"),
    ("cluster.roles", "\"work\"", "a list in brackets"),
    ("cluster.roles", "[]", "at least one"),
    ("cluster.roles[1]", "[\"work\", \"rule\"]", "\"lead\", \"work\", \"ingest\""),
    ("cluster.weight", "1000001", "from 0 to 1000000"),
    ("cluster.shed-load", "\"yes\"", "true or false"),
    ("cluster.pinned-slots", "1025", "from 0 to 1024"),
    ("repository.mongodb.uri", "\"localhost:27017\"", "\"mongodb://\""),
    ("repository.mongodb.uri", "\"ada:secret@db\"", "\"mongodb+srv://\""),
    ("repository.mongodb.database", "\"my.orders\"", "63 bytes"),
    ("repository.mongodb.username", "\"ada\"", "needs repository.mongodb.password"),
    ("repository.mongodb.password", "\"secret\"", "needs repository.mongodb.username"),
    ("repository.mongodb.replica-set", "7", "a text in quotes"),
    ("repository.mongodb.pool-limit", "-1", "a whole number"),
    ("repository.mongodb.timeout", "\"0s\"", "from 1ms to 1h"),
    ("repository.mongodb.writes", "0", "\"majority\" or a number of members"),
    ("repository.mongodb.reads", "\"nearest\"", "\"majority\", \"local\""),
    ("repository.mongodb.poll-every", "\"2m\"", "from 1ms to 1m"),
    ("repository.postgresql.uri", "\"ada:secret@db\"", "\"postgresql://\""),
    ("repository.postgresql.password", "7", "a text in quotes"),
    ("repository.postgresql.schema", "\"Flare\"", "1 to 63 of a-z"),
    ("repository.postgresql.pool-limit", "0", "from 1 to"),
    ("repository.postgresql.timeout", "\"0s\"", "from 1ms to 1h"),
    ("repository.postgresql.poll-every", "\"2m\"", "from 1ms to 1m"),
    ("repository.postgresql.notify", "\"yes\"", "true or false"),
    ("queue.mongodb.uri", "\"localhost:27017\"", "\"mongodb://\""),
    ("queue.mongodb.uri", "\"ada:secret@db\"", "\"mongodb+srv://\""),
    ("queue.mongodb.database", "\"my.orders\"", "63 bytes"),
    ("queue.mongodb.username", "\"ada\"", "needs queue.mongodb.password"),
    ("queue.mongodb.password", "\"secret\"", "needs queue.mongodb.username"),
    ("queue.mongodb.replica-set", "7", "a text in quotes"),
    ("queue.mongodb.pool-limit", "-1", "a whole number"),
    ("queue.mongodb.timeout", "\"0s\"", "from 1ms to 1h"),
    ("queue.mongodb.writes", "0", "\"majority\" or a number of members"),
    ("queue.mongodb.reads", "\"nearest\"", "\"majority\", \"local\""),
    ("queue.mongodb.poll-every", "\"2m\"", "from 1ms to 1m"),
    ("lease.mongodb.uri", "\"localhost:27017\"", "\"mongodb://\""),
    ("lease.mongodb.uri", "\"ada:secret@db\"", "\"mongodb+srv://\""),
    ("lease.mongodb.database", "\"my.orders\"", "63 bytes"),
    ("lease.mongodb.username", "\"ada\"", "needs lease.mongodb.password"),
    ("lease.mongodb.password", "\"secret\"", "needs lease.mongodb.username"),
    ("lease.mongodb.replica-set", "7", "a text in quotes"),
    ("lease.mongodb.pool-limit", "-1", "a whole number"),
    ("lease.mongodb.timeout", "\"0s\"", "from 1ms to 1h"),
    ("lease.mongodb.writes", "0", "\"majority\" or a number of members"),
    ("lease.mongodb.reads", "\"nearest\"", "\"majority\", \"local\""),
    ("lease.mongodb.poll-every", "\"2m\"", "from 1ms to 1m"),
    ("console.enable", "\"yes\"", "true or false"),
    ("consumers.aws.region", "\"Frankfurt am Main\"", "\"eu-central-1\""),
    ("consumers.aws.endpoints", "\"http://127.0.0.1:4566\"", "a list in brackets"),
    ("consumers.aws.endpoints[1]", "[\"http://a\", \"127.0.0.1:4566\"]", "\"https://\""),
    ("consumers.aws.endpoints[1]", "[\"http://a\", \"http://a\"]", "before"),
    ("consumers.aws.timeout", "\"10ms\"", "from 1s to 1h"),
    ("delivery.timeout", "\"2h\"", "from 1ms to 1h"),
    ("delivery.concurrency", "0", "from 1 to"),
    ("delivery.concurrency", "2000", "delivery.in-flight-limit, 1024"),
    ("delivery.max-ttl", "\"1s\"", "delivery.timeout, 10s"),
    ("delivery.in-flight-limit", "0", "from 1 to"),
    ("delivery.hold-limit", "\"-1s\"", "\"500ms\""),
    ("delivery.suspend-after", "\"5s\"", "delivery.timeout, 10s"),
    ("delivery.guard.allow", "\"10.0.0.0/8\"", "a list in brackets"),
    ("delivery.guard.allow[1]", "[\"10.0.0.0/8\", \"home\"]", "a network like"),
    ("delivery.guard.deny[0]", "[\"10.0.0.0/99\"]", "10.0.0.0/99"),
    ("worker.enable", "\"yes\"", "true or false"),
    ("worker.drain-timeout", "\"2h\"", "from 0s to 1h"),
    ("worker.metered-subscriptions", "1001", "from 0 to 1000"),
    ("log.level", "\"verbose\"", "\"trace\""),
    ("log.level", "\"info,flare_core=loud\"", "\"trace\""),
    ("log.output", "\"stdrr\"", "\"stderr\""),
    ("log.format", "\"xml\"", "must be \"human\" or \"json\""),
    ("log.format", "1", ""),
    ("otlp.endpoint", "4318", "a text"),
    ("otlp.signals[0]", "[\"logs\"]", "must be \"traces\" or \"metrics\""),
    ("otlp.service", "1", "a text"),
    ("otlp.interval", "30", "\"500ms\""),
    ("otlp.sample", "\"all\"", "a whole number"),
    ("otlp.headers", "1", "a list"),
];

#[test]
fn each_wrong_value_names_its_key_and_what_is_allowed() {
    for (key, value, says) in WRONG {
        let plain = key.split('[').next().unwrap();
        let refused = from_file(&format!("{plain} = {value}")).err();
        let refused = refused.unwrap_or_else(|| panic!("{key} = {value} is accepted"));
        assert_eq!(refused.key(), key, "{refused}");
        let message = refused.to_string();
        assert!(message.starts_with(key) && message.contains(says), "{message}");
        assert!(message.contains("flare.toml"), "{message}");
        // The name of a key is none.
        let shown = message.replace("queue.sqs.secret", "");
        assert!(!shown.contains("secret") && !shown.contains('`'), "{message}");
    }
}

#[test]
fn every_key_has_a_wrong_value_in_the_table() {
    let layers = Layers::new().unwrap();
    for (key, _) in layers.variables() {
        let tried = WRONG.iter().any(|(wrong, ..)| wrong.split('[').next() == Some(key));
        assert!(tried, "{key} is not tried");
    }
}

#[test]
fn unknown_keys_are_refused_with_what_was_meant() {
    for (text, key, says) in [
        ("[http.server]\nbody-limt = 1", "http.server.body-limt", "mean http.server.body-limit?"),
        ("[http.server]\nbody_limit = 1", "http.server.body_limit", "mean http.server.body-limit?"),
        ("[worker]\nenabled = true", "worker.enabled", "mean worker.enable?"),
        ("[wroker]\nenable = true", "wroker", "mean worker?"),
        ("[http.server]\nxyzzy = 1", "http.server.xyzzy", "[http.server] has addr"),
        ("[repository.mongo]\nuri = \"secret\"", "repository.mongo", "mean repository.mongodb?"),
        (
            "[lease.mongodb]\npasword = \"secret\"",
            "lease.mongodb.pasword",
            "lease.mongodb.password?",
        ),
        ("[queue.kafka]\nsecret = \"secret\"", "queue.kafka", "[queue] has"),
        ("level = \"info\"", "level", "mean log.level?"),
        ("http = 1", "http", "is a section"),
    ] {
        let refused = from_file(text).unwrap_err();
        assert_eq!(refused.key(), key, "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_refused_by_line_and_without_quoting_it() {
    let refused = from_file("[http.auth]\n\ntokens = [{ token = \"secret-word }]\n").unwrap_err();
    assert!(refused.to_string().starts_with("flare.toml, line 3: "), "{refused}");
    assert!(!refused.to_string().contains("secret"), "{refused}");
}

#[test]
fn a_file_that_is_missing_is_refused_by_name() {
    let refused = Layers::new().unwrap().file("/nowhere/flare.toml".as_ref()).unwrap_err();
    assert!(refused.to_string().starts_with("/nowhere/flare.toml: there is no such file"));
}

#[test]
fn every_key_can_be_set_from_the_environment() {
    let defaults = toml::Table::try_from(Config::default()).unwrap();
    for (key, variable) in Layers::new().unwrap().variables() {
        let default = key.split('.').fold(None, |at: Option<&toml::Value>, part| match at {
            None => defaults.get(part),
            Some(table) => table.get(part),
        });
        let text = match default.unwrap() {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let config = from_environment(&variable, &text).unwrap();
        assert_eq!(config.to_toml(), Config::default().to_toml(), "{variable}");
        // Anything goes there, or the entry of a list is named.
        let words = [
            "GUARD",
            "TOKENS",
            "OUTPUT",
            "ROLES",
            "CLUSTER__NAME",
            "SQLITE__PATH",
            "AWS__ENDPOINTS",
            "OTLP__SIGNALS",
            "OTLP__SERVICE",
            "OTLP__HEADERS",
        ];
        if words.iter().any(|word| variable.contains(word)) {
            continue;
        }
        let refused = from_environment(&variable, "certainly wrong").unwrap_err();
        assert_eq!(refused.key(), key, "{refused}");
        assert!(refused.to_string().contains(&variable), "{refused}");
    }
}

#[test]
fn lists_in_the_environment_are_texts_with_commas_or_toml() {
    for text in ["10.0.0.0/8, 127.0.0.1", r#"["10.0.0.0/8", "127.0.0.1"]"#] {
        let config = from_environment("FLARE_DELIVERY__GUARD__ALLOW", text).unwrap();
        assert_eq!(config.delivery.guard.allow, ["10.0.0.0/8", "127.0.0.1"]);
    }
    let tokens = r#"[{ token = "secret-word-of-ours", scope = "read" }]"#;
    let config = from_environment("FLARE_HTTP__AUTH__TOKENS", tokens).unwrap();
    assert_eq!(config.http.auth.tokens[0].scope, Scope::Read);
    let refused = from_environment("FLARE_HTTP__AUTH__TOKENS", "[secret-word").unwrap_err();
    assert_eq!(refused.key(), "http.auth.tokens");
    assert!(!refused.to_string().contains("secret"), "{refused}");
}

#[test]
fn variables_that_were_meant_for_us_are_refused_and_others_left_alone() {
    for (variable, says) in [
        ("FLARE_HTTP__SERVER__BODY_LIMT", "mean FLARE_HTTP__SERVER__BODY_LIMIT?"),
        ("FLARE_HTTP_SERVER_ADDR", "mean FLARE_HTTP__SERVER__ADDR?"),
        ("FLARE_WROKER__ENABLE", "mean FLARE_WORKER__ENABLE?"),
        ("FLARE_QUEUE", "`flare config`"),
    ] {
        let refused = from_environment(variable, "1").unwrap_err().to_string();
        assert!(refused.contains(variable) && refused.contains(says), "{refused}");
    }
    for variable in ["FLARE_TEST_HTTP__X", "FLARE_HISTORY_SEED", "FLARE_PORT_8080_TCP", "HTTP__X"] {
        assert!(from_environment(variable, "1").is_ok(), "{variable}");
    }
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let layers = || {
        let text = "[http.server]\naddr = \"127.0.0.1:1\"\n[log]\nlevel = \"warn\"";
        Layers::new().unwrap().text("flare.toml", text).unwrap()
    };
    let variable = ("FLARE_HTTP__SERVER__ADDR".to_owned(), "127.0.0.1:2".to_owned());
    let port = |layers: Layers| layers.finish().unwrap().http.server.addr.port();
    assert_eq!(port(layers()), 1);
    let with_environment = || layers().environment([variable.clone()]).unwrap();
    assert_eq!(port(with_environment()), 2);
    let all = with_environment().flag("--addr", "http.server.addr", "127.0.0.1:3").unwrap();
    assert_eq!(port(all), 3);
    assert_eq!(String::from(layers().finish().unwrap().log.level), "warn");

    let wrong = layers().flag("--set", "http.server.adr", "x").unwrap_err();
    assert!(wrong.to_string().contains("did you mean http.server.addr?"), "{wrong}");
    let wrong = layers().flag("--addr", "http.server.addr", "x").unwrap().finish().unwrap_err();
    assert!(wrong.to_string().contains("--addr says \"x\""), "{wrong}");
}

#[test]
fn what_contradicts_is_refused_whoever_said_it() {
    let refused = from_file("delivery.in-flight-limit = 16").unwrap_err();
    assert_eq!(refused.key(), "delivery.concurrency");
    let text = "http.server.body-limit = \"8MiB\"\nrepository.engine = \"memory\"\n\
                repository.memory.max-bytes = \"4MiB\"";
    assert!(from_file(text).unwrap_err().to_string().contains("repository.memory.max-bytes, 4MiB"));
    let text = "[delivery.guard]\nallow = [\"10.0.0.0/8\"]\ndeny = [\"10.0.0.0/8\"]";
    assert_eq!(from_file(text).unwrap_err().key(), "delivery.guard.allow[0]");
    let text = "[[http.auth.tokens]]\ntoken = \"0123456789abcdef\"\nscope = \"read\"\n\
                [[http.auth.tokens]]\ntoken = \"0123456789abcdef\"\nscope = \"write\"";
    assert_eq!(from_file(text).unwrap_err().key(), "http.auth.tokens[1].token");
}

#[test]
fn tokens_are_masked_wherever_they_could_show() {
    let text =
        "[[http.auth.tokens]]\nname = \"ops\"\ntoken = \"secret-word-of-ours\"\nscope = \"admin\"";
    let config = from_file(text).unwrap();
    let shown = config.to_toml().unwrap();
    assert!(shown.contains("token = \"***\"") && shown.contains("admin"), "{shown}");
    assert!(shown.contains("name = \"ops\""), "{shown}");
    for shown in [shown, format!("{config:?}")] {
        assert!(!shown.contains("secret-word"), "{shown}");
    }
}

/// A server that has everything in one database.
const IN_MONGODB: &str = "repository.engine = \"mongodb\"\nqueue.engine = \"mongodb\"\n\
                          lease.engine = \"mongodb\"\n";

fn in_mongodb(more: &str) -> Result<Config, ConfigError> {
    from_file(&format!("{IN_MONGODB}{more}"))
}

#[test]
fn queue_and_lease_are_where_the_repository_is_unless_they_have_a_uri() {
    let config =
        in_mongodb("[repository.mongodb]\nuri = \"mongodb://db\"\ntimeout = \"5s\"").unwrap();
    let tables = Part::ALL.map(|part| config.mongodb(part).unwrap());
    assert_eq!(tables[0].timeout.as_secs(), 5);
    assert!(tables[0] == tables[1] && tables[1] == tables[2]);

    let config = in_mongodb("queue.mongodb.uri = \"mongodb://other\"").unwrap();
    let queue = config.mongodb(Part::Queue).unwrap();
    assert_eq!(queue.uri.expose_secret(), "mongodb://other");
    assert_eq!(queue.timeout, Mongo::default().timeout, "nothing else is inherited");
    assert_ne!(config.mongodb(Part::Lease), Some(queue));

    assert!(Part::ALL.iter().all(|part| Config::default().mongodb(*part).is_none()));
}

#[test]
fn settings_of_mongodb_are_read() {
    let table = "[repository.mongodb]\nwrites = 2\nreads = \"linearizable\"\nusername = \"ada\"\n\
                 password = \"secret\"\npool-limit = 50\nreplica-set = \"rs0\"\ndatabase = \"orders\"";
    let config = in_mongodb(table).unwrap();
    let table = config.mongodb(Part::Repository).unwrap();
    assert_eq!((table.writes, table.reads), (Writes::Members(2), Reads::Linearizable));
    assert_eq!(table.password.expose_secret(), "secret");
    let names = (table.username.as_str(), table.replica_set.as_str(), table.database.as_str());
    assert_eq!((names, table.pool_limit), (("ada", "rs0", "orders"), 50));

    let layers = Layers::new().unwrap().text("flare.toml", IN_MONGODB).unwrap();
    let pairs = [("WRITES", "3"), ("USERNAME", "ada"), ("PASSWORD", "12345")];
    let variables =
        pairs.map(|(key, value)| (format!("FLARE_REPOSITORY__MONGODB__{key}"), value.to_owned()));
    let config = layers.environment(variables).unwrap().finish().unwrap();
    assert_eq!(config.repository.mongodb.writes, Writes::Members(3));
    assert_eq!(config.repository.mongodb.password.expose_secret(), "12345");
}

#[test]
fn settings_of_engines_that_are_not_in_use_are_refused() {
    let only_repository = "repository.engine = \"mongodb\"\nqueue.engine = \"memory\"\n\
                           lease.engine = \"memory\"\ncluster.exclusive = true\n";
    for (engines, more, key, says) in [
        (
            "",
            "repository.mongodb.uri = \"mongodb://db\"",
            "repository.mongodb.uri",
            "by any engine",
        ),
        ("", "queue.mongodb.uri = \"mongodb://db\"", "queue.mongodb.uri", "queue.engine is not"),
        (
            "",
            "repository.memory.max-bytes = \"1GiB\"",
            "repository.memory.max-bytes",
            "is \"sqlite\"",
        ),
        (
            "repository.engine = \"memory\"\n",
            "repository.sqlite.path = \"/var/lib/flare/flare.db\"",
            "repository.sqlite.path",
            "is \"memory\"",
        ),
        (
            IN_MONGODB,
            "repository.memory.max-bytes = \"1GiB\"",
            "repository.memory.max-bytes",
            "is \"mongodb\"",
        ),
        (
            IN_MONGODB,
            "lease.mongodb.timeout = \"1s\"",
            "lease.mongodb.timeout",
            "without lease.mongodb.uri",
        ),
        (
            only_repository,
            "repository.mongodb.poll-every = \"1s\"",
            "repository.mongodb.poll-every",
            "no queue",
        ),
        (
            only_repository,
            "lease.mongodb.reads = \"local\"",
            "lease.mongodb.reads",
            "lease.engine is not",
        ),
    ] {
        let refused = from_file(&format!("{engines}{more}")).unwrap_err();
        assert_eq!(refused.key(), key, "{refused}");
        let message = refused.to_string();
        assert!(message.contains("has no effect") && message.contains(says), "{message}");
    }
    // They are where [repository.mongodb] says, even if the repository is not.
    assert!(
        from_file("queue.engine = \"mongodb\"\nrepository.mongodb.poll-every = \"1s\"").is_ok()
    );
}

#[test]
fn what_is_in_postgresql_is_where_its_one_table_says() {
    let text = "repository.engine = \"postgresql\"\n[repository.postgresql]\n\
                uri = \"postgresql://ada:hush-1@db/orders?password=hush-2\"\nschema = \"mine\"";
    let config = from_file(text).unwrap();
    assert!(Part::ALL.iter().all(|part| config.in_postgresql(*part)), "the repository's own");
    let shown = config.to_toml().unwrap();
    assert!(shown.contains("postgresql://ada:***@db/orders?password=***"), "{shown}");
    assert!(!format!("{config:?} {shown}").contains("hush"));
    assert!(Part::ALL.iter().all(|part| !Config::default().in_postgresql(*part)));

    let refused = from_file("repository.postgresql.schema = \"mine\"").unwrap_err();
    assert_eq!(refused.key(), "repository.postgresql.schema");
    assert!(refused.to_string().contains("has no effect"), "{refused}");
    let alone = "repository.engine = \"postgresql\"\nqueue.engine = \"memory\"\n\
                 lease.engine = \"memory\"\ncluster.exclusive = true\n\
                 repository.postgresql.poll-every = \"1s\"";
    let refused = from_file(alone).unwrap_err();
    assert_eq!(refused.key(), "repository.postgresql.poll-every");
    let elsewhere = "repository.engine = \"postgresql\"\nqueue.engine = \"memory\"\n\
                     cluster.exclusive = true\nrepository.postgresql.notify = true";
    let refused = from_file(elsewhere).unwrap_err();
    assert_eq!(refused.key(), "repository.postgresql.notify");
    assert!(!from_file(text).unwrap().repository.postgresql.notify);
    assert!(from_file(&format!("{text}\nnotify = true")).unwrap().repository.postgresql.notify);
}

#[test]
fn documents_have_to_fit_into_mongodb() {
    let refused = in_mongodb("http.server.body-limit = \"16MiB\"").unwrap_err();
    assert_eq!(refused.key(), "http.server.body-limit");
    assert!(refused.to_string().contains("at most 16320KiB"), "{refused}");
    assert!(in_mongodb("http.server.body-limit = \"16320KiB\"").is_ok());
}

#[test]
fn options_of_a_uri_that_would_be_overruled_are_refused() {
    let with = |options: &str| {
        in_mongodb(&format!("repository.mongodb.uri = \"mongodb://ada:secret@db/?{options}\""))
    };
    for (options, key) in [
        ("tls=true&w=1", "repository.mongodb.writes"),
        ("readConcernLevel=local", "repository.mongodb.reads"),
        ("connectTimeoutMS=100", "repository.mongodb.timeout"),
    ] {
        let refused = with(options).unwrap_err();
        assert_eq!(refused.key(), "repository.mongodb.uri");
        assert!(refused.to_string().contains(key), "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    assert!(with("retryWrites=true&w=majority&appName=orders&maxPoolSize=20").is_ok());
}

#[test]
fn nobody_signs_in_twice() {
    let twice = "[repository.mongodb]\nuri = \"mongodb://ada:secret@db\"\nusername = \"bob\"\n\
                 password = \"secret\"";
    let refused = in_mongodb(twice).unwrap_err();
    assert_eq!(refused.key(), "repository.mongodb.username");
    assert!(!refused.to_string().contains("secret"), "{refused}");
}

#[test]
fn passwords_of_mongodb_are_masked_wherever_they_could_show() {
    let text = "[repository.mongodb]\nusername = \"ada\"\npassword = \"secret-word\"\n\
                [queue.mongodb]\nuri = \"mongodb://ada:secret-word@db/orders\"";
    let config = in_mongodb(text).unwrap();
    let shown = config.to_toml().unwrap();
    assert!(shown.contains("password = \"***\""), "{shown}");
    assert!(shown.contains("uri = \"mongodb://ada:***@db/orders\""), "{shown}");
    for shown in [shown, format!("{config:?}")] {
        assert!(!shown.contains("secret-word"), "{shown}");
    }
}

#[test]
fn what_is_shown_can_be_read_back() {
    let config =
        from_file("delivery.timeout = \"90s\"\nlog.output = \"/var/log/flare.log\"").unwrap();
    let shown = config.to_toml().unwrap();
    assert_eq!(from_file(&shown).unwrap().to_toml().unwrap(), shown);
}

const SAMPLE: &str = include_str!("../../flare.sample.toml");

#[test]
fn the_sample_is_the_defaults() {
    assert_eq!(from_file(SAMPLE).unwrap().to_toml(), Config::default().to_toml());
}

#[test]
fn the_sample_has_every_key_and_a_comment_above_each() {
    let table: toml::Table = SAMPLE.parse().unwrap();
    for (key, _) in Layers::new().unwrap().variables() {
        let mut at = Some(&toml::Value::Table(table.clone())).cloned();
        for part in key.split('.') {
            at = at.and_then(|value| value.get(part).cloned());
        }
        assert!(at.is_some(), "the sample lacks {key}");
    }
    let mut before = "";
    for line in SAMPLE.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(before.starts_with('#'), "{line} has no comment");
        }
        before = line;
    }
}

#[test]
fn what_the_sample_offers_in_comments_works_too() {
    let offered = SAMPLE.lines().filter_map(|line| line.strip_prefix("#> "));
    let text = SAMPLE.lines().filter(|line| *line != "tokens = []").chain(offered);
    let config = from_file(&text.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(config.http.auth.tokens.len(), 2);
}
