//! Takes an address that is about to be dialled; gives leave, or the rule that forbids it.
//! Decides without resolving, dialling or waiting.

mod class;
mod network;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use crate::model::Invalid;

pub use network::Network;

/// Which addresses may be dialled.
///
/// The default lets publicly routable addresses pass and nothing else; see the
/// [module](crate::http#the-address-guard) for the rules. Deny wins over allow, always.
///
/// ```
/// use flare_core::http::Guard;
///
/// let guard = Guard::default().allow("10.0.0.0/8")?.deny("10.1.0.0/16")?;
/// assert!(guard.check("10.2.0.1".parse()?).is_ok());
/// assert!(guard.check("10.1.0.1".parse()?).is_err());
///
/// let refusal = guard.check("169.254.169.254".parse()?).unwrap_err();
/// assert_eq!(
///     refusal.to_string(),
///     "169.254.169.254 is a cloud metadata address; \
///      only naming exactly 169.254.169.254/32 in Guard::allow would allow it",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guard {
    allow: Vec<Network>,
    deny: Vec<Network>,
    names: Names,
}

/// Where the refused host or operator can change that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Names {
    allow: &'static str,
    deny: &'static str,
}

impl Default for Names {
    fn default() -> Self {
        Self { allow: "Guard::allow", deny: "Guard::deny" }
    }
}

impl Guard {
    /// Lets a network (`10.0.0.0/8`) or a single address pass. The refusal's field is `allow`.
    pub fn allow(mut self, network: &str) -> Result<Self, Invalid> {
        self.allow.push(network.parse().map_err(|invalid: Invalid| invalid.within("allow"))?);
        Ok(self)
    }

    /// Closes a network or a single address, whatever allows it. The refusal's field is `deny`.
    pub fn deny(mut self, network: &str) -> Result<Self, Invalid> {
        self.deny.push(network.parse().map_err(|invalid: Invalid| invalid.within("deny"))?);
        Ok(self)
    }

    /// Has refusals name these places to change it, such as keys of a configuration, instead of the
    /// methods here.
    #[must_use]
    pub fn named(mut self, allow: &'static str, deny: &'static str) -> Self {
        self.names = Names { allow, deny };
        self
    }

    /// Whether the address may be dialled.
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        for face in class::faces(address) {
            self.rule_against(face)
                .map_or(Ok(()), |rule| Err(Refusal { address, face, rule, names: self.names }))?;
        }
        Ok(())
    }

    fn rule_against(&self, face: IpAddr) -> Option<Rule> {
        if let Some(network) = self.deny.iter().find(|network| network.contains(face)) {
            return Some(Rule::Denied(*network));
        }
        if class::is_metadata(face) {
            let named = self.allow.iter().any(|network| network.is_only(face));
            return (!named).then_some(Rule::Metadata);
        }
        let what = class::special(face)?;
        let allowed = self.allow.iter().any(|network| network.contains(face));
        (!allowed).then_some(Rule::NotPublic(what))
    }
}

/// The rule that an address breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// It is in a network that was denied.
    Denied(Network),
    /// A cloud's metadata service answers there.
    Metadata,
    /// It is not publicly routable; what it is instead, in words.
    NotPublic(&'static str),
}

/// An address that may not be dialled, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    address: IpAddr,
    face: IpAddr,
    rule: Rule,
    names: Names,
}

impl Refusal {
    /// The address that was to be dialled.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The address that breaks the rule: the same, or the IPv4 address it carries.
    pub fn judged(&self) -> IpAddr {
        self.face
    }

    /// The rule it breaks.
    pub fn rule(&self) -> Rule {
        self.rule
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, face, rule, names: Names { allow, deny } } = self;
        match address == face {
            true => write!(f, "{address} is ")?,
            false => write!(f, "{address} leads to {face}, which is ")?,
        }
        let bits = if face.is_ipv4() { 32 } else { 128 };
        match rule {
            Rule::Denied(network) => {
                write!(f, "in {network}, which {deny} refuses whatever {allow} says")
            }
            Rule::Metadata => {
                write!(
                    f,
                    "a cloud metadata address; only naming exactly {face}/{bits} in {allow} "
                )?;
                f.write_str("would allow it")
            }
            Rule::NotPublic(what) => {
                write!(f, "{what}; {face}/{bits} or its network in {allow} would allow it")
            }
        }
    }
}

impl std::error::Error for Refusal {}
