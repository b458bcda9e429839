//! Nodes shed soon and seldom, and take back what they shed.

use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// A node that is looked at, and how often its weight changed.
struct Node {
    shedding: Shedding,
    now: Duration,
    kept: u32,
    changes: Vec<(Duration, u32)>,
}

impl Node {
    fn new() -> Self {
        let shedding = Shedding::new(Duration::ZERO);
        Self { shedding, now: Duration::ZERO, kept: WHOLE, changes: Vec::new() }
    }

    fn look(&mut self, busy: u64, after: Duration) {
        self.now += after;
        let kept = self.shedding.look(busy, self.now);
        assert!((FLOOR..=WHOLE).contains(&kept) && kept.abs_diff(self.kept) <= STEP);
        if kept != self.kept {
            self.kept = kept;
            self.changes.push((self.now, kept));
        }
    }

    /// So busy for so long, looked at as often as a node is.
    fn be(&mut self, busy: impl Fn(&Self) -> u64, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.look(busy(self), LOOK_EVERY);
        }
    }
}

#[test]
fn overload_costs_a_step_a_minute_down_to_the_floor_and_calm_brings_it_back() {
    let mut node = Node::new();
    node.be(|_| 100, 10 * MINUTE);
    let down: Vec<u32> = node.changes.drain(..).map(|(_, kept)| kept).collect();
    assert_eq!(down, [75, 50, 25]);
    node.be(|_| 30, 29 * MINUTE);
    assert_eq!(node.kept, 75, "late, and in steps");
    node.be(|_| 30, 2 * MINUTE);
    assert_eq!(node.kept, WHOLE);
    node.be(|_| 30, 600 * MINUTE);
    assert_eq!(node.changes.len(), 3);
}

#[test]
fn a_short_peak_or_one_that_nobody_saw_to_last_costs_nothing() {
    let mut node = Node::new();
    for _ in 0..100 {
        node.be(|_| 100, Duration::from_secs(50));
        node.be(|_| 85, LOOK_EVERY);
    }
    // Frozen in between, for instance.
    for _ in 0..100 {
        node.look(100, 2 * MINUTE);
    }
    assert_eq!(node.changes, []);
}

#[test]
fn a_step_up_is_taken_only_where_it_leaves_room() {
    for (steps, busy, rises) in [(1, 60, true), (1, 61, false), (2, 53, true), (2, 54, false)] {
        let mut node = Node::new();
        node.be(|_| 100, steps * MINUTE + 2 * LOOK_EVERY);
        let kept = WHOLE - steps * STEP;
        assert_eq!(node.kept, kept);
        node.be(|_| busy, 11 * MINUTE);
        assert_eq!(node.kept > kept, rises, "{busy} % busy with {kept} % of the weight");
    }
}

#[test]
fn load_that_follows_weight_finds_its_place_and_stays_there() {
    for load in 0..=400_u64 {
        let mut node = Node::new();
        node.be(|node| (load * u64::from(node.kept) / 100).min(100), 48 * 60 * MINUTE);
        assert!(node.changes.len() <= 3, "{load}: {:?}", node.changes);
        assert!(node.changes.iter().all(|(at, _)| *at <= 5 * MINUTE), "{load}");
    }
}

#[test]
fn load_that_does_not_follow_weight_makes_it_change_ever_more_seldom() {
    let mut node = Node::new();
    // All or nothing: the worst there is.
    node.be(|node| if node.kept > 50 { 100 } else { 0 }, 24 * 60 * MINUTE);
    assert!(node.changes.len() <= 26, "{} changes in a day", node.changes.len());
    let late = node.changes.iter().filter(|(at, _)| *at > 12 * 60 * MINUTE).count();
    assert!(late <= 10, "{late} changes in half a day");
}

/// How busy a node is, within a band, and how long after the last look that is seen.
fn signal(busy: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((busy, 1..40_u64), 0..2_000)
}

fn follow(signal: &[(u64, u64)]) -> Node {
    let mut node = Node::new();
    signal.iter().for_each(|(busy, secs)| node.look(*busy, Duration::from_secs(*secs)));
    node
}

proptest! {
    #[test]
    fn what_is_never_overloaded_sheds_nothing(signal in signal(0..=90)) {
        prop_assert_eq!(follow(&signal).changes.len(), 0);
    }

    #[test]
    fn what_is_never_calm_only_sheds_and_so_at_most_to_the_floor(signal in signal(61..=100)) {
        let node = follow(&signal);
        prop_assert!(node.changes.len() <= 3);
        prop_assert!(node.changes.is_sorted_by(|(_, before), (_, after)| before > after));
    }

    #[test]
    fn under_any_signal_changes_are_few_and_steps_up_far_apart(signal in signal(0..=100)) {
        let node = follow(&signal);
        let ups: Vec<Duration> = std::iter::once(&(Duration::ZERO, WHOLE))
            .chain(&node.changes)
            .zip(&node.changes)
            .filter(|((_, before), (_, after))| after > before)
            .map(|(_, (at, _))| *at)
            .collect();
        prop_assert!(ups.windows(2).all(|two| two[1] - two[0] >= REGAIN));
        // Whatever goes up came down, and at most to the floor.
        prop_assert!(node.changes.len() <= 2 * ups.len() + 3);
    }

    #[test]
    fn calm_brings_everything_back_whatever_was_before(signal in signal(0..=100)) {
        let mut node = follow(&signal);
        node.be(|_| 40, 3 * LONGEST_REGAIN + MINUTE);
        prop_assert_eq!(node.kept, WHOLE);
    }

    #[test]
    fn the_same_signal_gives_the_same_answer(signal in signal(0..=100)) {
        prop_assert_eq!(follow(&signal).changes, follow(&signal).changes);
    }
}
