//! Takes messages and a mapping; gives the changes they ask for, in waves: no document occurs twice in one, and
//! those of a document are in the order of its messages. Decides without asking anything.

use std::collections::HashMap;

use crate::model::consumer::{JudgeExpression, MappedChange, MappedDocument, Mapping, Rejection};
use crate::model::{Resource, TraceContext};
use crate::pipeline::ingest::{Change, ChangeOperation};

/// What the messages of a batch ask for.
#[derive(Debug, Default)]
pub(crate) struct MappedBatch {
    /// One after the other; each change with the place of its message.
    pub(crate) waves: Vec<Vec<(usize, Change)>>,
    /// Why a message becomes no document, or not all that it says: its place, and the first reason.
    pub(crate) rejections: HashMap<usize, Rejection>,
}

impl MappedBatch {
    /// Maps messages, given by their bodies; all of them in the trace that is named.
    pub(crate) fn of<'m>(
        resource: &Resource,
        mapping: &Mapping,
        judge: JudgeExpression<'_>,
        bodies: impl IntoIterator<Item = &'m [u8]>,
        trace: Option<&TraceContext>,
    ) -> Self {
        let mut batch = Self::default();
        // The wave after the last one that has a document.
        let mut next_waves: HashMap<String, usize> = HashMap::new();
        for (place, body) in bodies.into_iter().enumerate() {
            for mapped in mapping.map(resource, body, judge) {
                match mapped {
                    Ok(document) => {
                        let change = change_of(resource, document, trace.cloned());
                        let next = next_waves.entry(change.url.clone()).or_insert(0);
                        if batch.waves.len() == *next {
                            batch.waves.push(Vec::new());
                        }
                        batch.waves[*next].push((place, change));
                        *next += 1;
                    }
                    Err(rejection) => {
                        batch.rejections.entry(place).or_insert(rejection);
                    }
                }
            }
        }
        batch
    }
}

fn change_of(resource: &Resource, document: MappedDocument, trace: Option<TraceContext>) -> Change {
    let operation = match document.change {
        MappedChange::Put(content) => ChangeOperation::Put(content),
        MappedChange::Delete(revision) => {
            let shown = revision.map(|revision| resource.change.shown(revision).to_string());
            ChangeOperation::Delete(shown)
        }
    };
    Change { url: document.url.as_str().to_owned(), operation, trace }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::consumer::{DeleteInput, MappingInput};
    use crate::model::{IdSource, NewResource, Timestamp};

    fn resource() -> Resource {
        let new = NewResource::new("http://a.example/d/{id}").change_field("rev");
        let (endpoint, change) = new.check().unwrap();
        let now = Timestamp::from_unix_seconds(1);
        Resource::new(IdSource::seeded(1).next(now).into(), endpoint, change, now)
    }

    fn mapping() -> Mapping {
        let url = "http://a.example/d/{/id}".to_owned();
        let (pointer, equals) = ("/op".to_owned(), "d".into());
        let delete = Some(DeleteInput::Equals { pointer, equals });
        let input = MappingInput { url, delete, ..MappingInput::default() };
        Mapping::new(input).unwrap()
    }

    fn mapped(bodies: &[String]) -> MappedBatch {
        let judge = |_: &_, _: &[u8]| Ok(false);
        let bodies = bodies.iter().map(|it| it.as_bytes());
        MappedBatch::of(&resource(), &mapping(), &judge, bodies, None)
    }

    #[test]
    fn a_document_is_once_in_a_wave_and_a_bad_message_is_no_others_cost() {
        let bodies = [
            r#"{"id":"x","rev":1}"#,
            r#"{"id":"y","rev":1}"#,
            "no json",
            r#"{"id":"x","op":"d"}"#,
            r#"{"id":"x","rev":2}"#,
        ];
        let batch = mapped(&bodies.map(str::to_owned));
        let places: Vec<Vec<usize>> =
            batch.waves.iter().map(|wave| wave.iter().map(|(place, _)| *place).collect()).collect();
        assert_eq!(places, [vec![0, 1], vec![3], vec![4]]);
        assert_eq!(batch.rejections.keys().copied().collect::<Vec<_>>(), [2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_comes_each_document_keeps_its_order(
            messages in prop::collection::vec((0..4_u8, 0..9_u8, any::<bool>()), 0..40),
        ) {
            let body = |(id, rev, gone): &(u8, u8, bool)| {
                let op = if *gone { r#","op":"d""# } else { "" };
                format!(r#"{{"id":"{id}","rev":{rev}{op}}}"#)
            };
            let batch = mapped(&messages.iter().map(body).collect::<Vec<_>>());
            prop_assert!(batch.rejections.is_empty());
            let in_order: Vec<&(usize, Change)> = batch.waves.iter().flatten().collect();
            prop_assert_eq!(in_order.len(), messages.len());
            for (at, (place, change)) in in_order.iter().enumerate() {
                for (later, other) in &in_order[at + 1..] {
                    prop_assert!(change.url != other.url || place < later);
                }
            }
            for wave in &batch.waves {
                let urls: std::collections::HashSet<_> = wave.iter().map(|it| &it.1.url).collect();
                prop_assert_eq!(urls.len(), wave.len());
            }
        }
    }
}
