//! Takes weights and how many slots each node has; gives who has room, who has too much, and how
//! many slots go from whom to whom. Counts only: which slots those are is decided elsewhere.

/// How many slots everybody has, and should have.
pub(super) struct SlotShares {
    nodes: Vec<SlotShare>,
    slots: u128,
    /// The sum of all weights.
    weights: u128,
    /// How many slots the nodes below the band lack together.
    needed: usize,
}

#[derive(Clone)]
struct SlotShare {
    weight: u128,
    has: usize,
    /// floor(0.9 × fair share): below it a node has too little.
    low: usize,
    /// ceil(1.1 × fair share): above it a node has too much.
    high: usize,
}

impl SlotShares {
    pub(super) fn new(weights: &[u32], slots: usize) -> Self {
        let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let slots = slots as u128;
        // Without any weight every share is 0, whatever it is divided by.
        let whole = 10 * sum.max(1);
        let nodes: Vec<SlotShare> = weights
            .iter()
            .map(|weight| {
                let weight = u128::from(*weight);
                let low = count(9 * slots * weight / whole);
                let high = count((11 * slots * weight).div_ceil(whole));
                SlotShare { weight, has: 0, low, high }
            })
            .collect();
        let needed = nodes.iter().map(|node| node.low).sum();
        Self { nodes, slots, weights: sum, needed }
    }

    pub(super) fn give(&mut self, at: usize) {
        self.needed -= usize::from(self.is_under(at));
        self.nodes[at].has += 1;
    }

    pub(super) fn take(&mut self, at: usize) {
        self.nodes[at].has -= 1;
        self.needed += usize::from(self.is_under(at));
    }

    pub(super) fn needed(&self) -> usize {
        self.needed
    }

    pub(super) fn has_room(&self, at: usize) -> bool {
        self.nodes[at].has < self.nodes[at].high
    }

    pub(super) fn is_under(&self, at: usize) -> bool {
        self.nodes[at].has < self.nodes[at].low
    }

    /// What a node has beyond its fair share, in parts of a slot that are the same for all.
    fn excess(&self, at: usize) -> i128 {
        let node = &self.nodes[at];
        let (has, fair) = (node.has as u128 * self.weights, self.slots * node.weight);
        // Both are below 2^97: slots and weights have 32 bits each, and there are not 2^32 nodes.
        i128::try_from(has).unwrap_or(i128::MAX) - i128::try_from(fair).unwrap_or(i128::MAX)
    }

    /// Up to `moves` steps towards balance; `fixed` of each node's slots cannot move.
    pub(super) fn flow(&mut self, moves: usize, fixed: &[usize]) -> Flow {
        let mut flow =
            Flow { gives: vec![0; self.nodes.len()], takes: vec![0; self.nodes.len()], left: 0 };
        while flow.left < moves {
            let Some((from, to)) = self.step(fixed, &flow) else { break };
            self.take(from);
            self.give(to);
            flow.gives[from] += 1;
            flow.takes[to] += 1;
            flow.left += 1;
        }
        flow
    }

    /// From whom to whom one slot should go, if a node has too much or too little.
    fn step(&self, fixed: &[usize], flow: &Flow) -> Option<(usize, usize)> {
        let nodes = 0..self.nodes.len();
        // What came in this round stays: it is not there to be passed on yet.
        let movable = |at: &usize| self.nodes[*at].has > fixed[*at] && flow.takes[*at] == 0;
        let most = |only_over: bool| {
            nodes
                .clone()
                .filter(movable)
                .filter(|at| !only_over || self.nodes[*at].has > self.nodes[*at].high)
                .filter(|at| self.excess(*at) > 0)
                .max_by_key(|at| (self.excess(*at), std::cmp::Reverse(*at)))
        };
        let least = |only_under: bool| {
            nodes
                .clone()
                .filter(|at| !only_under || self.is_under(*at))
                .filter(|at| self.excess(*at) < 0 && flow.gives[*at] == 0)
                .min_by_key(|at| (self.excess(*at), *at))
        };
        match (most(true), least(true)) {
            (Some(from), Some(to)) => Some((from, to)),
            (Some(from), None) => least(false).map(|to| (from, to)),
            (None, Some(to)) => most(false).map(|from| (from, to)),
            (None, None) => None,
        }
    }
}

/// How many slots each node gives and takes in this round.
pub(super) struct Flow {
    gives: Vec<usize>,
    takes: Vec<usize>,
    left: usize,
}

impl Flow {
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    pub(super) fn gives(&self, at: usize) -> bool {
        self.gives[at] > 0
    }

    pub(super) fn takes(&self, at: usize) -> bool {
        self.takes[at] > 0
    }

    pub(super) fn pass(&mut self, from: usize, to: usize) {
        self.gives[from] -= 1;
        self.takes[to] -= 1;
        self.left -= 1;
    }
}

fn count(number: u128) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
