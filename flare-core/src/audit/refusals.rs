//! Takes refusals as they come, however many; gives now and then one with their number. No await, no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::AuditSubject;

/// At least so long is between two entries about the same.
const EVERY: Duration = Duration::from_secs(60);
/// Different things that are remembered; while all of them are of late, others are not told.
const KINDS: usize = 16;

/// What was refused of late.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<AuditSubject, Refused>);

#[derive(Debug)]
struct Refused {
    told_at: Duration,
    /// How many have not been told.
    untold: u64,
}

impl Refusals {
    /// One more is refused; tells how many are to be told now, if any are.
    pub(super) fn one(&mut self, subject: &AuditSubject, now: Duration) -> Option<u64> {
        if !self.0.contains_key(subject) && self.0.len() >= KINDS {
            self.0.retain(|_, refused| refused.untold > 0 || refused.told_at + EVERY > now);
            if self.0.len() >= KINDS {
                return None;
            }
        }
        let Some(refused) = self.0.get_mut(subject) else {
            self.0.insert(subject.clone(), Refused { told_at: now, untold: 0 });
            return Some(1);
        };
        refused.untold = refused.untold.saturating_add(1);
        (now >= refused.told_at + EVERY).then(|| refused.tell(now))
    }

    /// All that have not been told: they are told now.
    pub(super) fn rest(&mut self, now: Duration) -> Vec<(AuditSubject, u64)> {
        let untold = self.0.iter_mut().filter(|(_, refused)| refused.untold > 0);
        untold.map(|(subject, refused)| (subject.clone(), refused.tell(now))).collect()
    }
}

impl Refused {
    fn tell(&mut self, now: Duration) -> u64 {
        self.told_at = now;
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_by_their_number() {
        let mut refusals = Refusals::default();
        let (one, other) = (AuditSubject::sign_in("no-token"), AuditSubject::sign_in("unknown"));
        assert_eq!(refusals.one(&one, at(1)), Some(1));
        for second in 1..60 {
            assert_eq!(refusals.one(&one, at(second)), None);
        }
        assert_eq!(refusals.one(&other, at(60)), Some(1), "another thing");
        assert_eq!(refusals.one(&one, at(61)), Some(60));
        assert_eq!(refusals.one(&one, at(120)), None);
        assert_eq!(refusals.rest(at(121)), [(one.clone(), 1)]);
        assert_eq!(refusals.rest(at(122)), []);
        assert_eq!(refusals.one(&one, at(180)), None, "told a minute ago, as part of the rest");
        assert_eq!(refusals.one(&one, at(181)), Some(2));
    }

    #[test]
    fn however_many_different_ones_there_are_few_are_remembered() {
        let mut refusals = Refusals::default();
        let told = (0..1_000).filter(|number| {
            let subject = AuditSubject::sign_in(&number.to_string());
            refusals.one(&subject, at(1)).is_some()
        });
        assert_eq!(told.count(), KINDS);
        assert_eq!(refusals.0.len(), KINDS);
        let later = AuditSubject::sign_in("later");
        assert_eq!(refusals.one(&later, at(61)), Some(1), "those of before are forgotten");
        assert_eq!(refusals.0.len(), 1);
    }
}
