//! Takes Standard Webhooks secrets; gives their keys to the signing step and their text to
//! stores. Shows readers no more than how many there are, and never in an error.

use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use secrecy::{ExposeSecret, SecretSlice, SecretString};

use crate::model::Invalid;

const PREFIX: &str = "whsec_";
const FORM: &str = "must be \"whsec_\" and the base64 of 24 to 64 bytes, as of \
                    echo whsec_$(openssl rand -base64 32)";
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secrets notifications are signed with: one, or two while rotating.
///
/// `Debug` shows their number only.
///
/// ```
/// use flare_core::model::subscription::Signing;
///
/// let signing = Signing::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])?;
/// assert_eq!(format!("{signing:?}"), "Signing { secrets: 1 }");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Signing {
    keys: Vec<SecretSlice<u8>>,
}

/// What an input says of the secrets a subscription has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SigningChange {
    /// Nothing: they stay.
    #[default]
    Keep,
    /// They go.
    Remove,
    /// These instead.
    Set(Signing),
}

impl Signing {
    /// Takes one or two secrets, `whsec_` and the base64 (padded or not) of 24 to 64 bytes:
    /// `echo whsec_$(openssl rand -base64 32)` makes one.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, Invalid> {
        let keys = secrets.into_iter().enumerate().map(|(i, secret)| {
            key(secret.as_ref()).map_err(|invalid| invalid.within(&format!("secrets[{i}]")))
        });
        Self::of(keys.collect::<Result<_, _>>()?)
    }

    /// How many secrets there are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The keys to sign with, in the order given.
    pub fn keys(&self) -> impl Iterator<Item = &SecretSlice<u8>> {
        self.keys.iter()
    }

    /// The secrets as they were given (base64 always padded): for the stored form only.
    pub fn expose(&self) -> Vec<SecretString> {
        let text = |key: &SecretSlice<u8>| {
            SecretString::from(format!("{PREFIX}{}", BASE64.encode(key.expose_secret())))
        };
        self.keys.iter().map(text).collect()
    }

    fn of(keys: Vec<SecretSlice<u8>>) -> Result<Self, Invalid> {
        if !(1..=2).contains(&keys.len()) {
            return Err(Invalid::new("secrets", "must have one secret, or two while rotating"));
        }
        let signing = Self { keys };
        if let [first, second] = signing.keys.as_slice()
            && first.expose_secret() == second.expose_secret()
        {
            return Err(Invalid::new("secrets[1]", "must differ from the other secret"));
        }
        Ok(signing)
    }
}

fn key(secret: &str) -> Result<SecretSlice<u8>, Invalid> {
    let encoded = secret.strip_prefix(PREFIX).ok_or_else(|| Invalid::new("", FORM))?;
    let key = BASE64.decode(encoded).map_err(|_| Invalid::new("", FORM))?;
    let key = SecretSlice::from(key);
    if !(24..=64).contains(&key.expose_secret().len()) {
        return Err(Invalid::new("", FORM));
    }
    Ok(key)
}

impl PartialEq for Signing {
    /// Compares what the host itself holds; not for checking a signature.
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.keys.iter().zip(&other.keys);
        self.count() == other.count() && pairs.all(|(a, b)| a.expose_secret() == b.expose_secret())
    }
}

impl Eq for Signing {}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing").field("secrets", &self.count()).finish()
    }
}
