//! Takes what a lane's machine wants to read, and what spreads hand it; gives the rows with their documents,
//! within the bytes that the lane may hold.

use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::warn;

use super::Lane;
use super::content::{ContentPart, CountedContent};
use super::handed::Handover;
use super::loader::{Busy, Load, load};
use super::machine::{HandedRow, LaneEvent, Loaded};
use crate::error::Result;
use crate::pipeline::reading::size;
use crate::pipeline::stage::chain;
use crate::tools::taken;

/// What a lane reads.
pub(super) struct LaneReads {
    /// What the lane may hold of documents.
    content: ContentPart,
    /// When it last knew that rows of its own had been read or stored, as a moment of the process.
    known_at: u64,
    loading: Option<BoxFuture<'static, Result<Load>>>,
}

impl LaneReads {
    pub(super) fn new(content: ContentPart) -> Self {
        Self { content, known_at: 0, loading: None }
    }

    /// Begins to read, if there is room for enough; else tells that there is none.
    pub(super) fn begin(
        &mut self,
        lane: &Lane,
        (window, least): (usize, usize),
        busy: Busy,
        slow: bool,
    ) -> Option<LaneEvent<CountedContent>> {
        match self.content.reserve(window, slow) {
            Some(room) if room.documents >= least => {
                self.loading = Some(load(lane.clone(), busy, room).boxed());
                None
            }
            room => Some(LaneEvent::NoRoom { at_all: room.is_none() }),
        }
    }

    /// Does without what is being read.
    pub(super) fn stop(&mut self) {
        self.loading = None;
    }

    /// Waits for what is being read.
    pub(super) async fn next(&mut self) -> Result<Load> {
        taken(&mut self.loading).await
    }

    /// Notes that rows of the lane's own were read or stored at that moment of the process.
    pub(super) fn knows(&mut self, moment: u64) {
        self.known_at = moment;
    }

    /// What was read, counted.
    pub(super) fn ended(&mut self, loaded: Result<Load>, slow: bool) -> LaneEvent<CountedContent> {
        let load = match loaded {
            Ok(load) => load,
            Err(error) => {
                warn!(error = %chain(&error), "could not load rows, will retry");
                return LaneEvent::LoadFailed;
            }
        };
        load.largest.into_iter().for_each(|largest| self.content.learn(largest));
        let counted = load.due.into_iter().map(|(row, document, verdict)| {
            let counted = self.content.count(size(&document), slow);
            (row, document, verdict, counted)
        });
        LaneEvent::Loaded(Loaded {
            due: counted.collect(),
            mode: load.mode,
            filter: load.filter,
            next_due: load.next_due,
            more: load.more,
            passed_over: load.passed_over,
            behind: load.behind,
            reread: load.reread,
        })
    }

    /// Rows that were written just now, if there is room for them. They are as good as read, unless something of
    /// the lane's own came between: what it stored meanwhile is perhaps not in them.
    pub(super) fn handed(
        &mut self,
        given: Vec<Handover>,
        slow: bool,
    ) -> Option<Vec<HandedRow<CountedContent>>> {
        if given.iter().any(|handover| handover.moment <= self.known_at) {
            return None;
        }
        let sizes = || given.iter().flat_map(|it| &it.rows).map(|(_, document)| size(document));
        let room = self.content.reserve(sizes().count(), slow);
        room.filter(|room| room.fits(sizes()))?;
        sizes().max().into_iter().for_each(|largest| self.content.learn(largest));
        let rows = given.into_iter().flat_map(|Handover { at, rows, .. }| {
            rows.into_iter().map(move |(row, document)| (row, document, at))
        });
        let counted = rows.map(|(row, document, read_at)| {
            let counted = self.content.count(size(&document), slow);
            HandedRow { row, document, read_at, counted }
        });
        Some(counted.collect())
    }
}
