//! CEL as filters have it: the standard library, and `matches` with patterns that were compiled before.

use std::sync::Arc;

use cel::Env;
use cel::common::types::STRING_TYPE;
use cel::parser::Parser;

use super::pattern::{FilterPattern, matches};

/// How deep brackets, conditions and calls may be nested, as the parser counts them.
const NESTING: u16 = 24;
/// Mistakes that are read over, so that one refusal names the first.
const MISTAKES: u32 = 4;

/// The language, which all filters of a process share.
#[derive(Clone)]
pub(super) struct FilterLanguage(Arc<Env>);

impl FilterLanguage {
    pub(super) fn new() -> Self {
        let mut env = Env::stdlib();
        let pattern = vec![FilterPattern::pattern_type()];
        // It cannot fail: no other function has this id, nor this signature.
        let added =
            env.add_member_overload("matches", "flare_matches", STRING_TYPE, pattern, matches);
        debug_assert!(added.is_ok());
        Self(Arc::new(env))
    }

    pub(super) fn parser(&self) -> Parser {
        let parser = self.0.parser().enable_optional_syntax(false);
        let parser = parser.enable_ident_escape_syntax(true);
        parser.max_recursion_depth(NESTING).error_recovery_limit(MISTAKES)
    }

    pub(super) fn env(&self) -> Arc<Env> {
        Arc::clone(&self.0)
    }
}
