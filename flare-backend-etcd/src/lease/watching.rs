//! Takes a prefix and a revision; gives what changes after it, from one member after another. Ends
//! only where history was cut, or where we are not allowed to look.
//!
//! Each watch has a connection of its own: one that is read slowly fills it up, and must not hold
//! up the calls that keep leases alive.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{
    Client, Event, EventType, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream,
};
use flare_core::port::{KeyChange, KeyEvent, Scan, StoreRevision};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};
use tracing::debug;

use super::position::Position;
use super::{LARGEST, header, read, store_revision};
use crate::BACKEND;
use crate::codec::{self, Keys};
use crate::error::{self, Failure, Next};
use crate::members::{Answer, Members};

const OPERATION: &str = "watch";

/// How long to wait after a watch has failed, and at most after many have.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often the time until a silent member is given up doubles, at most.
const MOST_DOUBLINGS: u32 = 5;

/// How often in a row signing in again is worth a try.
const MOST_SIGN_INS: u32 = 2;

pub(super) fn watch(
    members: Arc<Members>,
    keys: Keys,
    prefix: &str,
    from: StoreRevision,
) -> Scan<'static, KeyEvent> {
    let watch = Watch {
        member: members.preferred(),
        members,
        prefix: keys.stored(prefix),
        keys,
        position: Position::after(from),
        cluster: None,
        events: VecDeque::new(),
        line: None,
        failures: 0,
        silences: 0,
        sign_ins: 0,
    };
    let events = stream::unfold(Some(watch), async |watch| {
        let mut watch = watch?;
        match watch.next().await {
            Ok(event) => Some((Ok(event), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    });
    events.boxed()
}

struct Watch {
    members: Arc<Members>,
    keys: Keys,
    /// What is watched, as it is stored.
    prefix: Vec<u8>,
    position: Position,
    /// The cluster whose revisions these are.
    cluster: Option<u64>,
    /// What was read and not given yet.
    events: VecDeque<KeyEvent>,
    /// Whom to ask next.
    member: usize,
    line: Option<Line>,
    /// What went wrong since something was heard: of any kind, by silence, for want of a token.
    failures: u32,
    silences: u32,
    sign_ins: u32,
}

/// A watch that one member has taken.
struct Line {
    requests: WatchRequestSender,
    answers: WatchResponseStream,
    /// What the member calls it.
    id: i64,
    /// Whether it was asked for a sign of life.
    asked: bool,
    /// Nothing is asked on it, but it ends with its last client.
    _client: Client,
}

impl Watch {
    async fn next(&mut self) -> Result<KeyEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let step = match self.line.take() {
                None => self.open().await,
                Some(line) => self.listen(line).await,
            };
            if let Err(failure) = step {
                self.bear(failure).await?;
            }
        }
    }

    /// Opens a line, to the member whose turn it is.
    async fn open(&mut self) -> Answer<()> {
        let (member, limit) = (self.member, self.members.per_member());
        let options = WatchOptions::new()
            .with_prefix()
            .with_start_revision(self.position.start())
            .with_progress_notify()
            .with_fragment();
        let prefix = self.prefix.clone();
        let opened = self.members.within(OPERATION, limit, async {
            let client = self.members.dial(OPERATION, member).await?;
            let mut watches = client.watch_client().max_decoding_message_size(LARGEST);
            let (requests, mut answers) =
                watches.watch(prefix, Some(options)).await.map_err(failed)?.split();
            let first = heard(answers.message().await)?;
            Ok((
                Line { requests, answers, id: first.watch_id(), asked: false, _client: client },
                first,
            ))
        });
        let (line, first) = opened.await?;
        self.check_history(&first).await?;
        self.take(&line, &first)?;
        self.line = Some(line);
        Ok(())
    }

    /// What is told next has to follow what was told before.
    async fn check_history(&mut self, first: &WatchResponse) -> Answer<()> {
        let head = header(OPERATION, first.header())?;
        if *self.cluster.get_or_insert(head.cluster_id()) != head.cluster_id() {
            return Err(forgotten("the members are of another cluster than before"));
        }
        if codec::revision(head.revision()) >= self.position.revision() {
            return Ok(());
        }
        // A member may be behind; the store may not.
        let prefix = self.prefix.clone();
        let ask = |client| read(OPERATION, client, prefix.clone(), super::counted());
        let now = self.members.read(OPERATION, ask).await;
        let now = now.map_err(|error| {
            let next = if error.is_temporary() { Next::Elsewhere } else { Next::Stop };
            Failure { error, next }
        })?;
        let (now, seen) = (store_revision(OPERATION, now.header())?, self.position.revision());
        if now < seen {
            let (now, seen) = (now.get(), seen.get());
            return Err(forgotten(format!("the store is at revision {now}, before {seen}")));
        }
        Ok(())
    }

    /// Waits for what a member says. One that says nothing, asked, is given up.
    async fn listen(&mut self, mut line: Line) -> Answer<()> {
        let patience = self.members.timeout() * 2u32.pow(self.silences.min(MOST_DOUBLINGS));
        let said = tokio::select! {
            biased;
            said = line.answers.message() => Some(heard(said)?),
            () = self.members.pause(patience) => None,
        };
        match said {
            Some(said) => {
                self.take(&line, &said)?;
                line.asked = false;
                (self.failures, self.silences, self.sign_ins) = (0, 0, 0);
            }
            None if line.asked => {
                self.silences += 1;
                let detail = format!("nothing heard for {:?}", 2 * patience);
                return Err(Failure::new(OPERATION, ErrorKind::Timeout, Next::Elsewhere, detail));
            }
            None => {
                line.requests.request_progress().await.map_err(failed)?;
                line.asked = true;
            }
        }
        self.line = Some(line);
        Ok(())
    }

    /// Takes what a member has said.
    fn take(&mut self, line: &Line, said: &WatchResponse) -> Answer<()> {
        if said.compact_revision() != 0 {
            let (cut, seen) = (said.compact_revision(), self.position.revision().get());
            return Err(forgotten(format!(
                "revision {seen} is before {cut}, where history begins"
            )));
        }
        if said.canceled() {
            return Err(error::from_reason(OPERATION, said.cancel_reason()));
        }
        for event in said.events() {
            self.take_event(event).map_err(Failure::stop)?;
        }
        // Asked for, some releases answer before they have told everything; by themselves never,
        // and then in the name of the watch.
        let by_itself = said.watch_id() == line.id && !said.created();
        if by_itself && said.events().is_empty() {
            self.position.reached(store_revision(OPERATION, said.header())?);
        }
        Ok(())
    }

    fn take_event(&mut self, event: &Event) -> Result<()> {
        let Some(stored) = event.kv() else {
            let error = Error::new(ErrorKind::Corrupt, OPERATION).with_backend(BACKEND);
            return Err(error.with_detail("a change of nothing"));
        };
        let revision = codec::revision(stored.mod_revision());
        if !self.position.is_news(revision, stored.key()) {
            return Ok(());
        }
        // A key that is no text is nobody's of ours.
        let Ok(key) = self.keys.plain(OPERATION, stored.key()) else { return Ok(()) };
        let kind = match event.event_type() {
            EventType::Put => KeyChange::Written(self.keys.entry(OPERATION, stored)?),
            EventType::Delete => KeyChange::Deleted,
        };
        self.events.push_back(KeyEvent::new(revision, key, kind));
        Ok(())
    }

    /// Goes on with the next member after a while, unless nobody would say anything else.
    async fn bear(&mut self, failure: Failure) -> Result<()> {
        let Failure { error, next } = failure;
        let given_up = match next {
            Next::Stop => true,
            Next::SignIn => {
                self.sign_ins += 1;
                self.sign_ins > MOST_SIGN_INS
            }
            // A certificate that is refused everywhere will not get better.
            Next::Elsewhere | Next::InDoubt => {
                !error.is_temporary() && self.failures as usize >= self.members.count()
            }
        };
        if given_up {
            return Err(error);
        }
        debug!(%error, member = self.members.url(self.member), "watching another member");
        self.member = (self.member + 1) % self.members.count();
        let pause = FIRST_PAUSE * 2u32.pow(self.failures.min(MOST_DOUBLINGS + 1));
        self.failures = self.failures.saturating_add(1);
        self.members.pause(pause.min(LONGEST_PAUSE)).await;
        Ok(())
    }
}

fn failed(error: etcd_client::Error) -> Failure {
    error::from_client(OPERATION, &error)
}

fn heard(said: Result<Option<WatchResponse>, etcd_client::Error>) -> Answer<WatchResponse> {
    said.map_err(failed)?.ok_or_else(|| {
        let detail = "the member ended the stream";
        Failure::new(OPERATION, ErrorKind::Unavailable, Next::Elsewhere, detail)
    })
}

fn forgotten(detail: impl Into<String>) -> Failure {
    Failure::new(OPERATION, ErrorKind::Compacted, Next::Stop, detail)
}
