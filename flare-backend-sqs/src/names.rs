//! Takes the queues of the port; gives what SQS calls them, and back. The only place that knows how.

use flare_core::model::LaneId;
use flare_core::port::QueueName;

/// What the names of FIFO queues must end with.
const FIFO: &str = ".fifo";

/// What the queue of dead letters is called, after the prefix.
const DEAD_LETTERS: &str = "dead-letters";

/// The longest name of a queue.
const LONGEST: usize = 80;

/// A subscription (36 characters), a hyphen, a shard.
const LONGEST_LANE: usize = 36 + 1 + 5;

/// With the longest name of a lane's FIFO queue this makes the 80 characters that SQS allows.
/// Standard queues have the same limit: who changes to FIFO keeps the prefix.
pub(crate) const LONGEST_PREFIX: usize = LONGEST - 1 - LONGEST_LANE - FIFO.len();

/// What queues are called, and of which kind they are.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: String,
    /// Whether slots and lanes have FIFO queues; stages never do.
    fifo: bool,
}

impl Names {
    pub(crate) fn new(prefix: impl Into<String>, fifo: bool) -> Self {
        Self { prefix: prefix.into(), fifo }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether slots and lanes have FIFO queues.
    pub(crate) fn fifo(&self) -> bool {
        self.fifo
    }

    /// What all names begin with, those of others perhaps, too.
    pub(crate) fn start(&self) -> String {
        format!("{}-", self.prefix)
    }

    /// Whether a queue is a FIFO queue.
    pub(crate) fn is_fifo(&self, queue: &QueueName) -> bool {
        self.fifo && !matches!(queue, QueueName::Partition | QueueName::Spread)
    }

    /// What SQS calls a queue.
    pub(crate) fn of(&self, queue: &QueueName) -> String {
        let name = match queue {
            QueueName::Lane(lane) => lane.to_string(),
            other => other.to_string(),
        };
        self.full(&name, self.is_fifo(queue))
    }

    /// What SQS calls the queue where messages end that nobody could settle: standard queues and
    /// FIFO queues have one each.
    pub(crate) fn of_dead_letters(&self, fifo: bool) -> String {
        self.full(DEAD_LETTERS, fifo)
    }

    /// Which queue of ours SQS calls so; none of the other kind, and none for dead letters.
    pub(crate) fn parse(&self, name: &str) -> Option<QueueName> {
        let (start, fifo) = name.strip_suffix(FIFO).map_or((name, false), |start| (start, true));
        let rest = start.strip_prefix(&self.prefix)?.strip_prefix('-')?;
        let lane = rest.parse::<LaneId>().ok().map(QueueName::Lane);
        let other = || rest.parse().ok().filter(|it| !matches!(it, QueueName::Lane(_)));
        lane.or_else(other).filter(|queue| self.is_fifo(queue) == fifo)
    }

    fn full(&self, name: &str, fifo: bool) -> String {
        format!("{}-{name}{}", self.prefix, if fifo { FIFO } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use flare_core::model::SubscriptionId;
    use proptest::prelude::*;

    use super::*;

    fn queue() -> impl Strategy<Value = QueueName> {
        let lane = |(subscription, shard)| {
            QueueName::Lane(LaneId::new(SubscriptionId::from_bytes(subscription), shard))
        };
        prop_oneof![
            Just(QueueName::Partition),
            Just(QueueName::Spread),
            any::<u32>().prop_map(QueueName::Slot),
            any::<([u8; 16], u16)>().prop_map(lane),
        ]
    }

    /// Prefixes that look like parts of names, and any others.
    fn names() -> impl Strategy<Value = Names> {
        let odd = "(x|slot|spread|partition|dead-letters|-|slot-1|[0-9a-f]{8}){1,3}";
        let prefix = prop_oneof!["[A-Za-z0-9_-]{1,32}", odd];
        let prefix = prefix.prop_map(|it| it.chars().take(LONGEST_PREFIX).collect::<String>());
        (prefix, any::<bool>()).prop_map(|(prefix, fifo)| Names::new(prefix, fifo))
    }

    proptest! {
        #[test]
        fn a_name_comes_back_and_sqs_takes_it(names in names(), queue in queue()) {
            let name = names.of(&queue);
            prop_assert!(name.len() <= LONGEST, "{name} has {} characters", name.len());
            let bare = name.strip_suffix(FIFO).unwrap_or(&name);
            prop_assert!(bare.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
            prop_assert_eq!(names.parse(&name), Some(queue));
        }

        #[test]
        fn no_name_is_anybody_elses(
            mine in names(), theirs in names(), suffix in "[a-z0-9-]{0,9}", queue in queue(),
        ) {
            let longer = Names::new(format!("{}-{suffix}", mine.prefix), mine.fifo);
            for other in [theirs, longer] {
                if other.prefix != mine.prefix {
                    prop_assert_eq!(mine.parse(&other.of(&queue)), None);
                }
            }
            let other_kind = Names::new(mine.prefix(), !mine.fifo);
            let stays = matches!(queue, QueueName::Partition | QueueName::Spread);
            prop_assert_eq!(other_kind.parse(&mine.of(&queue)).is_some(), stays);
        }

        #[test]
        fn what_parses_is_named_so(names in names(), rest in "[a-z0-9+.-]{0,50}") {
            let name = format!("{}-{rest}", names.prefix);
            if let Some(queue) = names.parse(&name) {
                prop_assert_eq!(names.of(&queue), name);
            }
        }
    }

    #[test]
    fn queues_are_called_by_what_they_are_for() {
        let lane = QueueName::Lane(LaneId::new(SubscriptionId::from_bytes([7; 16]), 65_535));
        let queues = [QueueName::Partition, QueueName::Spread, QueueName::Slot(7), lane];
        let called = |fifo| queues.each_ref().map(|queue| Names::new("orders", fifo).of(queue));
        let uuid = "07070707-0707-0707-0707-070707070707";
        let expected = ["orders-partition", "orders-spread", "orders-slot-7"];
        assert_eq!(called(false)[..3], expected);
        assert_eq!(called(false)[3], format!("orders-{uuid}-65535"));
        let expected = ["orders-partition", "orders-spread", "orders-slot-7.fifo"];
        assert_eq!(called(true)[..3], expected);
        assert_eq!(called(true)[3], format!("orders-{uuid}-65535.fifo"));
        let longest = Names::new("x".repeat(LONGEST_PREFIX), true).of(&queues[3]);
        assert_eq!(longest.len(), LONGEST);
    }

    #[test]
    fn dead_letters_are_no_queue_of_the_port() {
        for fifo in [false, true] {
            let names = Names::new("orders", fifo);
            assert_eq!(names.of_dead_letters(false), "orders-dead-letters");
            assert_eq!(names.of_dead_letters(true), "orders-dead-letters.fifo");
            assert_eq!(names.parse("orders-dead-letters"), None);
            assert_eq!(names.parse("orders-dead-letters.fifo"), None);
        }
    }
}
