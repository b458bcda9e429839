//! The server's expressions that steps and views are made of, by shorter names.

use mongodb::bson::{Bson, Document, doc};

pub(super) fn when(
    condition: impl Into<Bson>,
    then: impl Into<Bson>,
    otherwise: impl Into<Bson>,
) -> Document {
    doc! { "$cond": [condition.into(), then.into(), otherwise.into()] }
}

/// The items of an array for which the condition on `$$it` holds.
pub(super) fn filtered(array: &str, condition: Document) -> Document {
    doc! { "$filter": { "input": array, "as": "it", "cond": condition } }
}

/// The first of them, or null.
pub(super) fn first(array: &str, condition: Document) -> Document {
    doc! { "$ifNull": [{ "$first": filtered(array, condition) }, null] }
}

/// The items of an array, each made into what `to` makes of `$$it`.
pub(super) fn mapped(array: &str, to: Document) -> Document {
    doc! { "$map": { "input": array, "as": "it", "in": to } }
}

pub(super) fn appended(array: &str, item: Document) -> Document {
    doc! { "$concatArrays": [array, [item]] }
}
