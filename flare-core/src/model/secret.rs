//! Takes secrets of a configuration; gives to all who may see it a mask, and what a URI says without its secrets.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serializer};

const MASK: &str = "***";

/// What an option of a URI is called that holds a secret or may hold some, in lower case: a part of its name.
const SECRET_OPTIONS: [&str; 4] = ["password", "secret", "token", "mechanismproperties"];

/// For `#[serde(with = "flare_core::model::secret")]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// For `#[serde(with = "flare_core::model::secret")]`: a mask. An empty one is no secret, and seeing that it is
/// empty helps.
pub fn serialize<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if secret.expose_secret().is_empty() { "" } else { MASK })
}

/// For `#[serde(with = "flare_core::model::secret::uri")]`: a URI that may have secrets in it.
pub mod uri {
    use secrecy::{ExposeSecret, SecretString};
    use serde::Serializer;

    pub use super::deserialize;

    /// The URI without what only its server should know.
    pub fn serialize<S: Serializer>(uri: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::mask_uri(uri.expose_secret()))
    }
}

/// A URI without what only its server should know. Hides rather too much than too little: one that is not well
/// formed may have a secret anywhere.
///
/// ```
/// use flare_core::model::secret::mask_uri;
/// assert_eq!(mask_uri("mongodb://ada:hush@db/orders"), "mongodb://ada:***@db/orders");
/// ```
pub fn mask_uri(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return if uri.is_empty() { String::new() } else { MASK.to_owned() };
    };
    // The last one: a password that was not percent-encoded may have some of its own.
    let (user, place) = match rest.rsplit_once('@') {
        None => (String::new(), rest),
        Some((user, place)) => match user.split_once(':') {
            None => (format!("{user}@"), place),
            Some((name, _)) => (format!("{name}:{MASK}@"), place),
        },
    };
    let place = match place.split_once('?') {
        None => place.to_owned(),
        Some((place, options)) => {
            let options: Vec<String> = options.split('&').map(mask_option).collect();
            format!("{place}?{}", options.join("&"))
        }
    };
    format!("{scheme}://{user}{place}")
}

fn mask_option(option: &str) -> String {
    match option.split_once('=') {
        Some((name, _)) if SECRET_OPTIONS.iter().any(|it| name.to_lowercase().contains(it)) => {
            format!("{name}={MASK}")
        }
        _ => option.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::mask_uri;

    #[test]
    fn of_a_uri_all_is_shown_but_secrets() {
        for (uri, shown) in [
            ("", ""),
            ("mongodb://127.0.0.1:27017", "mongodb://127.0.0.1:27017"),
            ("mongodb://ada@db/orders?w=1", "mongodb://ada@db/orders?w=1"),
            (
                "mongodb://ada:secret@db-1,db-2:2/?tls=true",
                "mongodb://ada:***@db-1,db-2:2/?tls=true",
            ),
            ("mongodb+srv://ada:se:cr@et@db/", "mongodb+srv://ada:***@db/"),
            (
                "mongodb://db/?authMechanismProperties=AWS_SESSION_TOKEN:secret&tls=true",
                "mongodb://db/?authMechanismProperties=***&tls=true",
            ),
            ("ada:secret@db", "***"),
        ] {
            assert_eq!(mask_uri(uri), shown);
        }
    }
}
