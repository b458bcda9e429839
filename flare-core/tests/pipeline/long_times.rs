//! Times so long that adding one to another would overflow: each is refused by its name, and the
//! longest that is accepted does no harm.

use std::time::Duration;

use crate::support::{few_slots, in_memory};
use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::model::duration::MAX_DURATION;
use flare_core::{ErrorKind, Flare};

type Field = (&'static str, fn(&mut Settings) -> &mut Duration);

const TIMES: [Field; 17] = [
    ("ingest_wait", |settings| &mut settings.ingest_wait),
    ("young_for", |settings| &mut settings.young_for),
    ("timeout", |settings| &mut settings.timeout),
    ("max_ttl", |settings| &mut settings.max_ttl),
    ("hold_limit", |settings| &mut settings.hold_limit),
    ("suspend_after", |settings| &mut settings.suspend_after),
    ("reconcile_every", |settings| &mut settings.reconcile_every),
    ("rederive_every", |settings| &mut settings.rederive_every),
    ("sweep_every", |settings| &mut settings.sweep_every),
    ("jobs_every", |settings| &mut settings.jobs_every),
    ("task_lifetime", |settings| &mut settings.task_lifetime),
    ("expire_every", |settings| &mut settings.expire_every),
    ("tombstone_retention", |settings| &mut settings.tombstone_retention),
    ("dead_letter_retention", |settings| &mut settings.dead_letter_retention),
    ("audit_retention", |settings| &mut settings.audit_retention),
    ("sample_every", |settings| &mut settings.sample_every),
    ("drain_limit", |settings| &mut settings.drain_limit),
];

#[test]
fn every_time_is_tried() {
    let shown = format!("{:?}", Settings::default());
    // A number with a unit is a time, and nothing else is.
    let values = shown.split([',', '}']).filter_map(|field| field.split_once(": "));
    let is_time =
        |value: &str| value.starts_with(|c: char| c.is_ascii_digit()) && value.ends_with('s');
    let times: Vec<&str> =
        values.filter(|(_, value)| is_time(value.trim())).map(|(name, _)| name.trim()).collect();
    let tried = TIMES.map(|(name, _)| name);
    assert!(times.len() >= 15, "{times:?}");
    for time in times {
        let name = time.trim_start_matches("Settings { ");
        assert!(tried.contains(&name), "{name} is not tried");
    }
}

#[test]
fn a_time_that_cannot_be_added_to_another_is_refused_by_its_name() {
    for (field, of) in TIMES {
        let mut settings = Settings::default();
        *of(&mut settings) = Duration::MAX;
        let error = Flare::builder(MemoryBackend::new()).settings(settings).build().unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
    }
    let mut cluster = ClusterSettings::default();
    cluster.move_every = Duration::MAX;
    let error = Flare::builder(MemoryBackend::new()).cluster(cluster).build().unwrap_err();
    assert_eq!(error.field(), Some("move_every"));
}

#[tokio::test]
async fn the_longest_times_mean_never() {
    for (_, of) in TIMES {
        let mut settings = few_slots();
        *of(&mut settings) = MAX_DURATION;
        let mut world = in_memory(settings);
        world.start();
        let users = world.users().await;
        world.subscribe(&users, "client").await;
        world.in_time(world.put(1, 1)).await;
        world.settled().await;
        world.pass(Duration::from_secs(60)).await;
        assert_eq!(world.delivery.total(), 1);
        world.crash().await;
    }
}

#[cfg(feature = "http")]
#[test]
fn http_has_such_times_too() {
    use flare_core::http::HttpConfig;

    let config = HttpConfig::new();
    for (field, wrong) in [
        ("connect_timeout", config.clone().connect_timeout(Duration::MAX)),
        ("idle_timeout", config.idle_timeout(Duration::MAX)),
    ] {
        let error = Flare::builder(MemoryBackend::new()).http(wrong).build().unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)));
    }
}
