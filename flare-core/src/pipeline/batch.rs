//! Takes any number of items; gives them in batches a port accepts.

/// The items in their order, at most `limit` of them together.
pub(crate) fn batches<T>(limit: usize, items: impl IntoIterator<Item = T>) -> Vec<Vec<T>> {
    let mut items = items.into_iter();
    let next = || {
        let batch: Vec<T> = items.by_ref().take(limit.max(1)).collect();
        (!batch.is_empty()).then_some(batch)
    };
    std::iter::from_fn(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_batch_is_longer_than_allowed_and_none_is_empty() {
        assert_eq!(batches(0, [1, 2]), [[1], [2]]);
        assert_eq!(batches(2, [1, 2, 3]), [vec![1, 2], vec![3]]);
        assert_eq!(batches(3, [1, 2, 3]), [vec![1, 2, 3]]);
        assert!(batches(3, Vec::<u8>::new()).is_empty());
    }
}
