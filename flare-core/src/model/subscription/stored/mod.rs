//! The form in which stores keep a subscription's settings: a JSON object with names of its own, whatever
//! REST and the model call them.
//!
//! - A name keeps its meaning. What is new is a further field, absent where it is not set: older versions
//!   leave it aside and keep it ([`KeptFields`]). Where leaving it aside would be wrong, the record that
//!   holds the text says so: see `RECORD_FORMAT`.
//! - Whatever was ever written is read: `tests/stored.rs` has it byte for byte.
//! - Should that not do one day, another form begins, and says its number in `form`.

mod delivery;
mod endpoint;

use secrecy::ExposeSecret;
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use self::delivery::{StoredContent, StoredDelivery};
use self::endpoint::StoredEndpoint;
use super::builder::SubscriptionBuilder;
use super::data::{Data, DataValue};
use super::mode::Mode;
use super::signing::Signing;
use super::spec::SubscriptionSpec;
use crate::model::Invalid;
use crate::model::entries::Entries;
use crate::model::kept::KeptFields;

/// The one form there is so far; a text that names none has it.
const FORM: u32 = 1;

/// The form of a subscription that a repository keeps: it holds the secrets, so it is for the
/// store alone. [`SubscriptionSpec::from_stored`] takes its text back.
///
/// ```
/// use flare_core::model::SubscriptionSpec;
///
/// let spec = SubscriptionSpec::post("http://127.0.0.1:9000/").build()?;
/// let text = serde_json::to_string(&spec.stored())?;
/// assert_eq!(SubscriptionSpec::from_stored(&text)?, spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stored<'a>(&'a SubscriptionSpec);

impl SubscriptionSpec {
    /// The form to keep, secrets included.
    pub fn stored(&self) -> Stored<'_> {
        Stored(self)
    }

    /// Reads the text of the [stored form](Self::stored). Fields that only a newer version knows are
    /// kept for the stored form alone. A refusal shows no value: it may be a secret.
    pub fn from_stored(text: &str) -> Result<Self, Invalid> {
        let mut spec =
            serde_json::from_str::<StoredSpec<Entries<_>>>(text).map_err(damaged)?.checked()?;
        let written = serde_json::to_string(&spec.stored()).map_err(damaged)?;
        spec.kept = KeptFields::beyond(&written, text);
        Ok(spec)
    }
}

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = StoredSpec::of(self.0, Secrets::Kept);
        if self.0.kept.is_empty() {
            return form.serialize(serializer);
        }
        let known = serde_json::to_string(&form).map_err(S::Error::custom)?;
        self.0.kept.put_back(&known).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// As it may be shown to anybody.
impl Serialize for SubscriptionSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredSpec::of(self, Secrets::Hidden).serialize(serializer)
    }
}

/// What serde says of a text, without the value that it found.
fn damaged(error: serde_json::Error) -> Invalid {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let reason = match text.rsplit_once("expected ") {
        Some((_, wanted)) => format!("must be {wanted}"),
        None => text.to_owned(),
    };
    Invalid::new("", format!("is damaged at column {column}: {reason}"))
}

/// What becomes of secrets.
#[derive(Clone, Copy)]
enum Secrets {
    Kept,
    Hidden,
}

/// The whole, with the client's values in the form `D`: as they are, or as text that is yet to be read.
#[derive(Serialize, Deserialize)]
struct StoredSpec<D> {
    #[serde(default = "first_form", skip_serializing_if = "is_first_form")]
    form: u32,
    endpoint: StoredEndpoint,
    #[serde(default)]
    delivery: StoredDelivery,
    #[serde(default)]
    content: StoredContent,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<D>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing: Option<StoredSigning>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    backfill: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredSigning {
    secrets: StoredSecrets,
}

/// Themselves or, where they are hidden, how many there are.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredSecrets {
    Kept(Vec<String>),
    Hidden(usize),
}

fn first_form() -> u32 {
    FORM
}

fn is_first_form(form: &u32) -> bool {
    *form == FORM
}

impl<'a> StoredSpec<&'a Data> {
    fn of(spec: &'a SubscriptionSpec, secrets: Secrets) -> Self {
        Self {
            form: FORM,
            endpoint: StoredEndpoint::of(&spec.endpoint, secrets),
            delivery: (&spec.delivery).into(),
            content: spec.content.into(),
            data: spec.data.as_ref(),
            filter: spec.filter.as_ref().map(|filter| filter.as_str().to_owned()),
            signing: spec.signing.as_ref().map(|signing| StoredSigning::of(signing, secrets)),
            mode: spec.mode,
            backfill: spec.backfill,
        }
    }
}

impl StoredSpec<Entries<Box<RawValue>>> {
    /// The settings, if they keep every rule.
    fn checked(self) -> Result<SubscriptionSpec, Invalid> {
        if self.form != FORM {
            let reason = format!("is {}, and this version reads {FORM} only", self.form);
            return Err(Invalid::new("form", reason));
        }
        let mut to = self.endpoint.give(SubscriptionBuilder::default());
        to = self.delivery.give(to)?.mode(self.mode).backfill(self.backfill);
        to = to.document(self.content.document).envelope(self.content.envelope);
        if let Some(Entries(entries)) = self.data {
            to = to.all_data(read_data(entries).map_err(|invalid| invalid.within("data"))?);
        }
        if let Some(filter) = self.filter {
            to = to.filter(filter);
        }
        match self.signing.map(|signing| signing.secrets) {
            Some(StoredSecrets::Kept(secrets)) => to = to.signing(secrets),
            Some(StoredSecrets::Hidden(_)) => {
                return Err(Invalid::new("signing.secrets", "must be a list"));
            }
            None => {}
        }
        to.build()
    }
}

fn read_data(entries: Vec<(String, Box<RawValue>)>) -> Result<Data, Invalid> {
    let mut data = Data::default();
    for (name, value) in entries {
        let value = DataValue::read(value.get()).map_err(|invalid| invalid.within(&name))?;
        data.add(name, value)?;
    }
    Ok(data)
}

impl StoredSigning {
    fn of(signing: &Signing, secrets: Secrets) -> Self {
        let texts =
            || signing.expose().iter().map(|text| text.expose_secret().to_owned()).collect();
        let secrets = match secrets {
            Secrets::Kept => StoredSecrets::Kept(texts()),
            Secrets::Hidden => StoredSecrets::Hidden(signing.count()),
        };
        Self { secrets }
    }
}
