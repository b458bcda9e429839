//! Takes the collections and indexes an area needs; gives a step for each that is missing or
//! different, and takes it. Indexes that are not in the schema are their host's.

use flare_core::Result;
use flare_core::port::Step;

use super::MongoUpkeep;
use crate::error;
use crate::schema::{
    Area, CollectionSpec, Definition, IndexSpec, Lack, create_collection, create_index, lacks,
};

const OPERATION: &str = "apply";
/// IndexNotFound: somebody else has just dropped it.
const NO_INDEX: i32 = 27;

/// A collection or an index that is to be made.
#[derive(Debug)]
pub(super) enum Shape {
    Collection(&'static CollectionSpec),
    Index(&'static CollectionSpec, &'static IndexSpec),
    /// An index that takes the place of one of another definition.
    Reindex(&'static CollectionSpec, &'static IndexSpec),
}

fn collection_step(collection: &CollectionSpec) -> Step {
    let subject = format!("collection {}", collection.full_name());
    Step::create(subject, format!("it holds {}", collection.holds))
}

fn index_subject(collection: &CollectionSpec, index: &IndexSpec) -> String {
    format!("index {} of {}", index.name, collection.full_name())
}

fn index_step(collection: &CollectionSpec, index: &IndexSpec) -> Step {
    Step::create(index_subject(collection, index), format!("it answers: {}", index.answers))
}

fn reindex_step(collection: &CollectionSpec, index: &IndexSpec, actual: &Definition) -> Step {
    let reason = format!(
        "it has to be {}, to answer: {}; it is dropped and built again, which takes its time in a \
         large collection",
        Definition::wanted(index),
        index.answers
    );
    Step::update(index_subject(collection, index), reason).planned_from(actual)
}

fn step(lack: &Lack) -> Step {
    match lack {
        Lack::Collection(collection) => collection_step(collection),
        Lack::Index(collection, index) => index_step(collection, index),
        Lack::Differing(collection, index, actual) => reindex_step(collection, index, actual),
    }
}

impl Shape {
    /// What a step makes, if it is one that [`MongoUpkeep::misshapen`] could have planned.
    pub(super) fn of_step(area: Area, step: &Step) -> Option<Self> {
        let of_index = |collection: &'static CollectionSpec, index: &'static IndexSpec| {
            if index_step(collection, index).id == step.id {
                return Some(Self::Index(collection, index));
            }
            let differing = format!("update {}, from ", index_subject(collection, index));
            step.id.starts_with(&differing).then_some(Self::Reindex(collection, index))
        };
        area.collections().iter().find_map(|collection| {
            if collection_step(collection).id == step.id {
                return Some(Self::Collection(collection));
            }
            collection.indexes.iter().find_map(|index| of_index(collection, index))
        })
    }
}

impl MongoUpkeep {
    /// What is missing or different, collections before their indexes.
    pub(super) async fn misshapen(&self) -> Result<Vec<Step>> {
        let lacks = lacks(&self.connection, "plan", self.area.collections()).await?;
        Ok(lacks.iter().map(step).collect())
    }

    /// Makes a collection or an index, if it is still missing, or different in the same way.
    pub(super) async fn reshape(&self, shape: Shape, planned: &Step) -> Result<bool> {
        let connection = &self.connection;
        let now = lacks(connection, OPERATION, self.area.collections()).await?;
        if !now.iter().any(|lack| step(lack).id == planned.id) {
            return Ok(false);
        }
        match shape {
            Shape::Collection(collection) => {
                return create_collection(connection, OPERATION, collection).await;
            }
            Shape::Index(collection, index) => {
                create_index(connection, OPERATION, collection, index).await?;
            }
            Shape::Reindex(collection, index) => {
                self.drop_index(collection, index).await?;
                create_index(connection, OPERATION, collection, index).await?;
            }
        }
        Ok(true)
    }

    async fn drop_index(&self, collection: &CollectionSpec, index: &IndexSpec) -> Result<()> {
        let records = self.connection.collection(collection.name);
        match records.drop_index(index.name).await {
            Err(error) if error::code(&error) != Some(NO_INDEX) => {
                Err(error::from_driver(OPERATION, error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area::Repository;

    /// What a step makes, as text.
    fn made(step: &Step) -> Option<String> {
        Shape::of_step(AREA, step).map(|shape| match shape {
            Shape::Collection(collection) => collection.name.to_owned(),
            Shape::Index(collection, index) => format!("{}.{}", collection.name, index.name),
            Shape::Reindex(collection, index) => format!("{}.{}!", collection.name, index.name),
        })
    }

    #[test]
    fn every_step_is_known_by_its_id() {
        for collection in AREA.collections() {
            let name = collection.name;
            assert_eq!(made(&collection_step(collection)).as_deref(), Some(name));
            for index in collection.indexes {
                let full = format!("{name}.{}", index.name);
                assert_eq!(made(&index_step(collection, index)), Some(full.clone()));
                let differing = reindex_step(collection, index, &Definition::wanted(index));
                assert_eq!(made(&differing), Some(full + "!"));
            }
        }
    }

    #[test]
    fn what_is_not_in_the_schema_is_no_step() {
        for subject in ["collection flare_others", "collection rows", "index x of flare_rows"] {
            assert_eq!(made(&Step::create(subject, "")), None);
            assert_eq!(made(&Step::delete(subject, "")), None);
        }
        let rows = Step::create("collection flare_rows", "");
        assert!(Shape::of_step(Area::Lease, &rows).is_none(), "another area's");
    }
}
