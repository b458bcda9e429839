//! Takes the items of a batch; gives them in waves in which no key comes twice, so that what is
//! written side by side keeps the order of the batch for each key.

use std::collections::HashMap;
use std::hash::Hash;

/// Items with their places in the batch.
pub(super) type Wave<T> = Vec<(usize, T)>;

pub(super) fn waves<T, K: Hash + Eq>(items: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Wave<T>> {
    let mut waves: Vec<Wave<T>> = Vec::new();
    let mut seen: HashMap<K, usize> = HashMap::new();
    for (place, item) in items.into_iter().enumerate() {
        let turn = seen.entry(key(&item)).and_modify(|turn| *turn += 1).or_insert(0);
        if *turn == waves.len() {
            waves.push(Vec::new());
        }
        waves[*turn].push((place, item));
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_comes_twice_in_a_wave_and_order_is_kept() {
        let items = vec![("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)];
        let waves = waves(items, |(key, _)| *key);
        let expected = vec![
            vec![(0, ("a", 1)), (1, ("b", 1))],
            vec![(2, ("a", 2)), (4, ("b", 2))],
            vec![(3, ("a", 3))],
        ];
        assert_eq!(waves, expected);
    }
}
