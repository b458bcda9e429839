//! Takes the picture of the cluster; gives word each time that there is another leader. Decides nothing.

use super::mirror::View;
use crate::port::StoreRevision;

/// Hears of elections.
#[derive(Debug)]
pub(crate) struct Elections {
    view: View,
    /// The last one that is known of.
    term: Option<StoreRevision>,
}

impl Elections {
    pub(crate) fn new(view: View) -> Self {
        Self { view, term: None }
    }

    /// Waits for the next election after the first one that is seen: whoever looks for the first time
    /// has missed nothing. For ever, once nobody follows the cluster.
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
    fn each_new_leader_is_heard_of_but_the_first() {
        let (sender, view) = watch::channel(led(None));
        let mut elections = Elections::new(view);
        let mut heard = |term: Option<u64>| {
            sender.send_replace(led(term));
            elections.next().now_or_never().is_some()
        };
        assert!(!heard(None) && !heard(Some(3)) && !heard(Some(3)) && !heard(None));
        assert!(heard(Some(7)));
        assert!(!heard(Some(7)) && !heard(None));
        assert!(heard(Some(8)));
        drop(sender);
        assert!(elections.next().now_or_never().is_none());
    }
}
