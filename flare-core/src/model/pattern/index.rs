//! Takes endpoints, each with a value; gives the most specific one that matches a document's URL,
//! or all of them in that order. Never allocates to look up one, and never visits a node twice.

use std::collections::BTreeMap;
use std::fmt;

use super::node::PatternNode;
use super::{Endpoint, Params};
use crate::model::DocumentUrl;

/// Any number of endpoints, found by a document's URL.
///
/// A tree per scheme and host, with one level for each path segment: a node has its literal
/// children and at most one wildcard child. A lookup goes down the literal first and comes back for
/// the wildcard. It cannot blow up: there is one way to each node, so a lookup visits each at most
/// once, and in all no more than the host's endpoints have segments – usually one or two a level.
///
/// ```
/// # use flare_core::model::{DocumentUrl, Endpoint, EndpointIndex};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut index = EndpointIndex::new();
/// index.insert(&Endpoint::parse("http://h/users/{id}")?, "anybody").map_err(|e| e.to_string())?;
/// index.insert(&Endpoint::parse("http://h/{kind}/me")?, "me").map_err(|e| e.to_string())?;
///
/// assert_eq!(index.find(&DocumentUrl::parse("http://h/users/me")?), Some(&"anybody"));
/// assert_eq!(index.find(&DocumentUrl::parse("http://h/shops/me")?), Some(&"me"));
/// assert_eq!(index.find(&DocumentUrl::parse("http://h/shops/1")?), None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EndpointIndex<T> {
    hosts: BTreeMap<Box<str>, PatternNode<T>>,
    len: usize,
}

/// A refused insertion: which endpoint is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConflict<'a, T> {
    /// The endpoint that is stored.
    pub endpoint: &'a Endpoint,
    /// What is stored with it.
    pub value: &'a T,
}

impl<T> EndpointIndex<T> {
    /// An index without endpoints.
    pub fn new() -> Self {
        Self { hosts: BTreeMap::new(), len: 0 }
    }

    /// Adds an endpoint, unless it [conflicts](Endpoint::conflict_key) with a stored one; then
    /// nothing changes.
    pub fn insert(&mut self, endpoint: &Endpoint, value: T) -> Result<(), EndpointConflict<'_, T>> {
        if self.conflicting(endpoint).is_none() {
            let host = self.hosts.entry(endpoint.authority().into()).or_default();
            host.reach(endpoint.segments()).set(endpoint.clone(), value);
            self.len += 1;
            return Ok(());
        }
        self.conflicting(endpoint).map_or(Ok(()), Err)
    }

    /// The stored endpoint that conflicts with this one, if any; it may be the same.
    pub fn conflicting(&self, endpoint: &Endpoint) -> Option<EndpointConflict<'_, T>> {
        let host = self.hosts.get(endpoint.authority())?;
        let (endpoint, value) = host.conflicting(endpoint.segments())?;
        Some(EndpointConflict { endpoint, value })
    }

    /// Takes out an endpoint; one that only conflicts with it (other names) stays.
    pub fn remove(&mut self, endpoint: &Endpoint) -> Option<T> {
        let host = self.hosts.get_mut(endpoint.authority())?;
        let value = host.remove(endpoint, endpoint.segments())?;
        if host.is_empty() {
            self.hosts.remove(endpoint.authority());
        }
        self.len -= 1;
        Some(value)
    }

    /// The value of the most specific endpoint that matches `url`: literals before wildcards, from
    /// left to right.
    pub fn find(&self, url: &DocumentUrl) -> Option<&T> {
        self.find_entry(url).map(|(_, value)| value)
    }

    /// As [`find`](Self::find), with the endpoint, which can tell the wildcards' values.
    pub fn find_entry(&self, url: &DocumentUrl) -> Option<(&Endpoint, &T)> {
        let leaf = self.hosts.get(url.authority())?.find(url.raw_segments())?;
        Some((&leaf.0, &leaf.1))
    }

    /// The values of all endpoints that match `url`, the most specific one first.
    pub fn find_all(&self, url: &DocumentUrl) -> Vec<&T> {
        let mut found = Vec::new();
        if let Some(host) = self.hosts.get(url.authority()) {
            host.find_all(url.raw_segments(), &mut found);
        }
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// As [`find`](Self::find), with the wildcards' values.
    pub fn find_params(&self, url: &DocumentUrl) -> Option<(&T, Params)> {
        let (endpoint, value) = self.find_entry(url)?;
        Some((value, endpoint.matches(url)?))
    }

    /// How many endpoints there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no endpoint.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All endpoints with their values: by host, then as the tree has them, shorter ones first and
    /// the wildcard after the literals.
    pub fn iter(&self) -> impl Iterator<Item = (&Endpoint, &T)> {
        let mut waiting: Vec<&PatternNode<T>> = self.hosts.values().rev().collect();
        std::iter::from_fn(move || {
            loop {
                let node = waiting.pop()?;
                waiting.extend(node.children().rev());
                if let Some((endpoint, value)) = node.leaf() {
                    return Some((endpoint, value));
                }
            }
        })
    }
}

impl<T> Default for EndpointIndex<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Display for EndpointConflict<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the endpoint conflicts with {}", self.endpoint)
    }
}

impl<T: fmt::Debug> std::error::Error for EndpointConflict<'_, T> {}
