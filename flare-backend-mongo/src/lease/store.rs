//! Takes steps and questions; gives the record after the one, what the other asked for. Tells
//! everybody in the process who watches how far history has come.

use std::sync::{Mutex, Weak};

use flare_core::port::StoreRevision;
use flare_core::{Error, ErrorKind, Result};
use futures::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ChangeStreamEvent;
use mongodb::options::ReturnDocument;
use tokio::sync::watch;

use super::rounds::Rounds;
use super::watching::Poller;
use super::{record, step, view};
use crate::BACKEND;
use crate::connection::Connection;
use crate::places::Party;
use crate::record::Record;

/// The collection of the record, without prefix.
pub(super) const COLLECTION: &str = "lease";

/// The one record, and how to get at it.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) connection: Connection,
    /// The same, for looks.
    looks: Connection,
    states: Collection<Document>,
    /// Calls that are under way.
    pub(super) rounds: Rounds,
    pub(super) news: watch::Sender<WatchState>,
    /// Who looks for news, while anybody watches.
    pub(super) poller: Mutex<Weak<Poller>>,
}

/// What those who watch are told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WatchState {
    /// How far history has come, as far as this process knows.
    pub(super) revision: StoreRevision,
    /// Whether each has to look for itself: looking for news fails in a way that waiting does not
    /// help, or history has gone back.
    pub(super) odd: bool,
}

impl Store {
    pub(super) async fn open(connection: Connection) -> Result<Self> {
        let states = connection.collection(COLLECTION);
        let first = doc! { "$setOnInsert": step::initial() };
        connection.run("connect", states.update_one(state(), first).upsert(true)).await?;
        Ok(Self {
            looks: connection.used_by(Party::Looks),
            connection,
            states,
            rounds: Rounds::default(),
            news: watch::Sender::default(),
            poller: Mutex::default(),
        })
    }

    /// Gives what `view` asks for, `revision` being part of it; one round trip, two if a lease has
    /// lapsed that is not ended yet.
    pub(super) async fn look(&self, operation: &'static str, view: Document) -> Result<Document> {
        let mut asked = view.clone();
        asked.insert("due", view::is_due());
        let question = [doc! { "$match": state() }, doc! { "$project": asked }];
        let answer = async { self.states.aggregate(question).await?.try_next().await };
        let found = self.looks.run(operation, answer).await?;
        let found = found.ok_or_else(|| missing(operation))?;
        if Record::new(operation, &found).flag("due")? {
            return self.step_on(&self.looks, operation, step::settle(), view).await;
        }
        self.tell(operation, &found)?;
        Ok(found)
    }

    /// Has the server tell of changes by itself, where it can: replica sets do.
    pub(super) async fn changes(
        &self,
        operation: &'static str,
    ) -> Result<ChangeStream<ChangeStreamEvent<Document>>> {
        let ours = [doc! { "$match": { "documentKey": state() } }];
        self.looks.run(operation, self.states.watch().pipeline(ours)).await
    }

    /// Makes one step; gives what `view` asks for as it was right after it.
    pub(super) async fn step(
        &self,
        operation: &'static str,
        step: Vec<Document>,
        view: Document,
    ) -> Result<Document> {
        self.step_on(&self.connection, operation, step, view).await
    }

    async fn step_on(
        &self,
        connection: &Connection,
        operation: &'static str,
        step: Vec<Document>,
        view: Document,
    ) -> Result<Document> {
        let update = self.states.find_one_and_update(state(), step).projection(view);
        let update = update.return_document(ReturnDocument::After);
        let after = connection.run(operation, update).await?;
        let after = after.ok_or_else(|| missing(operation))?;
        self.tell(operation, &after)?;
        Ok(after)
    }

    fn tell(&self, operation: &'static str, found: &Document) -> Result<()> {
        let revision = record::revision(&Record::new(operation, found), "revision")?;
        self.news.send_if_modified(|news| {
            let newer = revision > news.revision;
            news.revision = news.revision.max(revision);
            newer
        });
        Ok(())
    }
}

fn state() -> Document {
    doc! { "_id": "state" }
}

/// It was there when we connected. A new one would begin history anew, which must not happen
/// unseen: tokens would repeat.
fn missing(operation: &'static str) -> Error {
    let detail = "the record of the leases is gone; a node that connects anew makes another";
    Error::new(ErrorKind::Corrupt, operation).with_backend(BACKEND).with_detail(detail)
}
