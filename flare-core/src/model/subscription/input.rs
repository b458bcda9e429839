//! Takes what a user sent to create or replace a subscription; gives the subscription it makes.
//! Never mixes old settings with new ones, but for what was never shown.

use super::builder::SubscriptionBuilder;
use super::content::ContentOptions;
use super::data::Data;
use super::delivery::DeliveryOptions;
use super::endpoint::EndpointDraft;
use super::filter::Filter;
use super::signing::{Signing, SigningChange};
use super::spec::SubscriptionSpec;
use crate::model::Invalid;
use crate::model::json::{Aside, Json, Kind};

/// The longest path of a field in a refusal.
const MAX_FIELD_CHARS: usize = 256;

/// A subscription as a user sends it, where leaving out `signing` is not the same as none.
///
/// ```
/// use flare_core::model::SubscriptionInput;
///
/// let first = SubscriptionInput::from_json(br#"{
///     "endpoint": {"url": "https://client.example/"},
///     "signing": {"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}
/// }"#)?.create();
/// let moved = br#"{"endpoint": {"url": "https://new.client.example/"}}"#;
/// let moved = SubscriptionInput::from_json(moved)?.replace(&first);
/// assert_eq!(moved.signing(), first.signing());
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInput {
    /// Without secrets: those are in the change.
    spec: SubscriptionSpec,
    signing: SigningChange,
}

impl SubscriptionInput {
    /// Reads what a user wrote. Null means not given, but for `signing`, where it removes.
    /// A refusal names the field's full path; it is empty where the whole is not a JSON object.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Invalid> {
        Json::parse(bytes).and_then(Self::read).map_err(shortened)
    }

    /// What it says of the secrets.
    pub fn signing(&self) -> &SigningChange {
        &self.signing
    }

    /// Makes it remove the secrets.
    #[must_use]
    pub fn without_signing(self) -> Self {
        Self { signing: SigningChange::Remove, ..self }
    }

    /// The new subscription.
    pub fn create(self) -> SubscriptionSpec {
        let signing = match self.signing {
            SigningChange::Set(signing) => Some(signing),
            SigningChange::Keep | SigningChange::Remove => None,
        };
        SubscriptionSpec { signing, ..self.spec }
    }

    /// The subscription that takes the place of `old`: what is not given is the default again,
    /// not what `old` had, except the secrets, headers that are sent back [masked](super::MASK) as a
    /// read showed them, and what only a newer version knows.
    pub fn replace(self, old: &SubscriptionSpec) -> SubscriptionSpec {
        let signing = match self.signing {
            SigningChange::Set(signing) => Some(signing),
            SigningChange::Keep => old.signing.clone(),
            SigningChange::Remove => None,
        };
        // What a newer version stored with it nobody could have sent to this one.
        let kept = old.kept.clone();
        let endpoint = self.spec.endpoint.clone().unmasked(&old.endpoint);
        SubscriptionSpec { endpoint, signing, kept, ..self.spec }
    }

    /// Reads the stored form: fields that this version does not know are kept.
    pub(crate) fn read_stored(json: Json<'_>) -> Result<Self, Invalid> {
        let aside = Aside::default();
        let mut input = Self::read(json.putting(&aside))?;
        input.spec.kept = aside.into_kept();
        Ok(input)
    }

    pub(crate) fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let mut fields = json.fields()?;
        if fields.take_nullable("status").is_some() {
            return Err(Invalid::new("status", "is read-only"));
        }
        let signing = match fields.take_nullable("signing") {
            None => SigningChange::Keep,
            Some(signing) if signing.kind() == Kind::Null => SigningChange::Remove,
            Some(signing) => {
                SigningChange::Set(fields.within("signing", signing, Signing::read)?)
            }
        };
        let mut draft = SubscriptionBuilder::default();
        draft.endpoint = fields.read("endpoint", EndpointDraft::read)?.unwrap_or_default();
        draft.delivery = fields.read("delivery", DeliveryOptions::read)?.unwrap_or_default();
        draft.content = fields.read("content", ContentOptions::read)?.unwrap_or_default();
        draft.data = fields.read("data", Data::read)?;
        draft.filter = fields.read("filter", |filter| Filter::new(filter.string()?))?;
        draft.mode = fields.read("mode", |mode| mode.string()?.parse())?.unwrap_or_default();
        draft.backfill = fields.read("backfill", Json::bool)?.unwrap_or_default();
        fields.finish(&[
            "endpoint", "delivery", "content", "data", "filter", "signing", "mode", "backfill",
        ])?;
        Ok(Self { spec: draft.build()?, signing })
    }
}

/// A path may hold keys the user made up: one of any length is not sent back whole.
fn shortened(invalid: Invalid) -> Invalid {
    match invalid.field().char_indices().nth(MAX_FIELD_CHARS) {
        None => invalid,
        Some((end, _)) => {
            let field = format!("{}…", invalid.field().get(..end).unwrap_or_default());
            Invalid::new(field, invalid.reason().to_owned())
        }
    }
}

impl TryFrom<SubscriptionBuilder> for SubscriptionInput {
    type Error = Invalid;

    fn try_from(builder: SubscriptionBuilder) -> Result<Self, Invalid> {
        builder.build().map(Self::from)
    }
}

impl From<SubscriptionSpec> for SubscriptionInput {
    /// A subscription without secrets keeps those of the one it replaces; see
    /// [`without_signing`](SubscriptionInput::without_signing).
    fn from(mut spec: SubscriptionSpec) -> Self {
        let signing = spec.signing.take().map_or(SigningChange::Keep, SigningChange::Set);
        Self { spec, signing }
    }
}
