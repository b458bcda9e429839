//! What a filter certainly requires of a field of the document, if that can be seen: so most of the filters
//! that want other documents need not be evaluated. What `a == 'b' && …` says where `a` is another value is
//! known, and so is what `a in [1, 2] && …` says.
//!
//! A conjunction one part of which is false is false, whatever the others are and whether or not they fail.
//! Values are compared by the language's own functions, in the order they stand in: so this never says no where
//! the evaluation would not.

use cel::common::ast::{CallExpr, Expr, operators};
use cel::common::value::Val;

use super::reference::{FilterReference, FilterVariable, constant_number, number};

/// What a field of the document must be.
#[derive(Debug)]
pub(super) struct RequiredValue {
    /// Where in the document.
    pub(super) path: Vec<String>,
    test: RequiredTest,
}

#[derive(Debug)]
enum RequiredTest {
    /// Equal to this value, which stands before it or after it.
    Equal { value: Box<dyn Val>, before: bool },
    /// One of the list with this number among the constants.
    OneOf(usize),
}

impl RequiredValue {
    /// The first that a condition requires, if it does.
    pub(super) fn of(condition: &Expr, references: &[FilterReference]) -> Option<Self> {
        let Expr::Call(call) = condition else { return None };
        let [one, other] = call.args.as_slice() else { return None };
        if call.func_name == operators::LOGICAL_AND {
            let first = Self::of(&one.expr, references);
            return first.or_else(|| Self::of(&other.expr, references));
        }
        let (field, test) = test(call, &one.expr, &other.expr)?;
        let reference = references.get(number(field)?)?;
        let of_document = reference.variable == FilterVariable::Document;
        of_document.then(|| Self { path: reference.path.clone(), test })
    }

    /// Whether the field must be another value than this one.
    pub(super) fn excludes(&self, value: &dyn Val, constants: &[Box<dyn Val>]) -> bool {
        match &self.test {
            RequiredTest::Equal { value: required, before: true } => !required.equals(value),
            RequiredTest::Equal { value: required, before: false } => !value.equals(&**required),
            RequiredTest::OneOf(list) => {
                let list = constants.get(*list).and_then(|list| list.as_container());
                list.is_some_and(|list| list.contains(value) == Ok(false))
            }
        }
    }
}

/// The variable that a comparison is about, and what it requires of it.
fn test<'a>(call: &CallExpr, one: &'a Expr, other: &'a Expr) -> Option<(&'a str, RequiredTest)> {
    match (call.func_name.as_str(), one, other) {
        (operators::EQUALS, Expr::Ident(field), Expr::Literal(value)) => {
            let value = value.to_val().into_owned();
            Some((field, RequiredTest::Equal { value, before: false }))
        }
        (operators::EQUALS, Expr::Literal(value), Expr::Ident(field)) => {
            let value = value.to_val().into_owned();
            Some((field, RequiredTest::Equal { value, before: true }))
        }
        (operators::IN, Expr::Ident(field), Expr::Ident(list)) => {
            Some((field, RequiredTest::OneOf(constant_number(list)?)))
        }
        _ => None,
    }
}
