//! Takes the text of an expression; refuses one that is nested too deeply for the parser, which would need
//! stack for every field, index, call, sign and bracket in a row. Reads strings as the parser does, and
//! refuses those that do not end, so that both see the same text outside of them.

use super::compiled::refuse;
use crate::model::Invalid;

/// How deep.
const DEPTH: usize = 64;

/// Refuses an expression that the parser should not see.
pub(super) fn check_depth(source: &str) -> Result<(), Invalid> {
    let bytes = source.as_bytes();
    // Of each bracket that is open, how deep it stands; and how deep it is here.
    let (mut open, mut depth) = (Vec::new(), 0_usize);
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let next = bytes.get(at + 1).copied();
        match byte {
            b'\'' | b'"' => {
                at = string_end(bytes, at, is_raw(bytes, at))
                    .map_err(|(at, reason)| refuse(source, at, reason))?;
                continue;
            }
            b'`' => {
                let end = bytes[at + 1..].iter().position(|byte| *byte == b'`');
                at += end.ok_or_else(|| refuse(source, at, "the name does not end"))? + 2;
                continue;
            }
            b'/' if next == Some(b'/') => {
                at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count();
                continue;
            }
            b'&' | b'|' if next == Some(byte) => {
                depth = open.last().copied().unwrap_or_default();
                at += 1;
            }
            b',' | b'?' | b':' => depth = open.last().copied().unwrap_or_default(),
            b'(' | b'[' | b'{' => {
                depth += 1;
                open.push(depth);
            }
            b')' | b']' | b'}' => depth = open.pop().unwrap_or_default(),
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' => depth += 1,
            // The operator `in`.
            b'i' if bytes[at..].starts_with(b"in") && !follows_word(bytes, at) => depth += 1,
            _ => {}
        }
        if depth > DEPTH {
            return Err(refuse(source, at, "the expression is nested too deeply"));
        }
        at += 1;
    }
    Ok(())
}

/// Whether what begins here goes on with a word.
fn follows_word(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Whether the string that begins here is raw: `r'…'`, `bR"…"`.
fn is_raw(bytes: &[u8], at: usize) -> bool {
    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let prefix = bytes[..at].iter().rev().take_while(word).count();
    let prefix = &bytes[at - prefix..at];
    prefix.eq_ignore_ascii_case(b"r") || prefix.eq_ignore_ascii_case(b"br")
}

/// Where the string that begins at `start` has ended; or where it is wrong.
fn string_end(bytes: &[u8], start: usize, raw: bool) -> Result<usize, (usize, &'static str)> {
    const UNENDED: &str = "the string does not end";
    let quote = bytes[start];
    let is_triple = |at: usize| bytes.get(at..at + 3) == Some([quote; 3].as_slice());
    let triple = is_triple(start);
    let mut at = start + if triple { 3 } else { 1 };
    loop {
        match bytes.get(at) {
            None => return Err((start, UNENDED)),
            Some(b'\n' | b'\r') if !triple => return Err((start, UNENDED)),
            Some(b'\\') if !raw => {
                at += escape(&bytes[at + 1..]).ok_or((at, "no such escape"))? + 1
            }
            Some(byte) if *byte == quote && triple && is_triple(at) => return Ok(at + 3),
            Some(byte) if *byte == quote && !triple => return Ok(at + 1),
            Some(_) => at += 1,
        }
    }
}

/// How long the escape is whose backslash was before this.
fn escape(rest: &[u8]) -> Option<usize> {
    let digits = |count: usize, is: fn(&u8) -> bool| {
        let digits = rest.get(1..=count)?;
        digits.iter().all(is).then_some(count + 1)
    };
    match rest.first()? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'?' | b'"' | b'\'' | b'`' => {
            Some(1)
        }
        b'x' | b'X' => digits(2, u8::is_ascii_hexdigit),
        b'u' => digits(4, u8::is_ascii_hexdigit),
        b'U' => digits(8, u8::is_ascii_hexdigit),
        b'0'..=b'3' => digits(2, |byte| (b'0'..=b'7').contains(byte)),
        _ => None,
    }
}
