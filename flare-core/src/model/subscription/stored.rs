//! Takes a subscription; gives its two JSON forms, the one to show and the one to keep.
//! They differ in what is secret only: signing secrets, and headers that are credentials.

use serde::ser::Error;
use serde::{Serialize, Serializer};

use super::content::ContentOptions;
use super::data::Data;
use super::delivery::DeliveryOptions;
use super::endpoint::ExposedEndpoint;
use super::filter::Filter;
use super::mode::Mode;
use super::signing::Exposed;
use super::spec::SubscriptionSpec;

/// The form of a subscription that a repository keeps: it holds the secrets, so it is for the
/// store alone. [`SubscriptionSpec`]'s `Deserialize` takes it back.
///
/// ```
/// use flare_core::model::SubscriptionSpec;
///
/// let spec = SubscriptionSpec::post("http://127.0.0.1:9000/").build()?;
/// let text = serde_json::to_string(&spec.stored())?;
/// assert_eq!(serde_json::from_str::<SubscriptionSpec>(&text)?, spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stored<'a>(pub(crate) &'a SubscriptionSpec);

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let endpoint = ExposedEndpoint(&self.0.endpoint);
        let form = Form::new(self.0, endpoint, self.0.signing.as_ref().map(Exposed));
        if self.0.kept.is_empty() {
            return form.serialize(serializer);
        }
        let known = serde_json::to_string(&form).map_err(S::Error::custom)?;
        self.0.kept.put_back(&known).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// The JSON object, with the endpoint in the form `E` and the secrets in the form `S`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Form<'a, E, S> {
    endpoint: E,
    delivery: &'a DeliveryOptions,
    content: ContentOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a Filter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing: Option<S>,
    mode: Mode,
    backfill: bool,
}

impl<'a, E, S> Form<'a, E, S> {
    pub(crate) fn new(spec: &'a SubscriptionSpec, endpoint: E, signing: Option<S>) -> Self {
        Self {
            endpoint,
            delivery: &spec.delivery,
            content: spec.content,
            data: spec.data.as_ref(),
            filter: spec.filter.as_ref(),
            signing,
            mode: spec.mode,
            backfill: spec.backfill,
        }
    }
}
