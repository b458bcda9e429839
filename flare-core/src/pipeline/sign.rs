//! Takes a notification's id, timestamp and body, and the subscription's secrets; gives the
//! `webhook-signature` of Standard Webhooks 1.0. Pure. Never gives a key away, not even in a refusal.

use crate::model::Invalid;
use crate::model::subscription::Signing;

/// The signatures a receiver checks, one per secret, in the order of the secrets: a receiver that
/// knows any one of them is satisfied, which is what makes rotation possible.
#[cfg(feature = "signing")]
pub(crate) fn signature(
    signing: &Signing,
    id: &str,
    timestamp: &str,
    body: &[u8],
) -> Result<String, Invalid> {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use hmac::{Hmac, KeyInit, Mac};
    use secrecy::ExposeSecret;

    /// `v1,`, 32 bytes in base64, and the space before the next one.
    const LENGTH: usize = 48;

    let mut signatures = String::with_capacity(signing.count() * LENGTH);
    for key in signing.keys() {
        // A key of any length makes an HMAC. Were it not so: nothing is sent unsigned.
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key.expose_secret())
            .map_err(|_| Invalid::new("signing", "has a secret that cannot sign"))?;
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        if !signatures.is_empty() {
            signatures.push(' ');
        }
        signatures.push_str("v1,");
        BASE64_STANDARD.encode_string(mac.finalize().into_bytes(), &mut signatures);
    }
    Ok(signatures)
}

/// Refuses: a subscription that another program stored with secrets is not told unsigned.
#[cfg(not(feature = "signing"))]
pub(crate) fn signature(_: &Signing, _: &str, _: &str, _: &[u8]) -> Result<String, Invalid> {
    Err(not_built_in())
}

/// What a subscription with secrets is refused with.
#[cfg(not(feature = "signing"))]
pub(crate) fn not_built_in() -> Invalid {
    Invalid::new("signing", "needs flare-core's feature `signing`, which is not compiled in")
}

#[cfg(test)]
#[cfg(not(feature = "signing"))]
#[test]
fn nothing_goes_out_unsigned() {
    let signing = Signing::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).unwrap();
    let refused = signature(&signing, "msg_1", "1", b"{}").unwrap_err();
    assert_eq!(refused.field(), "signing");
}

#[cfg(test)]
#[cfg(feature = "signing")]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

    fn signed(secrets: &[&str], id: &str, timestamp: &str, body: &str) -> String {
        let signing = Signing::new(secrets.iter().copied()).unwrap();
        signature(&signing, id, timestamp, body.as_bytes()).unwrap()
    }

    #[test]
    fn signs_as_the_examples_of_standard_webhooks_do() {
        let of_the_specification = signed(
            &[SECRET],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(of_the_specification, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let of_its_rust_library = signed(
            &[OTHER_SECRET],
            "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            "1649367553",
            r#"{"email":"test@example.com","username":"test_user"}"#,
        );
        assert_eq!(of_its_rust_library, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    }

    #[test]
    fn two_secrets_sign_side_by_side_in_their_order() {
        let sign = |secrets: &[&str]| signed(secrets, "msg_1", "1", "{}");
        let (one, other) = (sign(&[SECRET]), sign(&[OTHER_SECRET]));
        assert_eq!(sign(&[SECRET, OTHER_SECRET]), format!("{one} {other}"));
        assert_eq!(sign(&[OTHER_SECRET, SECRET]), format!("{other} {one}"));
    }

    #[test]
    fn an_empty_body_and_keys_of_every_length_sign() {
        use base64::Engine;
        for length in 24..=64 {
            let key = base64::prelude::BASE64_STANDARD.encode(vec![7; length]);
            let signature = signed(&[&format!("whsec_{key}")], "msg_1", "1", "");
            assert_eq!((&signature[..3], signature.len()), ("v1,", 47), "{length}");
        }
    }
}
