//! Signing in with an API token and out again, and how pages look: what is kept in cookies.

use askama::Template;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::access::{NO_TOKEN, UNKNOWN_TOKEN, forget_token, keep_token};
use crate::ask::{Ask, page, page_with, see};
use crate::frame::{Frame, THEME, Theme};
use crate::origin;
use crate::refusal::{Answer, Refusal};

#[derive(Template)]
#[template(path = "pages/sign_in.html")]
struct SignIn {
    frame: Frame,
    to: String,
    expired: bool,
    wrong: bool,
}

/// Asks for a token.
pub(crate) async fn show(ask: Ask) -> Answer {
    if ask.shared.access.is_open() {
        return Ok(see("overview"));
    }
    let expired = ask.query.text("why") == "expired";
    let to = ask.query.text("to").to_owned();
    page(&SignIn { frame: ask.frame, to, expired, wrong: false })
}

/// Takes a token, and has the browser keep it.
pub(crate) async fn sign_in(ask: Ask) -> Answer {
    let (token, to) = (ask.form.text("token"), ask.form.text("to"));
    if ask.shared.access.holder(token).is_none() {
        let wrong = if token.is_empty() { NO_TOKEN } else { UNKNOWN_TOKEN };
        ask.flare().note_refused_sign_in(wrong);
        let to = to.to_owned();
        let asked = SignIn { frame: ask.frame, to, expired: false, wrong: true };
        return page_with(StatusCode::UNAUTHORIZED, &asked);
    }
    let kept = keep_token(token, origin::is_secure(&ask.headers));
    with_cookie(see(own_page(to)), kept)
}

/// Has the browser forget it.
pub(crate) async fn sign_out(_: Ask) -> Answer {
    with_cookie(see("sign-in"), forget_token())
}

/// Remembers how pages shall look.
pub(crate) async fn theme(ask: Ask) -> Answer {
    let theme = Theme::of(ask.form.text("theme"));
    let age = if theme == Theme::System { 0 } else { 31_536_000 };
    let kept = format!("{THEME}={}; SameSite=Lax; Max-Age={age}", theme.as_str());
    with_cookie(see(own_page(ask.form.text("to"))), kept)
}

/// A page of ours to go to next: never what a link from elsewhere may have put there.
fn own_page(to: &str) -> &str {
    let path = to.split('?').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
    let ours = path.bytes().all(plain) && !path.starts_with('/') && !path.is_empty();
    let sane = to.bytes().all(|byte| byte.is_ascii_graphic());
    if ours && sane { to } else { "overview" }
}

fn with_cookie(mut response: Response, cookie: String) -> Answer {
    let cookie = HeaderValue::try_from(cookie);
    let cookie =
        cookie.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "This cannot be kept."))?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_pages_of_ours_alone() {
        for ours in ["overview", "resources/1?page=2", "documents?url=http%3A%2F%2Fa"] {
            assert_eq!(own_page(ours), ours);
        }
        for other in
            ["", "//evil.example", "https://evil.example", "/x", "a\\b", "a:b", "a\r\nb", "é"]
        {
            assert_eq!(own_page(other), "overview", "{other}");
        }
    }
}
