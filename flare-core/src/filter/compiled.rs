//! Takes an expression; gives it parsed, guarded and ready to be asked about documents.

use cel::common::ast::IdedExpr;
use cel::common::value::Val;
use cel::{Context, ParseErrors, Value};

use super::depth::check_depth;
use super::guard::{GuardFindings, guard};
use super::language::FilterLanguage;
use super::pattern::FilterPattern;
use super::reference::FilterReference;
use super::required::RequiredValue;
use crate::model::{Filter, Invalid};

/// What a pattern is taken to hold in memory.
const PATTERN_BYTES: usize = 64 * 1024;
/// What a byte of an expression is taken to hold once it is parsed.
const TREE_BYTES: usize = 64;

/// A filter that can be asked.
pub(crate) struct CompiledFilter {
    pub(super) language: FilterLanguage,
    pub(super) root: IdedExpr,
    pub(super) references: Vec<FilterReference>,
    pub(super) patterns: Vec<FilterPattern>,
    pub(super) constants: Vec<Box<dyn Val>>,
    /// Wildcards that it names, each with the refusal of an endpoint that has none of that name.
    params: Vec<(String, Invalid)>,
    /// What the document must be for it to match, if that can be seen.
    pub(super) required: Option<RequiredValue>,
    /// About how many bytes it holds.
    pub(super) bytes: usize,
}

impl CompiledFilter {
    /// Compiles a filter; a refusal says where in it, and has an empty field.
    pub(super) fn new(language: &FilterLanguage, filter: &Filter) -> Result<Self, Invalid> {
        let source = filter.as_str();
        check_depth(source)?;
        let parsed = language.parser().parse_with_source_info(source);
        let (root, info) = parsed.map_err(|errors| misspelt(&errors))?;
        let (root, findings) = guard(source, &info, root)?;
        let GuardFindings { references, patterns, constants, params } = findings;
        let constants = constants.iter().map(|constant| {
            let context = Context::with_env(language.env());
            let made = Value::resolve_val(constant, &context).map(|made| made.clone_as_boxed());
            made.map_err(|error| {
                let at = info.offset_for(constant.id).map_or(0, |(start, _)| start as usize);
                refuse(source, at, &error.to_string())
            })
        });
        let unknown = |(name, at): (String, usize)| {
            let reason = format!("the resource's endpoint has no wildcard {{{name}}}");
            let refusal = refuse(source, at, &reason);
            (name, refusal)
        };
        Ok(Self {
            language: language.clone(),
            required: RequiredValue::of(&root.expr, &references),
            root,
            references,
            constants: constants.collect::<Result<_, _>>()?,
            params: params.into_iter().map(unknown).collect(),
            bytes: source.len() * TREE_BYTES + patterns.len() * PATTERN_BYTES,
            patterns,
        })
    }

    /// Whether it certainly refuses a document; `value_at` gives what the document's field at a path is.
    /// What is not there the expression itself has to judge: it may fail.
    pub(super) fn excludes<'f, 'v>(
        &'f self,
        value_at: impl FnOnce(&'f [String]) -> Option<&'v dyn Val>,
    ) -> bool {
        self.required.as_ref().is_some_and(|required| {
            let value = value_at(&required.path);
            value.is_some_and(|value| required.excludes(value, &self.constants))
        })
    }

    /// Refuses it for an endpoint without a wildcard that it names.
    pub(super) fn check_params(&self, wildcards: &[&str]) -> Result<(), Invalid> {
        let unknown = self.params.iter().find(|(name, _)| !wildcards.contains(&name.as_str()));
        unknown.map_or(Ok(()), |(_, refusal)| Err(refusal.clone()))
    }
}

impl std::fmt::Debug for CompiledFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledFilter").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The first mistake of a text that cannot be parsed.
fn misspelt(errors: &ParseErrors) -> Invalid {
    let Some(first) = errors.errors.first() else {
        return refuse_at(1, 1, "cannot be read");
    };
    let (line, column) = first.pos;
    let counted = |number: isize| usize::try_from(number).unwrap_or(1).max(1);
    let text = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    // What could stand there instead is nearly everything.
    let text = text.split(" expecting ").next().unwrap_or(text);
    refuse_at(counted(line), counted(column), text.trim())
}

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
