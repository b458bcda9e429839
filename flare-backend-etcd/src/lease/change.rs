//! Takes one write or delete of one key; gives what became of it, also when an attempt before may
//! have been made. Condition and change are one transaction.
//!
//! What is made twice is made once: a conditional write cannot take place again, and finds its own
//! mark if it has; one without condition looks for its mark before it is made again, and then on
//! the condition that nothing has changed since it looked.

use etcd_client::{
    Client, Compare, CompareOp, DeleteOptions, GetOptions, KeyValue, KvClient, PutOptions, Txn,
    TxnOp, TxnOpResponse,
};
use flare_core::ErrorKind;
use flare_core::port::{Expect, StoreRevision};

use super::{kv, store_revision};
use crate::codec::{self, Mark};
use crate::error::{self, Failure, Next};
use crate::members::Answer;

/// A revision that no key has; nought would be that of every key that is not there.
const NEVER: i64 = -1;

/// A change of one key.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) operation: &'static str,
    pub(super) key: Vec<u8>,
    /// What is written; nothing is a delete.
    pub(super) put: Option<Put>,
    pub(super) expect: Expect,
}

/// A value as it is stored.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) mark: Mark,
    pub(super) value: Vec<u8>,
    /// The lease it is bound to; nought is none.
    pub(super) lease: i64,
}

/// What became of a change.
#[derive(Debug)]
pub(super) enum Made {
    /// It took place.
    At(StoreRevision),
    /// The key was not as expected but like this.
    Conflict(Option<KeyValue>),
}

impl Change {
    /// Makes it, with one member.
    pub(super) async fn make(&self, client: Client, in_doubt: bool) -> Answer<Made> {
        let mut kv = kv(&client);
        let mut expect = self.expect;
        if in_doubt && self.put.is_some() && expect == Expect::Anything {
            let found = self.read(&mut kv).await?;
            if let Some(made) = self.recognize(found.as_ref()) {
                return Ok(made);
            }
            expect = as_found(found.as_ref());
        }
        loop {
            let answer = kv.txn(self.transaction(expect)).await;
            let answer = answer.map_err(|error| error::from_client(self.operation, &error))?;
            if answer.succeeded() {
                return Ok(Made::At(store_revision(self.operation, answer.header())?));
            }
            let found = answer.op_responses().into_iter().find_map(|response| match response {
                TxnOpResponse::Get(mut read) => read.take_kvs().pop(),
                _ => None,
            });
            if let Some(made) = self.recognize(found.as_ref()) {
                return Ok(made);
            }
            if self.expect == Expect::Anything {
                // Somebody was quicker since we looked.
                expect = as_found(found.as_ref());
            } else if in_doubt && self.put.is_none() && found.is_none() {
                let detail = "the key is gone, and nobody said whether we deleted it";
                return Err(Failure::new(self.operation, ErrorKind::Timeout, Next::Stop, detail));
            } else {
                return Ok(Made::Conflict(found));
            }
        }
    }

    /// What was found, if it is what we wrote.
    fn recognize(&self, found: Option<&KeyValue>) -> Option<Made> {
        let (put, found) = (self.put.as_ref()?, found?);
        codec::is_of(put.mark, found.value())
            .then(|| Made::At(codec::revision(found.mod_revision())))
    }

    async fn read(&self, kv: &mut KvClient) -> Answer<Option<KeyValue>> {
        let read = kv.get(self.key.clone(), None).await;
        let mut read = read.map_err(|error| error::from_client(self.operation, &error))?;
        Ok(read.take_kvs().pop())
    }

    fn transaction(&self, expect: Expect) -> Txn {
        let key = self.key.clone();
        let change = match &self.put {
            Some(put) => {
                let options = PutOptions::new().with_lease(put.lease);
                TxnOp::put(key.clone(), put.value.clone(), Some(options))
            }
            None => TxnOp::delete(key.clone(), Some(DeleteOptions::new())),
        };
        let condition = match expect {
            Expect::Anything => return Txn::new().and_then([change]),
            Expect::Absent => Compare::create_revision(key.clone(), CompareOp::Equal, 0),
            Expect::At(revision) => {
                let number = i64::try_from(revision.get()).ok().filter(|number| *number > 0);
                Compare::mod_revision(key.clone(), CompareOp::Equal, number.unwrap_or(NEVER))
            }
        };
        let look = TxnOp::get(key, Some(GetOptions::new()));
        Txn::new().when([condition]).and_then([change]).or_else([look])
    }
}

fn as_found(found: Option<&KeyValue>) -> Expect {
    found.map_or(Expect::Absent, |found| Expect::At(codec::revision(found.mod_revision())))
}
