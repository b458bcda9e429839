//! Takes the ports a backend implements; gives them to the builder in one piece.

use std::sync::Arc;

use crate::port::{Lease, Part, Queue, Repository, Upkeep};
use crate::upkeep::{Caretaker, QueueUpkeep};

/// The ports a backend brings. Those it leaves out come from somewhere else.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Backend {
    /// Where documents, rows and subscriptions are kept.
    pub repository: Option<Arc<dyn Repository>>,
    /// What wakes stages and lanes.
    pub queue: Option<Arc<dyn Queue>>,
    /// Who works which lanes.
    pub lease: Option<Arc<dyn Lease>>,
    /// What keeps its stores in order.
    pub upkeep: Vec<Arc<dyn Upkeep>>,
}

impl Backend {
    /// A backend that brings nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// A backend that brings everything.
    pub fn new(
        repository: Arc<dyn Repository>,
        queue: Arc<dyn Queue>,
        lease: Arc<dyn Lease>,
    ) -> Self {
        let (repository, queue, lease) = (Some(repository), Some(queue), Some(lease));
        Self { repository, queue, lease, upkeep: Vec::new() }
    }

    /// The same, with this part, and what keeps it in order, from another backend.
    #[must_use]
    pub fn with(mut self, part: Part, from: &Self) -> Self {
        match part {
            Part::Repository => self.repository.clone_from(&from.repository),
            Part::Queue => self.queue.clone_from(&from.queue),
            Part::Lease => self.lease.clone_from(&from.lease),
        }
        self.upkeep.retain(|upkeep| upkeep.part() != part);
        self.upkeep.extend(from.upkeep.iter().filter(|upkeep| upkeep.part() == part).cloned());
        self
    }

    /// The same, with something more that keeps its stores in order.
    #[must_use]
    pub fn upkeep(mut self, upkeep: Arc<dyn Upkeep>) -> Self {
        self.upkeep.push(upkeep);
        self
    }

    /// The same, with its queues kept in order by what its repository knows; `name` is that of the
    /// queue's backend. One that lacks either is left as it is.
    #[must_use]
    pub fn queue_upkeep(self, name: &'static str) -> Self {
        let (Some(queue), Some(repository)) = (&self.queue, &self.repository) else {
            return self;
        };
        let upkeep = QueueUpkeep::new(name, Arc::clone(queue), Arc::clone(repository));
        self.upkeep(Arc::new(upkeep))
    }

    /// Plans and applies what its stores lack.
    pub fn caretaker(&self) -> Caretaker {
        Caretaker::new(self.upkeep.clone())
    }
}
