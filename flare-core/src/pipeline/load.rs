//! Takes tasks of a stage; gives what they have to do, resource by resource, each document once and
//! at its newest version, and the tasks again for what is left of it.

use std::collections::BTreeMap;

use crate::model::{DocumentUrl, PartitionId, ResourceId, Version};
use crate::port::task::{DOCUMENTS_PER_TASK, DocumentVersion, Task};

/// Documents of one resource, each at the version to spread.
pub(super) type Documents = BTreeMap<DocumentUrl, Version>;

/// What tasks have to do for one resource: by partition, or for partitions that are yet to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskLoad {
    pub(super) resource: ResourceId,
    parts: BTreeMap<Option<PartitionId>, Documents>,
}

impl TaskLoad {
    pub(super) fn new(resource: ResourceId) -> Self {
        Self { resource, parts: BTreeMap::new() }
    }

    /// The resource a task is about; `None` if it is another stage's.
    pub(super) fn resource_of(task: &Task) -> Option<ResourceId> {
        match task {
            Task::Partition { resource, .. } | Task::Spread { resource, .. } => Some(*resource),
            Task::Wake { .. } | Task::Refresh { .. } | Task::Restored => None,
        }
    }

    /// Adds a task of this resource.
    pub(super) fn add(&mut self, task: Task) {
        let (partition, documents) = match task {
            Task::Partition { documents, .. } => (None, documents),
            Task::Spread { partition, documents, .. } => (Some(partition), documents),
            Task::Wake { .. } | Task::Refresh { .. } | Task::Restored => return,
        };
        let newest = self.parts.entry(partition).or_default();
        for DocumentVersion { url, version } in documents {
            let known = newest.entry(url).or_insert(version);
            *known = (*known).max(version);
        }
    }

    /// How many documents it has, once for each partition.
    pub(super) fn len(&self) -> usize {
        self.parts.values().map(BTreeMap::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Leaves what is still to be done.
    pub(super) fn keep(
        &mut self,
        still: impl Fn(&DocumentUrl, Version, Option<PartitionId>) -> bool,
    ) {
        for (partition, documents) in &mut self.parts {
            documents.retain(|url, version| still(url, *version, *partition));
        }
        self.parts.retain(|_, documents| !documents.is_empty());
    }

    /// How many partitions it has something for.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Takes out what there is to do for one of the partitions, or for those yet to be found.
    pub(super) fn take_part(&mut self, index: usize) -> Option<(Option<PartitionId>, Documents)> {
        let partition = *self.parts.keys().nth(index)?;
        self.parts.remove_entry(&partition)
    }

    /// Takes out the documents that are not `wanted` here.
    pub(super) fn split(
        &mut self,
        mut wanted: impl FnMut(Option<PartitionId>, &DocumentUrl, Version) -> bool,
    ) -> Self {
        let mut rest = Self::new(self.resource);
        for (partition, documents) in &mut self.parts {
            let all = std::mem::take(documents).into_iter();
            let (here, there): (Documents, Documents) =
                all.partition(|(url, version)| wanted(*partition, url, *version));
            *documents = here;
            rest.put_back(*partition, there);
        }
        self.parts.retain(|_, documents| !documents.is_empty());
        rest
    }

    /// Puts back what was taken out.
    pub(super) fn put_back(&mut self, partition: Option<PartitionId>, documents: Documents) {
        if !documents.is_empty() {
            self.parts.insert(partition, documents);
        }
    }

    /// The same as tasks, as few as possible.
    pub(super) fn into_tasks(self) -> Vec<Task> {
        let resource = self.resource;
        let task = |partition: Option<PartitionId>, documents: Vec<DocumentVersion>| match partition
        {
            None => Task::Partition { resource, documents },
            Some(partition) => Task::Spread { resource, partition, documents },
        };
        let mut tasks = Vec::new();
        for (partition, documents) in self.parts {
            let documents = documents.into_iter();
            let documents: Vec<_> =
                documents.map(|(url, version)| DocumentVersion { url, version }).collect();
            let chunks = documents.chunks(DOCUMENTS_PER_TASK);
            tasks.extend(chunks.map(|documents| task(partition, documents.to_vec())));
        }
        tasks
    }
}

/// Takes up to `count` documents out, in their order.
pub(super) fn take(documents: &mut Documents, count: usize) -> Documents {
    let rest = match documents.keys().nth(count).cloned() {
        Some(first) => documents.split_off(&first),
        None => Documents::new(),
    };
    std::mem::replace(documents, rest)
}

/// The same, from one of them on and then from the first.
pub(super) fn take_from(
    documents: &mut Documents,
    first: Option<&DocumentUrl>,
    count: usize,
) -> Documents {
    let mut later = first.map_or_else(Documents::new, |first| documents.split_off(first));
    if later.is_empty() {
        return take(documents, count);
    }
    let taken = take(&mut later, count);
    documents.append(&mut later);
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Revision;

    fn document(number: u8, revision: i64) -> DocumentVersion {
        let url = DocumentUrl::parse(&format!("http://a.example/users/{number}")).unwrap();
        DocumentVersion { url, version: Version::live(Revision::new(revision)) }
    }

    fn resource() -> ResourceId {
        ResourceId::from_bytes([1; 16])
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever tasks come in: what goes out again is about the same documents, each once for a
        /// partition and at its newest version, in as few tasks as there can be.
        #[test]
        fn tasks_come_out_as_they_went_in_but_fewer(
            tasks in prop::collection::vec(
                (prop::option::of(0..3_u32), prop::collection::vec((0..120_u8, 0..4_i64), 0..60)),
                0..20,
            ),
        ) {
            let mut load = TaskLoad::new(resource());
            let mut expected: BTreeMap<(Option<u32>, DocumentUrl), Version> = BTreeMap::new();
            for (partition, documents) in tasks {
                let documents: Vec<_> =
                    documents.into_iter().map(|(number, revision)| document(number, revision)).collect();
                for DocumentVersion { url, version } in &documents {
                    let known = expected.entry((partition, url.clone())).or_insert(*version);
                    *known = (*known).max(*version);
                }
                load.add(match partition.map(PartitionId::new) {
                    None => Task::Partition { resource: resource(), documents },
                    Some(partition) => Task::Spread { resource: resource(), partition, documents },
                });
            }
            prop_assert_eq!(load.len(), expected.len());
            let mut counts = BTreeMap::<Option<u32>, (usize, usize)>::new();
            for task in load.into_tasks() {
                prop_assert_eq!(TaskLoad::resource_of(&task), Some(resource()));
                let (partition, documents) = match task {
                    Task::Partition { documents, .. } => (None, documents),
                    Task::Spread { partition, documents, .. } => (Some(partition.get()), documents),
                    other => panic!("{other:?}"),
                };
                let count = counts.entry(partition).or_default();
                *count = (count.0 + 1, count.1 + documents.len());
                for DocumentVersion { url, version } in documents {
                    prop_assert_eq!(expected.remove(&(partition, url)), Some(version));
                }
            }
            prop_assert!(expected.is_empty());
            prop_assert!(counts.values().all(|(tasks, all)| *tasks == all.div_ceil(DOCUMENTS_PER_TASK)));
        }

        #[test]
        fn taking_some_leaves_the_others(all in 0..20_u8, count in 0..30_usize) {
            let all: Documents =
                (0..all).map(|number| document(number, 1)).map(|it| (it.url, it.version)).collect();
            let mut left = all.clone();
            let taken = take(&mut left, count);
            prop_assert_eq!(taken.len(), count.min(all.len()));
            prop_assert_eq!(taken.into_iter().chain(left).collect::<Documents>(), all);
        }

        #[test]
        fn taking_from_anywhere_takes_all_in_the_end(
            all in 1..20_u8, first in 0..30_u8, count in 1..5_usize,
        ) {
            let all: Documents =
                (0..all).map(|number| document(number, 1)).map(|it| (it.url, it.version)).collect();
            let (mut left, mut taken) = (all.clone(), Documents::new());
            let first = document(first, 1).url;
            while !left.is_empty() {
                let some = take_from(&mut left, Some(&first), count);
                prop_assert!((1..=count).contains(&some.len()));
                taken.extend(some);
            }
            prop_assert_eq!(taken, all);
        }

        #[test]
        fn what_is_split_off_is_all_that_is_not_wanted(
            parts in prop::collection::btree_map(0..4_u32, 1..10_u8, 0..4), modulus in 1..5_u8,
        ) {
            let mut load = TaskLoad::new(resource());
            for (partition, count) in &parts {
                let documents = (0..*count).map(|number| document(number, 1)).collect();
                let partition = PartitionId::new(*partition);
                load.add(Task::Spread { resource: resource(), partition, documents });
            }
            let before = load.len();
            let mut number = 0;
            let rest = load.split(|_, _, _| {
                number += 1;
                number % modulus == 0
            });
            prop_assert_eq!(load.len(), before / usize::from(modulus));
            prop_assert_eq!(load.len() + rest.len(), before);
            prop_assert!(load.is_empty() == (load.parts() == 0));
        }
    }
}
