//! Takes subscriptions as users write them; checks each rule of the table, and the JSON forms.

mod forms;
mod properties;
mod table;
mod wrong;

use super::SubscriptionSpec;
use crate::model::Invalid;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDw2hxhD0b";

fn read(json: &str) -> Result<SubscriptionSpec, Invalid> {
    SubscriptionSpec::from_json(json.as_bytes())
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
