//! Takes a compiled filter and a document; gives what it says, within an allowance.
//!
//! Whenever the expression meets a reference it is charged what it can cost there: of a value that is used
//! whole its weight, once more for every part of each loop that runs over it. So the time of an evaluation,
//! and what it copies, are bounded by the allowance, whatever the expression and the document are.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cel::common::types::CelBool;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, ExecutionError, Value};

use super::compiled::CompiledFilter;
use super::reference::{
    Charge, FilterReference, FilterVariable, constant_number, number, pattern_number,
};
use super::subject::{FilterSubject, field, weight};

/// What any evaluation may cost: some 10 ms.
const ALLOWANCE: u64 = 100_000;
/// And how often beside it may look at the whole document.
const TIMES: u64 = 8;
/// The longest text that says why an evaluation failed.
const MESSAGE: usize = 300;

impl CompiledFilter {
    /// Whether a client with this filter should have the document; or why it says nothing of it.
    pub(super) fn says(&self, subject: &FilterSubject) -> Result<bool, String> {
        let run = FilterRun {
            filter: self,
            subject,
            met: self.references.iter().map(|_| OnceLock::new()).collect(),
            left: AtomicU64::new(ALLOWANCE + TIMES * subject.weight),
            exhausted: AtomicBool::new(false),
        };
        let mut context = Context::with_env(self.language.env());
        context.set_variable_resolver(&run);
        let said = Value::resolve_val(&self.root, &context);
        if run.exhausted.load(Ordering::Relaxed) {
            return Err("costs too much on this document".to_owned());
        }
        match said {
            Ok(said) => match said.downcast_ref::<CelBool>() {
                Some(said) => Ok(*said.inner()),
                None => Err(format!("must be true or false, is {}", said.get_type().name())),
            },
            Err(error) => Err(self.explain(&error)),
        }
    }

    /// Why an evaluation failed, in words of the expression.
    fn explain(&self, error: &ExecutionError) -> String {
        let numbered = match error {
            ExecutionError::UndeclaredReference(name) => {
                number(name).and_then(|number| self.references.get(number))
            }
            _ => None,
        };
        let mut message = match numbered {
            Some(reference) => format!("there is no {}", reference.written()),
            None => error.to_string(),
        };
        if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
            message.truncate(end);
            message.push('…');
        }
        message
    }
}

/// One evaluation. It runs in one thread; the language asks for more.
struct FilterRun<'a> {
    filter: &'a CompiledFilter,
    subject: &'a FilterSubject,
    /// What each reference was found to be.
    met: Vec<OnceLock<Option<Referent<'a>>>>,
    /// What is left of the allowance.
    left: AtomicU64,
    exhausted: AtomicBool,
}

/// What a reference refers to, and what it costs to meet it.
#[derive(Debug, Clone, Copy)]
struct Referent<'a> {
    value: &'a dyn Val,
    cost: u64,
}

impl<'a> FilterRun<'a> {
    fn find(&self, reference: &FilterReference) -> Option<Referent<'a>> {
        let whole: &'a dyn Val = match reference.variable {
            FilterVariable::Document => &*self.subject.document,
            FilterVariable::Params => &*self.subject.params,
            FilterVariable::Revision => self.subject.revision.as_deref()?,
        };
        let value = field(whole, &reference.path)?;
        let cost = match reference.charge {
            Charge::One => 1,
            Charge::Weight(times) => weight(value).saturating_mul(times),
        };
        Some(Referent { value, cost })
    }

    /// Takes the cost from what is left; tells whether there was enough.
    fn pay(&self, cost: u64) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left < cost {
            self.exhausted.store(true, Ordering::Relaxed);
        }
        self.left.store(left.saturating_sub(cost), Ordering::Relaxed);
        left >= cost
    }
}

impl VariableResolver for FilterRun<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        if let Some(at) = number(variable) {
            let found =
                self.met.get(at)?.get_or_init(|| self.find(self.filter.references.get(at)?));
            let Referent { value, cost } = (*found)?;
            return self.pay(cost).then_some(CowVal::Borrowed(value));
        }
        if let Some(at) = constant_number(variable) {
            return self.filter.constants.get(at).map(|value| CowVal::Borrowed(&**value));
        }
        let pattern: &'b dyn Val = self.filter.patterns.get(pattern_number(variable)?)?;
        Some(CowVal::Borrowed(pattern))
    }
}
