//! Takes a slot or a lane that is ours to work; gives it a task of its own, known to whoever has to
//! reach or end it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::directory::Worked;
use super::hear::{Hear, Whose};
use super::{Lanes, Role};
use crate::model::{LaneId, Placement, Resource, Subscription};
use crate::pipeline::lane::{self, FormerLanes, HandedRows, Lane, Restored};
use crate::pipeline::stop::stop;

impl Lanes {
    /// Listens to a slot's queue after a while.
    pub(super) fn listen(&mut self, slot: u32, after: Duration) {
        let Some(tenancy) = self.slots.get_mut(&slot) else { return };
        tenancy.listens = true;
        let stop = tenancy.stop();
        let context = Arc::clone(&self.context);
        let hear = Hear::new(&context, &self.directory, &self.tell, Whose::Slot(slot));
        let task = self.tasks.spawn(async move {
            if !after.is_zero() {
                context.sleep(after).await;
            }
            hear.listen(stop).await;
        });
        self.roles.insert(task.id(), Role { slot, lane: None });
        tenancy.took_up(task);
    }

    /// Has a lane worked, and its own queue listened to if it has one.
    pub(super) fn start(
        &mut self,
        id: LaneId,
        subscription: &Arc<Subscription>,
        resource: Arc<Resource>,
        moved: bool,
        former: FormerLanes,
    ) {
        let slot = self.context.slot_of(subscription);
        let Some(tenancy) = self.slots.get_mut(&slot) else { return };
        let (stopper, stop) = stop();
        let (updates, newest) = watch::channel(Arc::clone(subscription));
        let (restored, wake) = (Arc::<Restored>::default(), Arc::new(Notify::new()));
        let hold = self.directory.hold(id.subscription);
        let handed = Arc::<HandedRows>::default();
        let grant = tenancy.grant_of(id.subscription);
        let term = grant.term.clone();
        let lane = Lane {
            context: Arc::clone(&self.context),
            id,
            slot,
            term: term.clone(),
            groups: Arc::clone(&grant.groups),
            resource,
            subscription: Arc::clone(subscription),
            updates: newest,
            hold: Arc::clone(&hold),
            restored: Arc::clone(&restored),
            wake: Arc::clone(&wake),
            handed: Arc::clone(&handed),
            stop: stop.clone(),
            moved,
        };
        let work = lane::run(lane, self.places.clone(), former);
        let task = match self.context.settings.placement {
            Placement::Shared => self.tasks.spawn(work),
            Placement::Isolated => {
                let whose = Whose::Lane(id);
                let hear = Hear::new(&self.context, &self.directory, &self.tell, whose);
                self.tasks.spawn(hear.listen_while(stop, work))
            }
        };
        self.roles.insert(task.id(), Role { slot, lane: Some(id) });
        let lanes = subscription.spec.delivery().lanes();
        let task_id = task.id();
        let worked = Worked {
            slot,
            lanes,
            hold,
            restored,
            wake,
            handed,
            term,
            updates,
            stopper,
            task: task_id,
        };
        tenancy.took_up(task);
        self.directory.insert(id, worked);
        self.count();
    }
}
