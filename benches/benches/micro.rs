//! What the steps of a change's journey cost, each on its own: `cargo bench -p flare-benches`.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "what is measured is real time, and a bench that cannot be set up has to stop"
)]

#[path = "micro/filters.rs"]
mod filters;
#[path = "micro/pure.rs"]
mod pure;
#[path = "micro/stored.rs"]
mod stored;

use criterion::{criterion_group, criterion_main};

criterion_group!(
    benches,
    pure::matching,
    pure::layouts,
    pure::reading,
    pure::deciding,
    pure::tasks,
    filters::filters,
    stored::puts,
    stored::batches,
    stored::rows,
);
criterion_main!(benches);
