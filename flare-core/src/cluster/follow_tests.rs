//! Takes plans in and out of order; checks what a node does about them.

use super::*;

fn id(number: u8) -> NodeId {
    NodeId::from_bytes([number; 16])
}

fn takeover(epoch: u64) -> Takeover {
    Takeover { epoch: Epoch::new(epoch), at: Timestamp::EPOCH }
}

fn granted(slots: &[u32], epoch: u64) -> PlannedChange {
    SlotChange::Granted { slots: slots.iter().copied().collect(), term: takeover(epoch) }
}

const ME: u8 = 1;

fn mine(epoch: u64) -> SlotState {
    SlotState::Owned { node: id(ME), takeover: takeover(epoch) }
}

fn leaving(epoch: u64, since: u64) -> SlotState {
    SlotState::Releasing { node: id(ME), takeover: takeover(epoch), to: id(2), since }
}

fn theirs(epoch: u64) -> SlotState {
    SlotState::Owned { node: id(2), takeover: takeover(epoch) }
}

fn plan(generation: u64, slots: &[SlotState]) -> Arc<SlotPlan> {
    let slots = slots.to_vec();
    Arc::new(SlotPlan { generation, term: 1, grace: Duration::from_secs(40), slots })
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn it_takes_what_is_its_own_by_epoch_and_stops_before_it_starts() {
    let mut follower = Follower::new(id(ME));
    let changes = follower.apply(&plan(1, &[mine(1), theirs(1), mine(2), mine(1)]), secs(0));
    assert_eq!(changes, [granted(&[0, 3], 1), granted(&[2], 2),]);
    let next = plan(2, &[leaving(1, 2), mine(3), theirs(3), mine(4)]);
    assert_eq!(
        follower.apply(&next, secs(100)),
        [
            lost(vec![2, 3]).unwrap(),
            releasing(vec![0], secs(130)).unwrap(),
            granted(&[1], 3),
            granted(&[3], 4),
        ]
    );
    assert_eq!(follower.apply(&next, secs(200)), []);
    assert_eq!(
        follower.apply(&plan(1, &[mine(1); 4]), secs(200)),
        [],
        "an older plan says nothing"
    );
}

#[test]
fn it_confirms_what_it_finished_and_what_it_never_began() {
    let mut follower = Follower::new(id(ME));
    follower.apply(&plan(1, &[mine(1), mine(1), theirs(1)]), secs(0));
    // The third was its own in a plan it never read.
    follower.apply(&plan(3, &[leaving(1, 3), leaving(1, 3), leaving(2, 3)]), secs(0));
    let first = follower.confirmation(&StillHeld::default()).unwrap();
    assert_eq!(first, StillHeld { generation: 3, slots: [0, 1].into() });
    assert_eq!(follower.confirmation(&first), None, "nothing new to say");
    follower.done(&[(0, Epoch::new(1))]);
    let second = follower.confirmation(&first).unwrap();
    assert!(second.confirms(0, 3) && !second.confirms(1, 3));
    assert_eq!(follower.overdue(secs(29)), None);
    assert_eq!(follower.next_due(), Some(secs(30)));
    assert_eq!(follower.overdue(secs(30)), lost(vec![1]));
    assert!(follower.confirmation(&second).unwrap().confirms(1, 3));
    assert!(follower.is_idle());
}

#[test]
fn late_news_of_an_earlier_release_does_not_end_a_later_grant() {
    let mut follower = Follower::new(id(ME));
    follower.apply(&plan(1, &[mine(1)]), secs(0));
    follower.apply(&plan(2, &[leaving(1, 2)]), secs(0));
    follower.apply(&plan(3, &[mine(5)]), secs(0));
    follower.apply(&plan(4, &[leaving(5, 4)]), secs(0));
    follower.done(&[(0, Epoch::new(1))]);
    assert!(!follower.is_idle());
}

#[test]
fn once_closed_it_takes_nothing_more() {
    let mut follower = Follower::new(id(ME));
    follower.apply(&plan(1, &[mine(1), theirs(1)]), secs(0));
    assert_eq!(follower.close(secs(9)), releasing(vec![0], secs(9)));
    assert_eq!(follower.close(secs(9)), None);
    follower.done(&[(0, Epoch::new(1))]);
    assert_eq!(follower.apply(&plan(2, &[mine(1), mine(2)]), secs(0)), []);
    assert!(follower.is_idle());
}
