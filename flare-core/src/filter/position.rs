//! Takes an offset into an expression; gives the line and column that a refusal names.

use crate::model::Invalid;

/// Refuses an expression at an offset, in bytes.
pub(super) fn refuse(source: &str, offset: usize, reason: &str) -> Invalid {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    refuse_at(line, column, reason)
}

/// Refuses an expression at a line and column, both counted from 1.
pub(super) fn refuse_at(line: usize, column: usize, reason: &str) -> Invalid {
    Invalid::new("", format!("line {line}, column {column}: {reason}"))
}
