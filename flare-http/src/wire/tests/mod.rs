//! Takes subscriptions and consumers as users write them; checks each rule of the table, and what a read shows.

mod consumer;
mod dead_letter;
mod described;
mod forms;
mod json;
mod properties;
mod table;
mod wrong;

use flare_core::model::{
    Invalid, ResourceId, Subscription, SubscriptionId, SubscriptionSpec, Timestamp,
};

use super::subscription::SubscriptionView;
use crate::subscription_from_json;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDw2hxhD0b";

fn read(json: &str) -> Result<SubscriptionSpec, Invalid> {
    read_bytes(json.as_bytes())
}

fn read_bytes(json: &[u8]) -> Result<SubscriptionSpec, Invalid> {
    subscription_from_json(json).map(|input| input.create())
}

/// A subscription with these further top-level fields.
fn with(fields: &str) -> Result<SubscriptionSpec, Invalid> {
    read(&format!(r#"{{"endpoint":{{"url":"http://h/{{id}}"}},{fields}}}"#))
}

/// A subscription with this `delivery`.
fn delivering(delivery: &str) -> Result<SubscriptionSpec, Invalid> {
    with(&format!(r#""delivery":{{{delivery}}}"#))
}

/// A subscription with this `endpoint`.
fn at(endpoint: &str) -> Result<SubscriptionSpec, Invalid> {
    read(&format!(r#"{{"endpoint":{{{endpoint}}}}}"#))
}

/// What is refused, as `field: reason`.
fn refusal<T: std::fmt::Debug>(result: Result<T, Invalid>) -> String {
    result.unwrap_err().to_string()
}

/// What a read shows of the settings alone.
fn shown(spec: &SubscriptionSpec) -> String {
    let (id, resource) = (SubscriptionId::from_bytes([1; 16]), ResourceId::from_bytes([2; 16]));
    let whole = Subscription::new(id, resource, spec.clone(), Timestamp::EPOCH);
    let whole = serde_json::to_string(&SubscriptionView::from(whole)).unwrap();
    let before = format!(r#"{{"id":"{id}","resource":"{resource}","generation":1,"#);
    let after = concat!(
        r#","status":"preparing","createdAt":"1970-01-01T00:00:00Z","#,
        r#""updatedAt":"1970-01-01T00:00:00Z"}"#,
    );
    let settings = whole.strip_prefix(&before).unwrap().strip_suffix(after).unwrap();
    format!("{{{settings}}}")
}
