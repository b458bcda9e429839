//! Takes the cookie of a request; gives who asks and what they may do. The one file that knows how tokens are
//! checked. Never shows or logs one.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, Method};
use flare_http::auth::{Caller, Scope, Tokens};

/// The cookie that keeps a token. It has no path of its own, so browsers keep it to the folder of the page that
/// set it, which is where the console is mounted, behind whatever proxy.
const TOKEN: &str = "flare-token";

/// What was wrong with a way in that was refused, in the words that REST has for it in the log.
pub(crate) const UNKNOWN_TOKEN: &str = "unknown-token";
/// The same, where nothing was written.
pub(crate) const NO_TOKEN: &str = "no-token";

/// Who is let in.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    tokens: Option<Tokens>,
}

/// Who asks, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Viewer {
    scope: Scope,
    /// The name that what they do is told under: that of their token, or of whom the host says they are.
    pub(crate) caller: Option<Caller>,
    /// Whether it signed in, and so can sign out.
    pub(crate) signed_in: bool,
}

/// Why a request comes from nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoViewer {
    /// It has no token.
    SignedOut,
    /// It has one that is not known, or not any more.
    Unknown,
}

impl Access {
    /// Everybody, for everything: as REST is without tokens.
    pub(crate) fn open() -> Self {
        Self { tokens: None }
    }

    /// The holders of these.
    pub(crate) fn with(tokens: Tokens) -> Self {
        Self { tokens: Some(tokens) }
    }

    /// Whether anybody has to sign in.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_none()
    }

    /// Who holds this token.
    pub(crate) fn holder(&self, token: &str) -> Option<Viewer> {
        let tokens = self.tokens.as_ref()?;
        let (scope, caller) = (tokens.scope_of(token)?, tokens.caller_of(token).cloned());
        Some(Viewer { scope, caller, signed_in: true })
    }

    /// Who sent these headers; `said` is who the host says that is, for where nobody signs in.
    pub(crate) fn viewer(
        &self,
        headers: &HeaderMap,
        said: Option<&Caller>,
    ) -> Result<Viewer, NoViewer> {
        if self.is_open() {
            return Ok(Viewer { scope: Scope::Admin, caller: said.cloned(), signed_in: false });
        }
        let kept = cookie(headers, TOKEN).filter(|kept| !kept.is_empty());
        let kept = kept.ok_or(NoViewer::SignedOut)?.as_bytes();
        // A name without a value: the way back from byte_serialize.
        let token = form_urlencoded::parse(kept).next().map(|(token, _)| token.into_owned());
        self.holder(&token.unwrap_or_default()).ok_or(NoViewer::Unknown)
    }
}

impl Viewer {
    /// Whether this is allowed.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.scope >= scope
    }

    /// What is allowed, in a word.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }
}

/// What REST asks of a token for the same: there is one table of that. What it asks nothing for nobody does here.
pub(crate) fn needs(method: &Method, path: &str) -> Scope {
    Scope::needed(method, path).unwrap_or(Scope::Admin)
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

/// The header that keeps a token in the browser until that is closed.
pub(crate) fn keep_token(token: &str, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    // A token may hold what would end a cookie.
    let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
    format!("{TOKEN}={token}; HttpOnly; SameSite=Strict{secure}")
}

/// The header that has the browser forget it.
pub(crate) fn forget_token() -> String {
    format!("{TOKEN}=; HttpOnly; SameSite=Strict; Max-Age=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, cookies.parse().unwrap());
        headers
    }

    #[test]
    fn without_tokens_everybody_may_do_everything() {
        let viewer = Access::open().viewer(&HeaderMap::new(), None).unwrap();
        assert!(viewer.may(Scope::Admin) && !viewer.signed_in);
        assert_eq!(viewer.caller, None);
        let viewer = Access::open().viewer(&HeaderMap::new(), Some(&Caller::new("bob"))).unwrap();
        assert_eq!(viewer.caller, Some(Caller::new("bob")), "as a layer of the host's says");
    }

    #[test]
    fn a_token_in_the_cookie_allows_what_it_allows() {
        let tokens = Tokens::new().with_named("ann", "0123456789abcdef", Scope::Read).unwrap();
        let (access, other) = (Access::with(tokens), Caller::new("bob"));
        let viewer = access
            .viewer(&headers("x=1; flare-token=0123456789abcdef; y=2"), Some(&other))
            .unwrap();
        assert!(viewer.may(Scope::Read) && !viewer.may(Scope::Write) && viewer.signed_in);
        assert_eq!(viewer.caller, Some(Caller::new("ann")), "whoever the host says it is");
        for (cookies, why) in [
            ("x=1", NoViewer::SignedOut),
            ("flare-token=", NoViewer::SignedOut),
            ("flare-token=0123456789abcdee", NoViewer::Unknown),
            ("not-flare-token=0123456789abcdef", NoViewer::SignedOut),
        ] {
            assert_eq!(access.viewer(&headers(cookies), None), Err(why), "{cookies}");
        }
    }

    #[test]
    fn the_cookie_is_for_this_site_alone() {
        assert_eq!(keep_token("t", false), "flare-token=t; HttpOnly; SameSite=Strict");
        assert_eq!(keep_token("t", true), "flare-token=t; HttpOnly; SameSite=Strict; Secure");
    }

    #[test]
    fn any_token_comes_back_from_the_browser() {
        let odd = "a;b,c\"d\\e=f&g+h%20";
        let access = Access::with(Tokens::new().with(odd, Scope::Write).unwrap());
        let kept = keep_token(odd, false);
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, kept.split("; ").next().unwrap().parse().unwrap());
        assert!(access.viewer(&headers, None).unwrap().may(Scope::Write));
    }
}
