//! The repository in a file keeps what the contract says of records that cannot be read.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::RecordName;
use flare_core::port::Repository;
use flare_testkit::Fixture;
use flare_testkit::unreadable::{Spoilable, Spoiling};

use crate::support::{Scratch, spoil};

struct InFile;

struct SpoilableFile {
    repository: Arc<dyn Repository>,
    scratch: Scratch,
}

#[async_trait]
impl Spoilable for SpoilableFile {
    fn repository(&self) -> Arc<dyn Repository> {
        Arc::clone(&self.repository)
    }

    async fn spoil(&self, record: RecordName, how: Spoiling) {
        spoil::spoil(&self.scratch.connect(), &record, how);
    }

    async fn has_unknown_field(&self, record: RecordName) -> bool {
        spoil::has_unknown_field(&self.scratch.connect(), &record)
    }
}

#[async_trait]
impl Fixture for InFile {
    type Port = dyn Spoilable;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Spoilable>, ()) {
        let scratch = Scratch::new();
        let repository = scratch.open().repository();
        (Arc::new(SpoilableFile { repository, scratch }), ())
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(2)
    }
}

flare_testkit::unreadable_suite!(InFile);
