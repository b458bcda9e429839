//! Takes the segments of endpoints and URLs; gives one node of the tree that endpoints share.
//! Never compares names: they live in the endpoint at the leaf, as `/a/{x}/b` and `/a/{y}/c` share
//! their wildcard node.

use std::collections::BTreeMap;

use crate::model::normal;

use super::Endpoint;
use super::segment::{Segment, Segments};

/// An endpoint that ends at a node, and what was stored with it.
pub(super) type Leaf<T> = (Endpoint, T);

/// A place in the tree; the way to it is unique. At most as deep as an endpoint has segments, some
/// thousand by its length, so recursion is safe.
#[derive(Debug, Clone)]
pub(super) struct PatternNode<T> {
    literals: BTreeMap<Box<str>, PatternNode<T>>,
    wildcard: Option<Box<PatternNode<T>>>,
    leaf: Option<Leaf<T>>,
}

impl<T> PatternNode<T> {
    /// The most specific leaf: a literal is tried first, and the wildcard only if that fails.
    pub(super) fn find(&self, mut rest: normal::RawSegments<'_>) -> Option<&Leaf<T>> {
        let Some(segment) = rest.next() else { return self.leaf.as_ref() };
        let exact = self.literals.get(segment).and_then(|child| child.find(rest.clone()));
        if exact.is_some() {
            return exact;
        }
        let child = self.wildcard.as_ref().filter(|_| normal::fits_wildcard(segment))?;
        child.find(rest)
    }

    /// Every leaf that `rest` leads to, the most specific one first.
    pub(super) fn find_all<'a>(
        &'a self,
        mut rest: normal::RawSegments<'_>,
        found: &mut Vec<&'a Leaf<T>>,
    ) {
        let Some(segment) = rest.next() else { return found.extend(self.leaf.as_ref()) };
        if let Some(child) = self.literals.get(segment) {
            child.find_all(rest.clone(), found);
        }
        if let Some(child) = self.wildcard.as_ref().filter(|_| normal::fits_wildcard(segment)) {
            child.find_all(rest, found);
        }
    }

    /// The leaf whose endpoint is equal once each wildcard is a `*` (so is a literal `*`).
    pub(super) fn conflicting(&self, mut rest: Segments<'_>) -> Option<&Leaf<T>> {
        let (literal, wild) = match rest.next() {
            None => return self.leaf.as_ref(),
            Some(Segment::Literal("*") | Segment::Wildcard(_)) => ("*", self.wildcard.as_ref()),
            Some(Segment::Literal(literal)) => (literal, None),
        };
        let exact = self.literals.get(literal).and_then(|child| child.conflicting(rest.clone()));
        exact.or_else(|| wild?.conflicting(rest))
    }

    /// The node at the end of `rest`, made if missing.
    pub(super) fn reach(&mut self, rest: Segments<'_>) -> &mut Self {
        rest.fold(self, |node, segment| match segment {
            Segment::Literal(literal) => node.literals.entry(literal.into()).or_default(),
            Segment::Wildcard(_) => node.wildcard.get_or_insert_default(),
        })
    }

    /// Stores a leaf here.
    pub(super) fn set(&mut self, endpoint: Endpoint, value: T) {
        self.leaf = Some((endpoint, value));
    }

    /// Takes out exactly `endpoint`, and the nodes that are empty without it.
    pub(super) fn remove(&mut self, endpoint: &Endpoint, mut rest: Segments<'_>) -> Option<T> {
        match rest.next() {
            None => self.leaf.take_if(|(known, _)| known == endpoint).map(|(_, value)| value),
            Some(Segment::Literal(literal)) => {
                let child = self.literals.get_mut(literal)?;
                let value = child.remove(endpoint, rest)?;
                if child.is_empty() {
                    self.literals.remove(literal);
                }
                Some(value)
            }
            Some(Segment::Wildcard(_)) => {
                let value = self.wildcard.as_mut()?.remove(endpoint, rest)?;
                self.wildcard.take_if(|child| child.is_empty());
                Some(value)
            }
        }
    }

    /// Whether no endpoint ends here or below.
    pub(super) fn is_empty(&self) -> bool {
        self.leaf.is_none() && self.wildcard.is_none() && self.literals.is_empty()
    }

    /// The leaf that ends here.
    pub(super) fn leaf(&self) -> Option<&Leaf<T>> {
        self.leaf.as_ref()
    }

    /// The nodes below, the wildcard last.
    pub(super) fn children(&self) -> impl DoubleEndedIterator<Item = &Self> {
        self.literals.values().chain(self.wildcard.as_deref())
    }
}

impl<T> Default for PatternNode<T> {
    fn default() -> Self {
        Self { literals: BTreeMap::new(), wildcard: None, leaf: None }
    }
}
