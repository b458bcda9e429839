//! Takes a configuration that could be read; gives leave, or the key that is out of range or
//! contradicts another. A setting that could have no effect is refused rather than ignored.

use std::collections::HashSet;
use std::time::Duration;

use flare_backend_mongo::MongoConfig;
use flare_core::http::Guard;
use flare_core::model::Invalid;
use flare_core::model::duration::{MAX_DURATION, format_duration};
use flare_core::model::size::format_size;
use secrecy::ExposeSecret;

use super::idle::idle;
use super::mongo::is_inherited;
use super::{Config, ConfigError, Engine, LeaseEngine, Networks, Token};
use super::{cluster, connections, console, consumers, otlp, sqlite};

/// The most entries a list may have, as the REST interface promises.
const MAX_LIMIT: u32 = 1_000;

/// What the HTTP library needs to read a head at all, and what nobody needs more than.
const HEAD: (u64, u64) = (8 << 10, 1 << 20);

/// Less can be guessed.
const SHORTEST_TOKEN: usize = 16;
/// As the REST interface has it.
const LONGEST_NAME: usize = 64;

/// What MongoDB takes in a document, less what Flare keeps beside the content.
const MONGODB_CONTENT: u64 = (16 << 20) - (64 << 10);

/// What PostgreSQL takes in a document: half of what fits into one of its values.
const POSTGRESQL_CONTENT: u64 = 512 << 20;

/// What SQLite takes in a document: half of what fits into one of its values.
const SQLITE_CONTENT: u64 = 512 << 20;

/// Options of a MongoDB URI that a key overrules, in lower case, each with the value that does no harm
/// (addresses are often copied with it) and the key.
const OVERRULED: [(&str, &str, &str); 7] = [
    ("w", "majority", "writes"),
    ("journal", "true", "writes"),
    ("readconcernlevel", "majority", "reads"),
    ("readpreference", "primary", "reads"),
    ("wtimeoutms", "", "timeout"),
    ("connecttimeoutms", "", "timeout"),
    ("serverselectiontimeoutms", "", "timeout"),
];

type Checked = Result<(), ConfigError>;

pub(super) fn check(config: &Config) -> Checked {
    let Config { repository, queue, lease, .. } = config;
    ranges(config)?;
    mongodb("repository.mongodb", &repository.mongodb)?;
    mongodb("queue.mongodb", &queue.mongodb)?;
    mongodb("lease.mongodb", &lease.mongodb)?;
    let in_table = |table| move |invalid: Invalid| ConfigError::in_table(table, &invalid);
    repository.sqlite.check().map_err(in_table("repository.sqlite"))?;
    repository.postgresql.check().map_err(in_table("repository.postgresql"))?;
    queue.sqs.check().map_err(in_table("queue.sqs"))?;
    lease.etcd.check().map_err(in_table("lease.etcd"))?;
    lease_times(config)?;
    built(config)?;
    sqlite::one_file(config)?;
    cluster::check(config)?;
    connections::check(&config.connections)?;
    consumers::check(&config.consumers)?;
    console::check(&config.console)?;
    otlp::check(&config.otlp)?;
    idle(config)?;
    contradictions(config)?;
    networks(&config.delivery.guard)?;
    tokens(&config.http.auth.tokens)
}

/// What an operator may say. A host may go further where it knows why.
fn ranges(config: &Config) -> Checked {
    let Config { http, repository, queue, lease, settings, .. } = config;
    let server = &http.server;
    let wide = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let bytes = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    number("http.server.default-limit", server.default_limit, 1, MAX_LIMIT)?;
    number("http.server.connection-limit", server.connection_limit, 1, 1_000_000)?;
    number("repository.audit-limit", settings.audit_limit, 0, 1_000_000)?;
    number("delivery.concurrency", settings.concurrency, 1, 100_000)?;
    number("delivery.in-flight-limit", wide(settings.in_flight_limit), 1, 1_000_000)?;
    let metered = wide(settings.metered_subscriptions);
    number("worker.metered-subscriptions", metered, 0, 1_000)?;
    let most = wide(repository.postgresql.pool_limit);
    number("repository.postgresql.pool-limit", most, 1, 10_000)?;
    number("queue.sqs.slots", queue.sqs.slots, 1, 256)?;

    size("http.server.body-limit", server.body_limit, 1 << 10, 1 << 30)?;
    size("http.server.bodies-limit", server.bodies_limit, 1 << 10, 1 << 40)?;
    size("delivery.content-limit", bytes(settings.content_limit), 1 << 10, 1 << 40)?;
    size("http.server.header-limit", server.header_limit, HEAD.0, HEAD.1)?;
    size("repository.memory.max-bytes", repository.memory.max_bytes, 1 << 20, 1 << 50)?;

    let [moment, second] = [1, 1_000].map(Duration::from_millis);
    let [minute, hour] = [1, 60].map(Duration::from_mins);
    let (none, ever) = (Duration::ZERO, MAX_DURATION);
    for (key, value, least, most) in [
        ("http.server.timeout", server.timeout, moment, hour),
        ("http.server.header-timeout", server.header_timeout, moment, hour),
        ("delivery.timeout", settings.timeout, moment, hour),
        ("delivery.max-ttl", settings.max_ttl, second, ever),
        ("delivery.hold-limit", settings.hold_limit, none, ever),
        ("delivery.suspend-after", settings.suspend_after, second, ever),
        ("repository.tombstone-retention", settings.tombstone_retention, second, ever),
        ("repository.dead-letter-retention", settings.dead_letter_retention, second, ever),
        ("repository.audit-retention", settings.audit_retention, second, ever),
        ("worker.drain-timeout", settings.drain_limit, none, hour),
        ("repository.sqlite.timeout", repository.sqlite.timeout, moment, hour),
        ("repository.postgresql.timeout", repository.postgresql.timeout, moment, hour),
        ("repository.postgresql.poll-every", repository.postgresql.poll_every, moment, minute),
        ("queue.sqs.timeout", queue.sqs.timeout, second, hour),
        ("lease.etcd.timeout", lease.etcd.timeout, moment * 10, minute),
    ] {
        time(key, value, least, most)?;
    }
    Ok(())
}

/// A holder that cannot reach etcd has to notice while its lease is still good.
fn lease_times(config: &Config) -> Checked {
    let (ttl, timeout) = (config.node.ttl, config.lease.etcd.timeout);
    time("lease.etcd.ttl", ttl, Duration::from_secs(2), Duration::from_mins(10))?;
    if timeout > ttl / 2 {
        let reason =
            format!("must be at most half of lease.etcd.ttl, {}", format_duration(ttl / 2));
        return Err(ConfigError::new("lease.etcd.timeout", reason));
    }
    Ok(())
}

/// Not every program can do everything.
fn built(config: &Config) -> Checked {
    if config.lease.engine == LeaseEngine::Etcd && !cfg!(feature = "etcd") {
        let reason = "must be \"sqlite\", \"memory\", \"mongodb\" or \"postgresql\", as this program was built \
                      without etcd: cargo install --path flare-server --features etcd (which needs protoc)";
        return Err(ConfigError::new("lease.engine", reason));
    }
    Ok(())
}

fn mongodb(name: &str, table: &MongoConfig) -> Checked {
    let key = |key: &str| format!("{name}.{key}");
    let refuse = |name: &str, reason: &str| Err(ConfigError::new(key(name), reason));
    let uri = table.uri.expose_secret();
    let inherits = is_inherited(table) && name != "repository.mongodb";
    if !(inherits || ["mongodb://", "mongodb+srv://"].iter().any(|it| uri.starts_with(it))) {
        return refuse("uri", "must begin with \"mongodb://\" or \"mongodb+srv://\"");
    }
    let options = uri.split_once('?').map_or("", |(_, options)| options);
    for (option, value) in options.split('&').filter_map(|option| option.split_once('=')) {
        let named = |(other, harmless, _): &&(&str, &str, &str)| {
            option.eq_ignore_ascii_case(other) && !value.eq_ignore_ascii_case(harmless)
        };
        if let Some((_, _, overruling)) = OVERRULED.iter().find(named) {
            let reason = format!("must not have the option {option}: {} says it", key(overruling));
            return refuse("uri", &reason);
        }
    }
    let (named, has_password) =
        (!table.username.is_empty(), !table.password.expose_secret().is_empty());
    if named && uri.contains('@') {
        return refuse("username", "must be left out where uri says who signs in");
    }
    if named != has_password {
        let (given, missing) =
            if named { ("username", "password") } else { ("password", "username") };
        return refuse(given, &format!("needs {}", key(missing)));
    }
    number(&key("pool-limit"), table.pool_limit, 0, 10_000)?;
    let moment = Duration::from_millis(1);
    time(&key("timeout"), table.timeout, moment, Duration::from_hours(1))?;
    time(&key("poll-every"), table.poll_every, moment, Duration::from_mins(1))?;
    table.check().map_err(|invalid| ConfigError::in_table(name, &invalid))
}

fn contradictions(config: &Config) -> Checked {
    let Config { http, repository, settings, .. } = config;
    let (most, whose) = match repository.engine {
        Engine::Sqlite => {
            let most = format_size(SQLITE_CONTENT);
            (SQLITE_CONTENT, format!("{most} with repository.engine \"sqlite\""))
        }
        Engine::Memory => {
            let most = repository.memory.max_bytes;
            (most, format!("repository.memory.max-bytes, {}", format_size(most)))
        }
        Engine::MongoDb => {
            let most = format_size(MONGODB_CONTENT);
            (MONGODB_CONTENT, format!("{most} with repository.engine \"mongodb\""))
        }
        Engine::PostgreSql => {
            let most = format_size(POSTGRESQL_CONTENT);
            (POSTGRESQL_CONTENT, format!("{most} with repository.engine \"postgresql\""))
        }
    };
    if http.server.body_limit > most {
        let reason = format!("must be at most {whose}: a larger document could never be stored");
        return Err(ConfigError::new("http.server.body-limit", reason));
    }
    if settings.concurrency as usize > settings.in_flight_limit {
        let reason = format!(
            "must be at most delivery.in-flight-limit, {}: all subscriptions together have no more",
            settings.in_flight_limit
        );
        return Err(ConfigError::new("delivery.concurrency", reason));
    }
    for (key, value) in
        [("delivery.max-ttl", settings.max_ttl), ("delivery.suspend-after", settings.suspend_after)]
    {
        if value < settings.timeout {
            let least = format_duration(settings.timeout);
            let reason = format!(
                "must be at least delivery.timeout, {least}: or a single slow request would use it up"
            );
            return Err(ConfigError::new(key, reason));
        }
    }
    Ok(())
}

fn networks(networks: &Networks) -> Checked {
    let refused = |list: &str, index: usize, reason: &str| {
        ConfigError::new(format!("delivery.guard.{list}[{index}]"), reason)
    };
    for (index, network) in networks.allow.iter().enumerate() {
        Guard::default().allow(network).map_err(|error| refused("allow", index, error.reason()))?;
        if networks.deny.contains(network) {
            let reason = format!("is {network}, which delivery.guard.deny refuses anyway");
            return Err(refused("allow", index, &reason));
        }
    }
    for (index, network) in networks.deny.iter().enumerate() {
        Guard::default().deny(network).map_err(|error| refused("deny", index, error.reason()))?;
    }
    Ok(())
}

fn tokens(tokens: &[Token]) -> Checked {
    let mut seen = HashSet::new();
    for (index, token) in tokens.iter().enumerate() {
        let key = |field: &str| format!("http.auth.tokens[{index}].{field}");
        let name = &token.name;
        if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            let reason = format!("must be at most {LONGEST_NAME} characters that can be shown");
            return Err(ConfigError::new(key("name"), reason));
        }
        let secret = token.token.expose_secret();
        if secret.len() < SHORTEST_TOKEN || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = format!(
                "must be at least {SHORTEST_TOKEN} visible ASCII characters, without spaces"
            );
            return Err(ConfigError::new(key("token"), reason));
        }
        if !seen.insert(secret) {
            return Err(ConfigError::new(key("token"), "must differ from the tokens before it"));
        }
    }
    Ok(())
}

pub(super) fn number(key: &str, value: u32, least: u32, most: u32) -> Checked {
    within(key, value, least, most, |value| value.to_string())
}

fn size(key: &str, value: u64, least: u64, most: u64) -> Checked {
    within(key, value, least, most, format_size)
}

pub(super) fn time(key: &str, value: Duration, least: Duration, most: Duration) -> Checked {
    within(key, value, least, most, format_duration)
}

fn within<T: PartialOrd>(key: &str, value: T, least: T, most: T, show: fn(T) -> String) -> Checked {
    if (&least..=&most).contains(&&value) {
        return Ok(());
    }
    let reason = format!("must be from {} to {}", show(least), show(most));
    Err(ConfigError::new(key, reason))
}
