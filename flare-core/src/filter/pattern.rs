//! A regular expression as a value of the language: compiled once, of a bounded size.

use std::any::Any;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use regex::{Regex, RegexBuilder};

/// What a pattern may take in memory, compiled.
const SIZE_LIMIT: usize = 512 * 1024;
/// What matching may keep in memory beside.
const CACHE_LIMIT: usize = 256 * 1024;

static PATTERN_TYPE: Type = Type::new_unspecified_type("flare.pattern");

/// A compiled pattern of `matches`.
#[derive(Debug, Clone)]
pub(super) struct FilterPattern(Regex);

impl FilterPattern {
    /// Compiles a pattern; the refusal is one line.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        let built = builder.size_limit(SIZE_LIMIT).dfa_size_limit(CACHE_LIMIT).build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the pattern is too large once compiled".to_owned(),
            // Several lines, with the pattern and a mark below it; the last one says what is wrong.
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default();
                format!("not a regular expression: {}", last.trim_start_matches("error: "))
            }
        })
    }

    pub(super) fn pattern_type() -> Type {
        Type::new_unspecified_type("flare.pattern")
    }
}

impl Val for FilterPattern {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &PATTERN_TYPE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for FilterPattern {}

/// `text.matches(pattern)`.
pub(super) fn matches<'b, 'v>(
    arguments: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    if let [text, pattern] = arguments.as_slice()
        && let Some(text) = text.downcast_ref::<CelString<'_>>()
        && let Some(pattern) = pattern.downcast_ref::<FilterPattern>()
    {
        return Ok(CowVal::owned(CelBool::from(pattern.0.is_match(text.inner()))));
    }
    Err(ExecutionError::function_error("matches", "takes a string and a pattern"))
}
