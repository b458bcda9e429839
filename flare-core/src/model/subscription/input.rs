//! Takes what a user sent to create or replace a subscription; gives the subscription it makes.
//! Never mixes old settings with new ones, but for what was never shown.

use super::builder::SubscriptionBuilder;
use super::signing::SigningChange;
use super::spec::SubscriptionSpec;
use crate::model::Invalid;

/// A subscription as a user sends it, where leaving out `signing` is not the same as none.
///
/// ```
/// use flare_core::model::{SubscriptionInput, SubscriptionSpec};
///
/// let first = SubscriptionSpec::post("https://client.example/")
///     .signing(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
///     .build()?;
/// let moved = SubscriptionInput::try_from(SubscriptionSpec::post("https://new.client.example/"))?;
/// assert_eq!(moved.clone().replace(&first).signing(), first.signing());
/// assert_eq!(moved.without_signing().replace(&first).signing(), None);
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionInput {
    /// Without secrets: those are in the change.
    spec: SubscriptionSpec,
    signing: SigningChange,
}

impl SubscriptionInput {
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
        // What a newer version stored with it could not have been sent to this one.
        let kept = old.kept.clone();
        let endpoint = self.spec.endpoint.clone().unmasked(&old.endpoint);
        SubscriptionSpec { endpoint, signing, kept, ..self.spec }
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
