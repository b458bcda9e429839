//! A revision as JSON has it.

use std::borrow::Cow;

use flare_core::model::ShownRevision;
use serde::Serialize;
use utoipa::openapi::schema::{KnownFormat, OneOfBuilder, Schema, SchemaFormat};
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

/// A revision: the integer or, where the resource has a format, RFC 3339.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct RevisionView(pub(crate) ShownRevision);

impl PartialSchema for RevisionView {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
        let number = ObjectBuilder::new().schema_type(Type::Integer).format(Some(format));
        let about = "A revision: the integer or, where the resource has a format, RFC 3339.";
        let either = OneOfBuilder::new().item(number).item(Object::with_type(Type::String));
        Schema::OneOf(either.description(Some(about)).build()).into()
    }
}

impl ToSchema for RevisionView {
    fn name() -> Cow<'static, str> {
        "Revision".into()
    }
}
