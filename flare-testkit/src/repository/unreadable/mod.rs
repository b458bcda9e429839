//! Clauses RU1 to RU9: what cannot be read stops nothing else.
//!
//! A fixture of these spoils records behind the repository's back, as a newer version or an accident
//! would: only the backend's own tests know how its records are laid out.

mod change;
mod reading;

use std::sync::Arc;

use async_trait::async_trait;
use flare_core::model::{RecordName, Unreadable};
use flare_core::port::{Repository, Scan};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;

use super::make::Repo;
use crate::Subject;

pub use change::{
    ru6_what_cannot_be_read_can_be_deleted, ru7_unknown_fields_are_kept,
    ru8_a_damaged_job_holds_nothing, ru9_writes_respect_a_newer_document,
};
pub use reading::{
    ru1_a_record_is_read_whole_or_not_at_all, ru2_scans_go_on, ru3_lists_give_it_apart,
    ru4_only_its_own_documents_match_nothing, ru5_its_rows_are_made_all_the_same,
};

/// A way to spoil a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoiling {
    /// It gets a field that no version so far knows, wherever it could have one.
    UnknownField,
    /// A worker must know a newer format.
    Newer,
    /// Something in it that every reader needs is not what it should be.
    Damaged,
}

/// A repository whose records can be spoilt.
#[async_trait]
pub trait Spoilable: Send + Sync + 'static {
    /// The repository.
    fn repository(&self) -> Arc<dyn Repository>;

    /// Spoils a record that is there.
    async fn spoil(&self, record: RecordName, how: Spoiling);

    /// Whether a record still has the field that [`Spoiling::UnknownField`] gave it, wherever it did.
    async fn has_unknown_field(&self, record: RecordName) -> bool;
}

/// What every clause here tries.
type Spoilt = Subject<dyn Spoilable>;

/// What makes a record unreadable.
const UNREADABLE: [Spoiling; 2] = [Spoiling::Newer, Spoiling::Damaged];

fn repo(subject: &Spoilt) -> Repo {
    subject.map(|port| port.repository())
}

/// Insists that an error is about one record, and why.
#[track_caller]
fn insist(error: &Error, record: &RecordName, how: Spoiling) -> Unreadable {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let Some(unreadable) = error.unreadable() else { panic!("names no record: {error}") };
    assert_named(unreadable, record, how);
    unreadable.clone()
}

#[track_caller]
fn assert_named(unreadable: &Unreadable, record: &RecordName, how: Spoiling) {
    assert_eq!(unreadable.record, *record, "{unreadable}");
    assert_eq!(unreadable.is_newer(), how == Spoiling::Newer, "{unreadable}");
}

/// Everything a scan gives to its end.
async fn every<T>(scan: Scan<'_, T>) -> Vec<Result<T>> {
    scan.collect().await
}

/// What can be read of it; the errors must be about one of these records.
#[track_caller]
fn readable<T>(all: Vec<Result<T>>, spoilt: &[RecordName], how: Spoiling) -> Vec<T> {
    let mut readable = Vec::new();
    for item in all {
        match item {
            Ok(item) => readable.push(item),
            Err(error) => {
                let about = error.unreadable().map(|it| it.record.clone());
                let about = spoilt.iter().find(|it| Some(*it) == about.as_ref());
                let Some(about) = about else { panic!("about none of {spoilt:?}: {error}") };
                insist(&error, about, how);
            }
        }
    }
    readable
}

crate::suite::suite! {
    $
    /// Tests what a repository backend does about records that it cannot read: one `#[test]` per
    /// clause, each on a fresh port.
    ///
    /// Takes an expression that makes a fixture whose port is `dyn Spoilable`.
    unreadable_suite for dyn Spoilable, unreadable, [
        ru1_a_record_is_read_whole_or_not_at_all,
        ru2_scans_go_on,
        ru3_lists_give_it_apart,
        ru4_only_its_own_documents_match_nothing,
        ru5_its_rows_are_made_all_the_same,
        ru6_what_cannot_be_read_can_be_deleted,
        ru7_unknown_fields_are_kept,
        ru8_a_damaged_job_holds_nothing,
        ru9_writes_respect_a_newer_document,
    ]
}
