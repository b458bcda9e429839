//! Takes a `change.field`; gives the way from a document to its revision. Never reads a document.

use std::fmt;

use crate::model::Invalid;

/// Where in a document its revision stands: a top-level key or, with a leading `/`, a JSON
/// Pointer (RFC 6901).
///
/// A pointer may lead through arrays by index (`/versions/0/rev`); its `-`, the element after the
/// last, is never there. `/` alone points to the key of no letters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ChangeField {
    source: Box<str>,
    path: Box<[PathStep]>,
}

/// One level down: the key in an object and, where the text is one, the index in an array.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::model) struct PathStep {
    pub(super) key: Box<str>,
    pub(super) index: Option<usize>,
}

impl ChangeField {
    /// Reads a field. A refusal names no field: the caller knows where this one stood.
    pub fn parse(field: &str) -> Result<Self, Invalid> {
        let path = match field.strip_prefix('/') {
            _ if field.is_empty() => return Err(Invalid::new("", "must not be empty")),
            Some(_) => pointer_path(field)?,
            None => Box::from([PathStep { key: field.into(), index: None }]),
        };
        Ok(Self { source: field.into(), path })
    }

    /// Refuses a path with dots: as a key it would be one with dots in its name.
    pub(super) fn check_habits(&self) -> Result<(), Invalid> {
        if self.source.starts_with('/') || !self.source.contains('.') {
            return Ok(());
        }
        let pointer = self.source.replace('.', "/");
        let reason = format!(
            "has dots: write /{pointer} for a field within another (a JSON Pointer), or /{} for one \
             with dots in its name",
            self.source
        );
        Err(Invalid::new("", reason))
    }

    /// The field as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The steps from the document to the revision; there is at least one.
    pub(super) fn path(&self) -> &[PathStep] {
        &self.path
    }
}

/// The steps of a JSON Pointer that is not empty. A refusal names no field.
pub(in crate::model) fn pointer_path(pointer: &str) -> Result<Box<[PathStep]>, Invalid> {
    match pointer.strip_prefix('/') {
        Some(steps) => steps.split('/').map(pointer_step).collect(),
        None => Err(Invalid::new("", "must be a JSON Pointer, such as /user/id")),
    }
}

fn pointer_step(token: &str) -> Result<PathStep, Invalid> {
    let mut key = String::with_capacity(token.len());
    let mut letters = token.chars();
    while let Some(letter) = letters.next() {
        key.push(match letter {
            '~' => match letters.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => {
                    let reason =
                        "is no JSON Pointer: after ~ only 0 (for ~) or 1 (for /) may stand";
                    return Err(Invalid::new("", reason));
                }
            },
            letter => letter,
        });
    }
    let digits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    let index =
        if digits && (key == "0" || !key.starts_with('0')) { key.parse().ok() } else { None };
    Ok(PathStep { key: key.into(), index })
}

impl fmt::Display for ChangeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for ChangeField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChangeField").field(&self.source).finish()
    }
}
