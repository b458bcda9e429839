//! What an expression refers to outside of itself, and what a reference to it costs. Each stands in the
//! compiled expression as a variable with a number: `@0`.

/// What a number in place of a reference begins with; no filter can be written with it.
const MARK: char = '@';

/// One of the three variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterVariable {
    Document,
    Params,
    Revision,
}

impl FilterVariable {
    pub(super) const ALL: [Self; 3] = [Self::Document, Self::Params, Self::Revision];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Params => "params",
            Self::Revision => "revision",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variable| variable.as_str() == name)
    }
}

/// What a reference is charged for, each time it is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charge {
    /// One: of the value only one field or element is used.
    One,
    /// The weight of the value, so many times: everything in it may be looked at that often.
    Weight(u64),
}

/// A reference to a variable, or to a field below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilterReference {
    pub(super) variable: FilterVariable,
    /// The names of fields, outermost first.
    pub(super) path: Vec<String>,
    pub(super) charge: Charge,
}

impl FilterReference {
    /// As it was written, more or less.
    pub(super) fn written(&self) -> String {
        let mut written = self.variable.as_str().to_owned();
        for field in &self.path {
            written.push('.');
            written.push_str(field);
        }
        written
    }
}

/// The variable that stands for the reference with this number.
pub(super) fn variable(number: usize) -> String {
    format!("{MARK}{number}")
}

/// The number of the reference that a variable stands for.
pub(super) fn number(variable: &str) -> Option<usize> {
    variable.strip_prefix(MARK)?.parse().ok()
}

/// The variable that stands for the pattern with this number.
pub(super) fn pattern_variable(number: usize) -> String {
    format!("{MARK}re{number}")
}

/// The number of the pattern that a variable stands for.
pub(super) fn pattern_number(variable: &str) -> Option<usize> {
    variable.strip_prefix(MARK)?.strip_prefix("re")?.parse().ok()
}

/// The variable that stands for the constant with this number.
pub(super) fn constant_variable(number: usize) -> String {
    format!("{MARK}c{number}")
}

/// The number of the constant that a variable stands for.
pub(super) fn constant_number(variable: &str) -> Option<usize> {
    variable.strip_prefix(MARK)?.strip_prefix('c')?.parse().ok()
}
