//! Whose turn it is, of the clients that want to make requests, by what became of those they made. Pure.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::pool::Pool;
use crate::model::SubscriptionId;

/// No client takes more than this part of the permits at once.
const SHARE: usize = 8;
/// How much one request says about how quick its client is.
const WEIGHT: f64 = 1.0 / 8.0;

/// The permits of all requests of a runtime, and who waits for some.
///
/// Every client, which is all lanes of a subscription, has one permit of its own. The others are shared as
/// [`Pool`] says. Of those who wait, the client goes first that has the fewest requests under way,
/// and of two with as many the one that waits longer.
///
/// Beside that, few requests are *young* at a time: those are what keeps the processor busy. The client
/// that is first in line has as many permits at once as it wants (no more than a part of all), and waits
/// until so many may be young: a lane that sends, and stores, several together does so for less.
#[derive(Debug)]
pub(super) struct Sharing {
    pool: Pool,
    young: usize,
    young_limit: usize,
    /// Most permits that are given at once.
    most: usize,
    /// SendLimit that are taken, clients' own included.
    taken: usize,
    clients: HashMap<SubscriptionId, Client>,
    /// Clients in line, first those that are quick, then those that are slow: what may be given to one
    /// of a kind may be given to the one before it.
    lines: [BTreeSet<SharingTurn>; 2],
    tickets: u64,
}

/// A request for permits that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ticket {
    client: SubscriptionId,
    number: u64,
}

impl Ticket {
    /// Whose request it is.
    pub(super) fn client(&self) -> SubscriptionId {
        self.client
    }
}

/// Where a client stands in line: what it holds, and the oldest of what it asks for.
type SharingTurn = (usize, u64, SubscriptionId);

/// What a client has and wants.
#[derive(Debug)]
struct Client {
    /// Lanes that may ask for it.
    lanes: usize,
    taken: usize,
    /// From 0, quick, to 1, slow.
    slowness: f64,
    asked: VecDeque<AskedPermits>,
}

#[derive(Debug)]
struct AskedPermits {
    number: u64,
    wanted: usize,
}

impl Client {
    /// Who has not answered yet may be anything.
    fn new() -> Self {
        Self { lanes: 0, taken: 0, slowness: 1.0, asked: VecDeque::new() }
    }

    fn is_slow(&self) -> bool {
        self.slowness > 0.5
    }

    /// SendLimit it has of those that are shared.
    fn shared(&self) -> u64 {
        self.taken.saturating_sub(1) as u64
    }
}

impl Sharing {
    pub(super) fn new(limit: usize, young_limit: usize) -> Self {
        Self {
            pool: Pool::new(limit as u64),
            young: 0,
            young_limit,
            most: (limit.min(young_limit) / SHARE).max(1),
            taken: 0,
            clients: HashMap::new(),
            lines: [BTreeSet::new(), BTreeSet::new()],
            tickets: 0,
        }
    }

    /// SendLimit that are taken, and how many of them are of young requests.
    pub(super) fn taken(&self) -> (usize, usize) {
        (self.taken, self.young)
    }

    /// A lane of a client begins.
    pub(super) fn join(&mut self, id: SubscriptionId) {
        self.clients.entry(id).or_insert_with(Client::new).lanes += 1;
    }

    /// A lane of a client ends; requests it made may end later.
    pub(super) fn leave(&mut self, id: SubscriptionId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.lanes = client.lanes.saturating_sub(1);
        }
        self.forget(id);
    }

    /// Whether a client is slow, or has not shown yet that it is not.
    pub(super) fn is_slow(&self, id: SubscriptionId) -> bool {
        self.clients.get(&id).is_none_or(Client::is_slow)
    }

    /// Takes up to `wanted` permits, if the client may have some now.
    pub(super) fn try_take(&mut self, id: SubscriptionId, wanted: usize) -> Option<usize> {
        if self.first().is_some() {
            // What there is is theirs who are in line; they wait for enough of it.
            return None;
        }
        let count = self.allowed(self.clients.get(&id)?, wanted);
        if count == 0 || self.young + count > self.young_limit.max(1) {
            return None;
        }
        self.give(id, count);
        Some(count)
    }

    /// Has a client wait for up to `wanted` permits.
    pub(super) fn wait(&mut self, id: SubscriptionId, wanted: usize) -> Ticket {
        self.tickets += 1;
        let number = self.tickets;
        self.change(id, |client| client.asked.push_back(AskedPermits { number, wanted }));
        Ticket { client: id, number }
    }

    /// Forgets what was asked for.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        self.change(ticket.client, |client| {
            client.asked.retain(|it| it.number != ticket.number);
        });
    }

    /// Gives permits to whose turn it is; `None` if it is no client's.
    pub(super) fn serve(&mut self) -> Option<(Ticket, usize)> {
        let (id, count) = self.first()?;
        if self.young + count > self.young_limit.max(1) {
            return None;
        }
        let mut number = None;
        self.change(id, |client| number = client.asked.pop_front().map(|it| it.number));
        self.give(id, count);
        number.map(|number| (Ticket { client: id, number }, count))
    }

    /// A request is not young any more, or its permit is kept for later.
    pub(super) fn aged(&mut self) {
        self.young = self.young.saturating_sub(1);
    }

    /// A permit that was kept is used.
    pub(super) fn used(&mut self) {
        self.young += 1;
    }

    /// A request showed whether its client is quick: it ended soon, or is under way for long.
    pub(super) fn showed(&mut self, id: SubscriptionId, slow: bool) {
        self.change(id, |client| {
            let to = if slow { 1.0 } else { 0.0 };
            client.slowness += (to - client.slowness) * WEIGHT;
        });
    }

    /// A permit is free again.
    pub(super) fn release(&mut self, id: SubscriptionId) {
        self.taken = self.taken.saturating_sub(1);
        self.change(id, |client| client.taken = client.taken.saturating_sub(1));
        self.forget(id);
    }

    /// Whose turn it is, and how many permits it may have once so many may be young.
    fn first(&self) -> Option<(SubscriptionId, usize)> {
        let [quick, slow] = self.lines.each_ref().map(BTreeSet::first);
        let slow_first = slow.is_some() && quick.is_none_or(|quick| slow < Some(quick));
        let heads = if slow_first { [slow, quick] } else { [quick, slow] };
        heads.into_iter().flatten().find_map(|(_, _, id)| {
            let client = self.clients.get(id)?;
            let wanted = client.asked.front()?.wanted;
            let count = self.allowed(client, wanted);
            (count > 0).then_some((*id, count))
        })
    }

    /// How many permits a client may have now.
    fn allowed(&self, client: &Client, wanted: usize) -> usize {
        let own = usize::from(client.taken == 0);
        let shared = self.pool.part(client.shared(), client.is_slow());
        let shared = usize::try_from(shared).unwrap_or(usize::MAX);
        shared.saturating_add(own).min(wanted.clamp(1, self.most))
    }

    fn give(&mut self, id: SubscriptionId, count: usize) {
        self.taken += count;
        self.young += count;
        self.change(id, |client| client.taken += count);
    }

    /// Changes a client; where it stands and what it is counted for follows.
    fn change(&mut self, id: SubscriptionId, change: impl FnOnce(&mut Client)) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let turn = |client: &Client| {
            let oldest = client.asked.front()?.number;
            Some((usize::from(client.is_slow()), (client.taken, oldest, id)))
        };
        let (stood, shared, slow) = (turn(client), client.shared(), client.is_slow());
        change(client);
        let stands = turn(client);
        if (shared, slow) != (client.shared(), client.is_slow()) {
            self.pool.give_back(shared, slow);
            self.pool.take(client.shared(), client.is_slow());
        }
        if stood != stands {
            if let Some((line, turn)) = stood {
                self.lines[line].remove(&turn);
            }
            if let Some((line, turn)) = stands {
                self.lines[line].insert(turn);
            }
        }
    }

    /// Forgets a client of which nothing is left.
    fn forget(&mut self, id: SubscriptionId) {
        let over = |it: &Client| it.lanes == 0 && it.taken == 0 && it.asked.is_empty();
        if self.clients.get(&id).is_some_and(over) {
            self.clients.remove(&id);
        }
    }
}

#[cfg(test)]
#[path = "sharing_tests.rs"]
mod tests;
