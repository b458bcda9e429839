//! Which servers a consumer may name in its settings: those that the host lists, and those that its guard lets pass.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use fluent_uri::Uri;
use fluent_uri::component::Host;

use super::SourceSettings;
use crate::model::Invalid;

/// Whether an address may be dialled; if not, why.
type Rule = dyn Fn(IpAddr) -> Result<(), String> + Send + Sync;

/// The servers that consumers may name as their `endpoint`: none unless the host says so, as a consumer could
/// otherwise have Flare ask whatever the host can reach.
///
/// ```
/// use flare_core::http::Guard;
/// use flare_core::model::SourceSettings;
/// use flare_core::model::consumer::SourceEndpoints;
/// use serde_json::json;
///
/// let guard = Guard::default();
/// let endpoints = SourceEndpoints::new("my.endpoints")
///     .list("http://10.0.0.1:4566")
///     .guard(move |address| guard.check(address).map_err(|refusal| refusal.to_string()));
/// let named = |url| SourceSettings::new("sqs", json!({ "endpoint": url }));
/// endpoints.check(&named("http://10.0.0.1:4566")?)?; // listed, to the letter
/// endpoints.check(&named("https://sqs.example.com")?)?; // judged once it is dialled
/// let refused = endpoints.check(&named("http://169.254.169.254")?).unwrap_err();
/// assert!(refused.to_string().starts_with("sqs.endpoint: 169.254.169.254 is a cloud metadata address"));
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone)]
pub struct SourceEndpoints {
    listed: BTreeSet<String>,
    /// Where one is listed, as refusals say.
    listed_in: &'static str,
    guard: Option<Arc<Rule>>,
}

impl SourceEndpoints {
    /// No server; refusals say that one may be listed in `listed_in`.
    pub fn new(listed_in: &'static str) -> Self {
        Self { listed: BTreeSet::new(), listed_in, guard: None }
    }

    /// Lets consumers name this server, wherever it is.
    #[must_use]
    pub fn list(mut self, url: impl Into<String>) -> Self {
        self.listed.insert(url.into());
        self
    }

    /// Has refusals name this place.
    #[must_use]
    pub fn listed_in(mut self, place: &'static str) -> Self {
        self.listed_in = place;
        self
    }

    /// Lets consumers name any server whose address passes when it is dialled.
    #[must_use]
    pub fn guard(
        mut self,
        passes: impl Fn(IpAddr) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.guard = Some(Arc::new(passes));
        self
    }

    /// Whether a server that consumers name has to be judged when it is dialled.
    pub fn is_judged(&self, url: &str) -> bool {
        !self.listed.contains(url)
    }

    /// The name of a server that is judged when it is dialled, for a connector that looks it up before that.
    pub fn judged_name(&self, url: &str) -> Option<String> {
        let uri = Uri::parse(url).ok().filter(|_| self.is_judged(url))?;
        match uri.authority()?.host_parsed() {
            Host::RegName(name) => Some(name.as_str().to_owned()),
            _ => None,
        }
    }

    /// Refuses an `endpoint` that may not be named, as far as that is known without looking up where it is.
    pub fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        let Some(url) = settings.optional("endpoint")?.filter(|url| self.is_judged(url)) else {
            return Ok(());
        };
        let refused = |reason: String| Err(settings.refuse("endpoint", reason));
        if self.guard.is_none() {
            return refused(format!("is none that the host allows ({})", self.listed_in));
        }
        let uri = Uri::parse(url).ok();
        let scheme = uri.as_ref().map(|uri| uri.scheme().as_str().to_ascii_lowercase());
        let is_http = matches!(scheme.as_deref(), Some("http" | "https"));
        let host = uri.as_ref().filter(|_| is_http).and_then(|uri| uri.authority());
        let address = host.map(|it| it.host().trim_matches(['[', ']']).parse::<IpAddr>());
        let judged = match (address, host.map(|it| it.host_parsed())) {
            (Some(Ok(address)), _) => self.pass(address),
            (_, Some(Host::RegName(name))) if !name.is_empty() => Ok(()),
            _ => return refused("must be an http:// or https:// URL".to_owned()),
        };
        judged.or_else(|reason| refused(format!("{reason}; or list it in {}", self.listed_in)))
    }

    /// Those of a name's addresses that may be dialled; if none may, why the first may not.
    pub fn passing(
        &self,
        name: &str,
        found: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Vec<IpAddr>, String> {
        let mut refused = None;
        let mut passing = Vec::new();
        for address in found {
            match self.pass(address) {
                Ok(()) => passing.push(address),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
        match (passing.is_empty(), refused) {
            (false, _) => Ok(passing),
            (true, Some(reason)) => Err(format!(
                "{name} resolves to what must not be asked: {reason}; or list it in {}",
                self.listed_in
            )),
            (true, None) => Err(format!("{name} has no address")),
        }
    }

    fn pass(&self, address: IpAddr) -> Result<(), String> {
        match &self.guard {
            Some(passes) => passes(address),
            None => Err(format!("{address} is not allowed")),
        }
    }
}

impl fmt::Debug for SourceEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceEndpoints")
            .field("listed", &self.listed)
            .field("guarded", &self.guard.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only_eights(address: IpAddr) -> Result<(), String> {
        let passes = address.to_string().starts_with("8.");
        passes.then_some(()).ok_or_else(|| format!("{address} is private"))
    }

    fn said(endpoints: &SourceEndpoints, url: &str) -> Option<String> {
        let settings = SourceSettings::new("sqs", json!({ "endpoint": url })).unwrap();
        endpoints.check(&settings).err().map(|invalid| invalid.to_string())
    }

    #[test]
    fn without_a_guard_only_what_is_listed_may_be_named() {
        let endpoints = SourceEndpoints::new("list").list("http://10.0.0.1");
        assert_eq!(said(&endpoints, "http://10.0.0.1"), None);
        for other in ["http://10.0.0.1/", "http://8.8.8.8", "https://sqs.example"] {
            let refused = said(&endpoints, other);
            assert_eq!(
                refused.as_deref(),
                Some("sqs.endpoint: is none that the host allows (list)")
            );
        }
        assert_eq!(endpoints.judged_name("http://10.0.0.1"), None);
        let none = SourceSettings::new("sqs", json!({})).unwrap();
        endpoints.check(&none).unwrap();
    }

    #[test]
    fn with_a_guard_addresses_are_judged_and_names_when_they_are_dialled() {
        let endpoints = SourceEndpoints::new("list").list("http://10.0.0.1").guard(only_eights);
        for passes in ["http://10.0.0.1", "http://8.8.8.8:80/x", "https://sqs.example", "HTTP://a"]
        {
            assert_eq!(said(&endpoints, passes), None, "{passes}");
        }
        for (url, reason) in [
            ("http://10.0.0.2", "10.0.0.2 is private; or list it in list"),
            ("http://a:b@127.0.0.1:9", "127.0.0.1 is private; or list it in list"),
            ("http://[::1]/", "::1 is private; or list it in list"),
            ("ftp://8.8.8.8", "must be an http:// or https:// URL"),
            ("8.8.8.8", "must be an http:// or https:// URL"),
            ("http://", "must be an http:// or https:// URL"),
        ] {
            assert_eq!(said(&endpoints, url), Some(format!("sqs.endpoint: {reason}")), "{url}");
        }
    }

    #[test]
    fn of_a_name_only_what_passes_is_dialled() {
        let endpoints = SourceEndpoints::new("list").guard(only_eights);
        let found = |texts: &[&str]| -> Vec<IpAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let mixed = found(&["10.0.0.1", "8.8.8.8", "::1", "8.8.4.4"]);
        assert_eq!(endpoints.passing("a", mixed).unwrap(), found(&["8.8.8.8", "8.8.4.4"]));
        let refused = endpoints.passing("a", found(&["10.0.0.1", "::1"])).unwrap_err();
        assert_eq!(
            refused,
            "a resolves to what must not be asked: 10.0.0.1 is private; or list it in list"
        );
        assert_eq!(endpoints.passing("a", []).unwrap_err(), "a has no address");
        let named = endpoints.judged_name("https://sqs.example:4566/x");
        assert_eq!(named.as_deref(), Some("sqs.example"));
        assert_eq!(endpoints.judged_name("https://8.8.8.8"), None);
    }
}
