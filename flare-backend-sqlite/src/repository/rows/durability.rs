//! Takes what came of a request; gives whether it may go with the machine's power.
//!
//! Without it the row is as it was before the request, so that the request is made again, under the same id. That is
//! the truth unless the client holds less than the row then says, is to be left alone for a while, or was given up.

use flare_core::model::{Present, RowEffect};

/// Whether Flare finds out by itself, and tells the client nothing untrue, should this be gone.
pub(super) fn is_made_again(effect: &RowEffect) -> bool {
    match effect {
        // A row that does not say that the client holds it is in doubt for its next owner: see `Takeover::holding`.
        RowEffect::Settle { present: Present::Yes, not_before: None, .. }
        | RowEffect::Retry { .. } => true,
        // The row would say that the client holds what it has deleted, and the next put would be an update.
        RowEffect::Settle { .. } | RowEffect::GiveUp { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use flare_core::model::{
        Action, DeadLetter, DeadLetterId, DeathReason, Revision, Timestamp, Version,
    };

    use super::*;

    #[test]
    fn only_what_is_told_again_truthfully_may_be_lost() {
        let version = Version::live(Revision::new(3));
        let now = Timestamp::from_unix_seconds(100);
        let settled = |present, not_before| RowEffect::Settle { version, present, not_before };
        let first_failure = Some(now);
        let present = Present::Maybe;
        let retried = RowEffect::Retry { version, present, attempts: 1, due: now, first_failure };
        let id = DeadLetterId::from_bytes([7; 16]);
        let dead = DeadLetter::new(id, Action::Create, DeathReason::Exhausted, now);
        for (effect, may_go) in [
            (settled(Present::Yes, None), true),
            (retried, true),
            (settled(Present::Yes, Some(now)), false),
            (settled(Present::Maybe, None), false),
            (settled(Present::No, None), false),
            (RowEffect::GiveUp { version, present, dead }, false),
        ] {
            assert_eq!(is_made_again(&effect), may_go, "{effect:?}");
        }
    }
}
