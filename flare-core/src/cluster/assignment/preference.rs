//! Takes nodes' names and weights; gives for each slot which node it prefers: weighted rendezvous
//! hashing. A node that comes or goes changes no preference among the others.

/// Which nodes a slot prefers.
pub(super) struct Preference {
    nodes: Vec<Node>,
    /// With equal weights the hash alone decides, and no logarithm is needed.
    equal: bool,
}

struct Node {
    seed: u64,
    weight: u32,
}

impl Preference {
    /// Nodes in the caller's order; those of weight 0 are never preferred.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, weights: &[u32]) -> Self {
        let nodes: Vec<Node> = names
            .zip(weights)
            .map(|(name, weight)| Node { seed: hash_of(name), weight: *weight })
            .collect();
        let mut present = weights.iter().filter(|weight| **weight > 0);
        let first = present.next();
        let equal = present.all(|weight| Some(weight) == first);
        Self { nodes, equal }
    }

    /// The node this slot prefers among those that `may` have it.
    pub(super) fn first(&self, slot: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
        let slot = mix(slot as u64 ^ 0x9e37_79b9_7f4a_7c15);
        let may = |(at, node): &(usize, &Node)| node.weight > 0 && may(*at);
        let able = self.nodes.iter().enumerate().filter(may);
        let hashed = able.map(|(at, node)| (at, node, mix(slot ^ node.seed)));
        if self.equal {
            // The first of those with the greatest.
            return hashed.rev().max_by_key(|(.., hash)| *hash).map(|(at, ..)| at);
        }
        // The least -ln(u)/weight wins, for u in (0, 1]. It is never below (1-u)/weight, so most
        // nodes are out of the race without a logarithm.
        let mut best = (None, f64::INFINITY);
        for (at, node, hash) in hashed {
            let (u, weight) = (unit(hash), f64::from(node.weight));
            if (1.0 - u) < best.1 * weight {
                let score = -u.ln() / weight;
                if score < best.1 {
                    best = (Some(at), score);
                }
            }
        }
        best.0
    }
}

/// A number in (0, 1] out of the upper 53 bits.
#[allow(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
fn unit(hash: u64) -> f64 {
    ((hash >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// FNV-1a, stirred.
fn hash_of(name: &str) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mix(name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// The finalizer of SplitMix64: every bit of the input touches every bit of the answer.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(names: &[&str], weights: &[u32], slots: usize) -> Vec<usize> {
        let preference = Preference::new(names.iter().copied(), weights);
        let mut counts = vec![0; names.len()];
        for slot in 0..slots {
            counts[preference.first(slot, |_| true).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn slots_spread_by_weight() {
        let equal = counts(&["a", "b", "c", "d"], &[1, 1, 1, 1], 16_384);
        assert!(equal.iter().all(|count| count.abs_diff(4_096) < 250), "{equal:?}");
        let unequal = counts(&["a", "b", "c", "d"], &[1, 2, 0, 5], 16_384);
        assert_eq!(unequal[2], 0);
        for (count, expected) in unequal.iter().zip([2_048, 4_096, 0, 10_240_usize]) {
            assert!(count.abs_diff(expected) < 300, "{unequal:?}");
        }
    }

    #[test]
    fn without_a_node_only_its_slots_prefer_another() {
        for weights in [[1, 1, 1], [3, 1, 2]] {
            let preference = Preference::new(["a", "b", "c"].into_iter(), &weights);
            for slot in 0..1_000 {
                let all = preference.first(slot, |_| true);
                let without = preference.first(slot, |at| at != 1);
                assert!(all == Some(1) || all == without);
            }
        }
    }

    #[test]
    fn nobody_may_have_it() {
        let preference = Preference::new(["a"].into_iter(), &[1]);
        assert_eq!(preference.first(0, |_| false), None);
    }
}
