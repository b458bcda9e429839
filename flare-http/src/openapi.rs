//! Takes the routes' own descriptions; gives the OpenAPI document of all of them, completed by what
//! is true of every route of a kind.

use axum::extract::State as Shared;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, Header, Object, Ref, RefOr, Required, Response as Described,
    Schema, Type,
};

use crate::extract::NoQuery;
use crate::options::State;
use crate::problem::Problem;
use crate::routes;
use crate::wire::problem::ErrorBody;

/// The OpenAPI 3.1 document of the routes.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    #[cfg(feature = "profile")]
    document.merge(ProfileDocument::openapi());
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            complete(operation);
        }
    }
    let components = document.components.get_or_insert_with(Components::default);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("bearer", bearer);
    for schema in components.schemas.values_mut() {
        close(schema);
    }
    document
}

/// The document itself.
#[utoipa::path(get, operation_id = "readOpenapi", path = "/openapi.json", tag = "node",
    responses((status = 200, description = "This document", body = Object)))]
pub(crate) async fn serve(Shared(state): Shared<State>, _: NoQuery) -> Result<Response, Problem> {
    Ok(([(CONTENT_TYPE, "application/json")], state.openapi()).into_response())
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Flare",
        description = "Tells clients when documents change: resources, subscriptions, documents.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    paths(
        routes::node::about,
        routes::node::status,
        routes::health::live,
        routes::health::ready,
        routes::node::metrics,
        serve,
        routes::cluster::health,
        routes::cluster::nodes,
        routes::cluster::slots,
        routes::cluster::drain,
        routes::pins::pin_slot,
        routes::pins::unpin_slot,
        routes::log::jobs,
        routes::log::log,
        routes::resources::list,
        routes::resources::create,
        routes::resources::read,
        routes::resources::delete,
        routes::subscriptions::list,
        routes::subscriptions::create,
        routes::subscriptions::read,
        routes::subscriptions::replace,
        routes::subscriptions::delete,
        routes::overview::list,
        routes::filters::test,
        routes::consumers::list,
        routes::consumers::create,
        routes::consumers::read,
        routes::consumers::replace,
        routes::consumers::delete,
        routes::consumers::test,
        routes::pulling::status,
        routes::pulling::pause,
        routes::pulling::resume,
        routes::pulling::rejects,
        routes::pulling::retry,
        routes::producers::list,
        routes::producers::create,
        routes::producers::read,
        routes::producers::replace,
        routes::producers::delete,
        routes::operations::status,
        routes::operations::pause,
        routes::operations::resume,
        routes::operations::retry,
        routes::operations::replay,
        routes::operations::dead_letters,
        routes::backfill::backfill,
        routes::backfill::cancel_backfill,
        routes::backfill::resync,
        routes::backfill::cancel_resync,
        routes::pins::pin_subscription,
        routes::pins::unpin_subscription,
        routes::passive::demand,
        routes::passive::pull,
        routes::passive::settle,
        routes::deliveries::list,
        routes::documents::read,
        routes::documents::put,
        routes::documents::delete,
    ),
    components(schemas(ErrorBody)),
    security((), ("bearer" = [])),
    tags(
        (name = "resources", description = "Kinds of documents"),
        (name = "subscriptions", description = "Clients' wishes to be told"),
        (name = "operations", description = "What can be asked of a subscription"),
        (name = "passive mode", description = "Clients that take changes when they like"),
        (name = "consumers", description = "What documents are pulled from"),
        (name = "consumer operations", description = "What can be asked of a consumer"),
        (name = "documents", description = "What clients are told of"),
        (name = "node", description = "This process"),
        (name = "cluster", description = "All processes"),
    )
)]
struct Document;

/// What the feature `profile` adds.
#[cfg(feature = "profile")]
#[derive(OpenApi)]
#[openapi(paths(routes::profile::profile))]
struct ProfileDocument;

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

/// Says of an object with known fields that it has no others, unless it says so itself.
fn close(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema
        && !object.properties.is_empty()
        && object.additional_properties.is_none()
    {
        object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    }
}

/// Adds the refusals that follow from what an operation takes, and the shape of all of them.
fn complete(operation: &mut Operation) {
    let takes_body = operation.request_body.is_some();
    let in_path = |parameter: &RefOr<Parameter>| {
        matches!(parameter, RefOr::T(Parameter { parameter_in: ParameterIn::Path, .. }))
    };
    let takes_id = operation.parameters.iter().flatten().any(in_path);
    let open = operation.security.is_some();
    let mut common = vec![
        ("400", "The request breaks a rule; field names where"),
        ("429", "Flare is full: come back after Retry-After"),
        ("500", "A fault of Flare's; the log has more, under the request's id"),
        ("503", "A store is away, or it took too long: come back after Retry-After"),
    ];
    if !open {
        common.push(("401", "There is no token, or none that is known"));
        common.push(("403", "The token does not allow this"));
    }
    if takes_id {
        common.push(("404", "There is nothing of that name"));
        common.push(("409", "It is there, but this version cannot read it"));
    }
    if takes_body {
        common.push(("408", "The body did not arrive in time"));
        common.push(("413", "The body is above the limit"));
        common.push(("415", "The body is not JSON"));
    }
    for (status, words) in common {
        let answers = &mut operation.responses.responses;
        answers.entry(status.to_owned()).or_insert_with(|| RefOr::T(Described::new(words)));
    }
    for (status, answer) in &mut operation.responses.responses {
        if let (true, RefOr::T(answer)) = (status.starts_with(['4', '5']), answer) {
            let shape = RefOr::Ref(Ref::from_schema_name("Error"));
            let content = ContentBuilder::new().schema(Some(shape)).build();
            let header = match status.as_str() {
                "401" => Some(("WWW-Authenticate", Type::String)),
                "429" | "503" => Some(("Retry-After", Type::Integer)),
                _ => None,
            };
            answer.headers.extend(header.map(|(name, kind)| {
                (name.to_owned(), RefOr::T(Header::new(Object::with_type(kind))))
            }));
            answer.content.entry("application/json".to_owned()).or_insert(RefOr::T(content));
        }
    }
    // What is asked of something that exists takes no body as well.
    let asks = |tag: &String| tag.ends_with("operations") || tag == "cluster";
    let says_nothing_without = operation.operation_id.as_deref() == Some("pinSlot");
    let optional = operation.tags.iter().flatten().any(asks) && !says_nothing_without;
    if let (true, Some(RefOr::T(body))) = (optional, &mut operation.request_body) {
        body.required = Some(Required::False);
    }
}
