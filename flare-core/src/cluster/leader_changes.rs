//! When the cluster gets another leader, as its picture shows it.

use super::mirror::View;
use crate::port::StoreRevision;

/// Tells each time that there is another leader.
#[derive(Debug)]
pub(crate) struct LeaderChanges {
    view: View,
    /// The last one that is known of.
    term: Option<StoreRevision>,
}

impl LeaderChanges {
    pub(crate) fn new(view: View) -> Self {
        Self { view, term: None }
    }

    /// Waits for the next election after the first one that is seen: at the first look nothing was
    /// missed. For ever, once the picture of the cluster is not kept any more.
    pub(crate) async fn next(&mut self) {
        loop {
            let known = self.term;
            let other = |term| Some(term) != known;
            let elected =
                self.view.wait_for(|state| state.leader.is_some_and(|it| other(it.term))).await;
            let Ok(term) = elected.map(|state| state.leader.map(|leader| leader.term)) else {
                return std::future::pending().await;
            };
            if std::mem::replace(&mut self.term, term).is_some() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio::sync::watch;

    use super::super::state::{Leader, State};
    use super::*;

    fn led(term: Option<u64>) -> Arc<State> {
        let leader = |term| Leader { node: None, term: StoreRevision::new(term), lease: None };
        Arc::new(State { leader: term.map(leader), ..State::default() })
    }

    #[test]
    fn each_new_leader_is_told_of_but_the_first() {
        let (sender, view) = watch::channel(led(None));
        let mut changes = LeaderChanges::new(view);
        let mut told = |term: Option<u64>| {
            sender.send_replace(led(term));
            changes.next().now_or_never().is_some()
        };
        assert!(!told(None) && !told(Some(3)) && !told(Some(3)) && !told(None));
        assert!(told(Some(7)));
        assert!(!told(Some(7)) && !told(None));
        assert!(told(Some(8)));
        drop(sender);
        assert!(changes.next().now_or_never().is_none());
    }
}
