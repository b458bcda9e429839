//! Runtimes of before every runtime was a node of a cluster: one of them held a key and worked all slots.
//! What it left is taken over once it has ended, and none of them starts beside a cluster.

use std::time::Duration;

use tracing::{info, warn};

use super::context::NodeContext;
use super::keys;
use crate::error::Result;
use crate::port::{Expect, Write, Written};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(500);

/// Returns once no such runtime works these stores, and none can begin to any more.
pub(crate) async fn outlast_lone_owner(context: &NodeContext) -> Result<()> {
    let mut waits = false;
    loop {
        let write = Write::new(keys::OWNER, "cluster").expect(Expect::Absent);
        match context.timed("write", context.lease.write(write)).await? {
            Written::Conflict(Some(owner)) if owner.lease.is_some() => {
                if !std::mem::replace(&mut waits, true) {
                    warn!(
                        "a runtime of an earlier version works all of these stores by itself: this \
                         one waits until it has ended"
                    );
                }
                context.sleep(LOOK).await;
            }
            Written::Conflict(None) => {}
            Written::At(_) | Written::Conflict(Some(_)) => {
                if waits {
                    info!("the runtime of an earlier version has ended");
                }
                return Ok(());
            }
        }
    }
}
