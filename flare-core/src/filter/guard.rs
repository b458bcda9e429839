//! Takes a parsed expression; gives it with every reference to the document numbered, or says where and why
//! it is refused.
//!
//! CEL has no budget of its own, so nothing is let through whose cost grows faster than the document:
//!
//! - The size and depth of the tree are bounded, and the number of patterns and additions in it.
//! - What runs once for every element (the body of `all`, `exists`, `exists_one`, `map` and `filter`) holds no
//!   other such loop, concatenates nothing and builds no list or map: so what comes out of a loop is no
//!   larger than what went in, and loops may follow each other.
//! - What a body looks at beside its element is a reference, and references are charged at every
//!   evaluation by what they refer to (`run.rs`): a body that would look through a large part of the
//!   document for every element of another part runs out of its allowance.

use std::collections::BTreeMap;
use std::mem::take;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
    SelectExpr, SourceInfo, operators,
};

use super::compiled::refuse;
use super::functions::{CallStyle, TYPES, refusal};
use super::pattern::FilterPattern;
use super::reference::{
    Charge, FilterReference, FilterVariable, constant_variable, pattern_variable, variable,
};
use crate::model::Invalid;

/// Nodes of a tree, at most.
const NODES: usize = 1_000;
/// How deep they are nested, at most.
const DEPTH: usize = 40;
/// Fields below a variable, at most.
const PATH: usize = 32;
/// Patterns of `matches`, at most.
const PATTERNS: usize = 8;
/// Additions that may be concatenations, at most: each copies what came before it.
const ADDITIONS: usize = 16;

/// What is found in an expression on the way.
#[derive(Debug, Default)]
pub(super) struct GuardFindings {
    pub(super) references: Vec<FilterReference>,
    pub(super) patterns: Vec<FilterPattern>,
    /// Lists of constants, to be made once.
    pub(super) constants: Vec<IdedExpr>,
    /// Wildcards that are named, each with the offset of the first time.
    pub(super) params: BTreeMap<String, usize>,
}

/// Looks at an expression, and numbers its references.
pub(super) fn guard(
    source: &str,
    info: &SourceInfo,
    root: IdedExpr,
) -> Result<(IdedExpr, GuardFindings), Invalid> {
    let mut guard = FilterGuard {
        source,
        info,
        nodes: 0,
        additions: 0,
        element: None,
        findings: GuardFindings::default(),
    };
    if is_no_condition(&root.expr) {
        return Err(guard.refuse(root.id, "the expression must be true or false"));
    }
    let root = guard.node(root, NodePlace::default())?;
    Ok((root, guard.findings))
}

struct FilterGuard<'a> {
    source: &'a str,
    info: &'a SourceInfo,
    nodes: usize,
    additions: usize,
    /// The variable of the loop whose body is looked at.
    element: Option<String>,
    findings: GuardFindings,
}

/// Where a node stands.
#[derive(Debug, Clone, Copy, Default)]
struct NodePlace {
    depth: usize,
    /// Of its value only one field or element is used.
    picked: bool,
    /// How often what is looked at here is looked at beside: loops run over it.
    loops: u64,
}

impl NodePlace {
    /// Of a part of the node here, whose value is used whole.
    fn below(self) -> Self {
        Self { depth: self.depth + 1, picked: false, loops: self.loops }
    }

    /// Of a part of which only one field or element is used.
    fn picked(self) -> Self {
        Self { picked: true, ..self.below() }
    }
}

impl FilterGuard<'_> {
    fn refuse(&self, id: u64, reason: &str) -> Invalid {
        refuse(self.source, self.offset(id), reason)
    }

    fn offset(&self, id: u64) -> usize {
        let found = self.info.offset_for(id).map(|(start, _)| start);
        found.and_then(|start| usize::try_from(start).ok()).unwrap_or_default()
    }

    fn count(&mut self, id: u64, nodes: usize, place: NodePlace) -> Result<(), Invalid> {
        self.nodes += nodes;
        if self.nodes > NODES {
            return Err(self.refuse(id, &format!("the expression has more than {NODES} parts")));
        }
        if place.depth > DEPTH {
            return Err(self.refuse(id, "the expression is nested too deeply"));
        }
        Ok(())
    }

    fn node(&mut self, node: IdedExpr, place: NodePlace) -> Result<IdedExpr, Invalid> {
        let IdedExpr { id, expr } = node;
        self.count(id, 1, place)?;
        let expr = match expr {
            Expr::Literal(_) => expr,
            Expr::Ident(name) => self.ident(id, name, place)?,
            Expr::Select(select) => self.select(id, select, place)?,
            Expr::Call(call) => self.call(id, call, place)?,
            Expr::List(list) => self.list(id, list, place)?,
            Expr::Map(map) => self.map(id, map, place)?,
            Expr::Comprehension(it) => {
                Expr::Comprehension(Box::new(self.comprehension(id, *it, place)?))
            }
            Expr::Struct(it) => {
                let reason = format!("there is no message type {}", it.type_name);
                return Err(self.refuse(id, &reason));
            }
            Expr::Unspecified => return Err(self.refuse(id, "something is missing here")),
        };
        Ok(IdedExpr { id, expr })
    }

    fn nodes(&mut self, all: Vec<IdedExpr>, place: NodePlace) -> Result<Vec<IdedExpr>, Invalid> {
        all.into_iter().map(|node| self.node(node, place)).collect()
    }

    fn ident(&mut self, id: u64, name: String, place: NodePlace) -> Result<Expr, Invalid> {
        let internal = name.starts_with('@') || self.element.as_ref() == Some(&name);
        if internal || TYPES.contains(&name.as_str()) {
            return Ok(Expr::Ident(name));
        }
        match FilterVariable::named(&name) {
            Some(variable) => self.reference(id, variable, Vec::new(), place),
            None => {
                let reason =
                    format!("there is no variable {name}; use document, revision or params");
                Err(self.refuse(id, &reason))
            }
        }
    }

    fn select(&mut self, id: u64, select: SelectExpr, place: NodePlace) -> Result<Expr, Invalid> {
        if !select.test
            && let Some((variable, path)) = self.path_of(&select)
        {
            self.count(id, path.len(), place)?;
            return self.reference(id, variable, path, place);
        }
        let operand = self.node(*select.operand, place.picked())?;
        Ok(Expr::Select(SelectExpr { operand: Box::new(operand), ..select }))
    }

    /// The variable that fields are selected of one after the other, and these fields.
    fn path_of(&self, select: &SelectExpr) -> Option<(FilterVariable, Vec<String>)> {
        let mut path = vec![select.field.clone()];
        let mut operand = &select.operand.expr;
        loop {
            match operand {
                Expr::Select(select) if !select.test => {
                    path.push(select.field.clone());
                    operand = &select.operand.expr;
                }
                Expr::Ident(name) if self.element.as_ref() != Some(name) => {
                    path.reverse();
                    return FilterVariable::named(name).map(|variable| (variable, path));
                }
                _ => return None,
            }
        }
    }

    fn reference(
        &mut self,
        id: u64,
        of: FilterVariable,
        path: Vec<String>,
        place: NodePlace,
    ) -> Result<Expr, Invalid> {
        match of {
            FilterVariable::Document if path.len() > PATH => {
                return Err(self.refuse(id, &format!("more than {PATH} fields in a row")));
            }
            FilterVariable::Params if path.len() > 1 => {
                return Err(self.refuse(id, "values of params are strings, without fields"));
            }
            FilterVariable::Revision if !path.is_empty() => {
                return Err(self.refuse(id, "revision has no fields"));
            }
            FilterVariable::Params => {
                let offset = self.offset(id);
                path.iter().for_each(|name| {
                    self.findings.params.entry(name.clone()).or_insert(offset);
                });
            }
            _ => {}
        }
        let charge = if place.picked { Charge::One } else { Charge::Weight(place.loops + 1) };
        let reference = FilterReference { variable: of, path, charge };
        let known = &mut self.findings.references;
        let number = known.iter().position(|it| *it == reference).unwrap_or_else(|| {
            known.push(reference);
            known.len() - 1
        });
        Ok(Expr::Ident(variable(number)))
    }

    fn call(&mut self, id: u64, mut call: CallExpr, place: NodePlace) -> Result<Expr, Invalid> {
        match call.func_name.as_str() {
            operators::ADD => return self.addition(id, call, place),
            operators::INDEX if call.args.len() == 2 => {
                let index = call.args.pop().unwrap_or_default();
                let base = call.args.pop().unwrap_or_default();
                let base = self.node(base, place.picked())?;
                call.args = vec![base, self.node(index, place.below())?];
                return Ok(Expr::Call(call));
            }
            operators::OPT_INDEX | operators::OPT_SELECT => {
                return Err(self.refuse(id, "optional fields are not known here; use has()"));
            }
            "matches" => return self.matches(id, call, place),
            name if is_operator(name) => {}
            name => {
                let style =
                    if call.target.is_some() { CallStyle::Member } else { CallStyle::Global };
                if let Some(reason) = refusal(name, style, call.args.len()) {
                    return Err(self.refuse(id, &reason));
                }
            }
        }
        if let Some(target) = call.target.take() {
            call.target = Some(Box::new(self.node(*target, place.below())?));
        }
        call.args = self.nodes(take(&mut call.args), place.below())?;
        Ok(Expr::Call(call))
    }

    fn addition(&mut self, id: u64, mut call: CallExpr, place: NodePlace) -> Result<Expr, Invalid> {
        // What `map` and `filter` are made of: `@result + [element]`.
        if let [IdedExpr { expr: Expr::Ident(result), .. }, IdedExpr { expr: Expr::List(one), .. }] =
            call.args.as_mut_slice()
            && result.starts_with('@')
        {
            one.elements = self.nodes(take(&mut one.elements), place.below())?;
            return Ok(Expr::Call(call));
        }
        if !call.args.iter().any(|argument| is_quantity(&argument.expr)) {
            if self.element.is_some() {
                let reason = "a loop must not concatenate; what is a number is int(…) + …";
                return Err(self.refuse(id, reason));
            }
            self.additions += 1;
            if self.additions > ADDITIONS {
                let reason = format!("more than {ADDITIONS} additions that may concatenate");
                return Err(self.refuse(id, &reason));
            }
        }
        call.args = self.nodes(take(&mut call.args), place.below())?;
        Ok(Expr::Call(call))
    }

    fn matches(&mut self, id: u64, call: CallExpr, place: NodePlace) -> Result<Expr, Invalid> {
        let style = if call.target.is_some() { CallStyle::Member } else { CallStyle::Global };
        if let Some(reason) = refusal("matches", style, call.args.len()) {
            return Err(self.refuse(id, &reason));
        }
        let mut arguments = call.args.into_iter();
        let Some(text) = call.target.map(|it| *it).or_else(|| arguments.next()) else {
            return Err(self.refuse(id, "matches takes a value and a pattern"));
        };
        let Some(IdedExpr { id: at, expr: Expr::Literal(LiteralValue::String(pattern)) }) =
            arguments.next()
        else {
            return Err(self.refuse(id, "the pattern of matches must be a string in quotes"));
        };
        let pattern =
            FilterPattern::new(pattern.inner()).map_err(|reason| self.refuse(at, &reason))?;
        if self.findings.patterns.len() == PATTERNS {
            return Err(self.refuse(at, &format!("more than {PATTERNS} patterns")));
        }
        let text = self.node(text, place.below())?;
        let name = pattern_variable(self.findings.patterns.len());
        self.findings.patterns.push(pattern);
        Ok(Expr::Call(CallExpr {
            func_name: "matches".to_owned(),
            target: Some(Box::new(text)),
            args: vec![IdedExpr { id: at, expr: Expr::Ident(name) }],
        }))
    }

    fn list(&mut self, id: u64, mut list: ListExpr, place: NodePlace) -> Result<Expr, Invalid> {
        if !list.optional_indices.is_empty() {
            return Err(self.refuse(id, "optional elements are not known here"));
        }
        if !list.elements.is_empty() && list.elements.iter().all(|it| is_constant(&it.expr)) {
            self.count(id, list.elements.iter().map(|it| count(&it.expr)).sum(), place)?;
            let name = constant_variable(self.findings.constants.len());
            self.findings.constants.push(IdedExpr { id, expr: Expr::List(list) });
            return Ok(Expr::Ident(name));
        }
        if self.element.is_some() && !list.elements.is_empty() {
            return Err(self.refuse(id, "a loop must not build a list, but of constants"));
        }
        list.elements = self.nodes(list.elements, place.below())?;
        Ok(Expr::List(list))
    }

    fn map(&mut self, id: u64, map: MapExpr, place: NodePlace) -> Result<Expr, Invalid> {
        if self.element.is_some() {
            return Err(self.refuse(id, "a loop must not build a map"));
        }
        let mut entries = Vec::with_capacity(map.entries.len());
        for mut entry in map.entries {
            let EntryExpr::MapEntry(mut it) = entry.expr else {
                return Err(self.refuse(entry.id, "a map has keys and values"));
            };
            if it.optional {
                return Err(self.refuse(entry.id, "optional entries are not known here"));
            }
            it.key = self.node(it.key, place.below())?;
            it.value = self.node(it.value, place.below())?;
            entry.expr = EntryExpr::MapEntry(it);
            entries.push(entry);
        }
        Ok(Expr::Map(MapExpr { entries }))
    }

    fn comprehension(
        &mut self,
        id: u64,
        mut it: ComprehensionExpr,
        place: NodePlace,
    ) -> Result<ComprehensionExpr, Invalid> {
        if self.element.is_some() {
            return Err(self.refuse(id, "a loop must not hold another one"));
        }
        let name = it.iter_var.as_str();
        if FilterVariable::named(name).is_some() || name.starts_with('@') {
            let reason = format!("the element of a loop must not be called {name}");
            return Err(self.refuse(id, &reason));
        }
        let body = count(&it.loop_cond.expr) + count(&it.loop_step.expr);
        let range = NodePlace { loops: place.loops + body as u64, ..place.below() };
        it.iter_range = self.node(it.iter_range, range)?;
        self.element = Some(it.iter_var.clone());
        it.accu_init = self.node(it.accu_init, place.below())?;
        it.loop_cond = self.node(it.loop_cond, place.below())?;
        it.loop_step = self.node(it.loop_step, place.below())?;
        it.result = self.node(it.result, place.below())?;
        self.element = None;
        Ok(it)
    }
}

/// What the parser calls operators, but for those that are looked at on their own.
fn is_operator(name: &str) -> bool {
    matches!(
        name,
        operators::CONDITIONAL
            | operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::EQUALS
            | operators::NOT_EQUALS
            | operators::GREATER_EQUALS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::LESS
            | operators::NEGATE
            | operators::IN
    )
}

/// Whether a value is certainly a number, a time or a duration, so that adding to it concatenates nothing.
fn is_quantity(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(literal) => matches!(
            literal,
            LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_)
        ),
        Expr::Ident(name) => name == FilterVariable::Revision.as_str(),
        Expr::Call(call) => match call.func_name.as_str() {
            operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE => true,
            operators::ADD => call.args.iter().any(|argument| is_quantity(&argument.expr)),
            "int" | "uint" | "double" | "size" | "timestamp" | "duration" => true,
            name => name.starts_with("get"),
        },
        _ => false,
    }
}

/// Whether an expression is certainly neither true nor false.
fn is_no_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        Expr::Ident(name) => {
            FilterVariable::named(name).is_some() || TYPES.contains(&name.as_str())
        }
        Expr::Select(select) => {
            let params = FilterVariable::Params.as_str();
            !select.test && matches!(&select.operand.expr, Expr::Ident(name) if name == params)
        }
        Expr::Comprehension(it) => matches!(it.accu_init.expr, Expr::List(_)),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [_, yes, no]) => {
                is_no_condition(&yes.expr) && is_no_condition(&no.expr)
            }
            (operators::ADD | "string" | "bytes" | "type", _) => true,
            _ => is_quantity(expr),
        },
        Expr::Struct(_) | Expr::Unspecified => false,
    }
}

/// Whether an expression is always the same, and costs nothing to speak of.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) => true,
        Expr::List(list) => {
            list.optional_indices.is_empty() && list.elements.iter().all(|it| is_constant(&it.expr))
        }
        _ => false,
    }
}

/// How many nodes a tree has.
fn count(expr: &Expr) -> usize {
    let below = match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => 0,
        Expr::Select(select) => count(&select.operand.expr),
        Expr::List(list) => list.elements.iter().map(|it| count(&it.expr)).sum(),
        Expr::Call(call) => {
            let target = call.target.as_ref().map_or(0, |it| count(&it.expr));
            target + call.args.iter().map(|it| count(&it.expr)).sum::<usize>()
        }
        Expr::Map(map) => {
            let entry = |it: &EntryExpr| match it {
                EntryExpr::MapEntry(it) => count(&it.key.expr) + count(&it.value.expr),
                EntryExpr::StructField(it) => count(&it.value.expr),
            };
            map.entries.iter().map(|it| entry(&it.expr)).sum()
        }
        Expr::Comprehension(it) => {
            let parts = [&it.iter_range, &it.loop_cond, &it.loop_step, &it.result];
            parts.into_iter().map(|part| count(&part.expr)).sum()
        }
    };
    below + 1
}
