//! The calls of a coordination store, and what may answer them in its place.

use std::time::Duration;

use flare_core::Result;
use flare_core::port::{
    Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot, StoreRevision,
    Write, Written,
};

use super::calls::intercepted;
use super::{Call, Hooks, Intercepted, around};

intercepted! {
    /// What may answer the calls of a coordination store; unless it does, they are passed on.
    ///
    /// A watch is opened without [`before`](Hooks::before) and [`after`](Hooks::after).
    LeaseHooks for dyn Lease {
        /// Whether the store is as if it were in another process, which never learns that a holder of
        /// a lease has died.
        const ELSEWHERE: bool = false;

        /// In place of the call.
        fn watch(
            &self,
            inner: &dyn Lease,
            prefix: &str,
            from: StoreRevision,
        ) -> Scan<'static, KeyEvent> {
            inner.watch(prefix, from)
        }
    }

    Lease {
        one {
            fn grant(ttl: Duration) -> LeaseGrant;
            fn keep_alive(lease: LeaseId) -> LeaseGrant;
            fn revoke(lease: LeaseId) -> ();
            fn write(write: Write) -> Written;
            fn delete(key: &str, expect: Expect) -> Written;
            fn get(key: &str) -> Option<Entry>;
            fn list(prefix: &str) -> Snapshot;
        }
        also {
            fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
                self.hooks.watch(&*self.inner, prefix, from)
            }

            fn abandon(&self, lease: LeaseId) {
                if !H::ELSEWHERE {
                    self.inner.abandon(lease);
                    // Nobody waits for it, so only the handle that was told knows at once.
                    self.inner.again();
                }
            }

            fn facts(&self) -> LeaseFacts {
                if H::ELSEWHERE { LeaseFacts::default() } else { self.inner.facts() }
            }
        }
    }
}
