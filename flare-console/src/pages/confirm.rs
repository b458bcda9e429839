//! A step between a wish and its effect: says what will happen, or why it cannot, and asks.

use askama::Template;

use crate::frame::Frame;

/// What is asked before something is done. The form goes to the page's own address.
#[derive(Template)]
#[template(path = "pages/confirm.html")]
pub(crate) struct Confirm {
    pub(crate) frame: Frame,
    /// What is to be done.
    pub(crate) title: String,
    /// What it is to be done to.
    pub(crate) subject: String,
    /// What will happen, a paragraph each.
    pub(crate) effects: Vec<String>,
    /// Why it cannot be done; then there is no button.
    pub(crate) impossible: Option<String>,
    /// What the button says.
    pub(crate) button: &'static str,
    /// Whether something is lost by it.
    pub(crate) destroys: bool,
    /// Where to go back to, relative to this page.
    pub(crate) back: String,
    /// What the form sends along unseen.
    pub(crate) hidden: Vec<(&'static str, String)>,
    /// What is asked for besides: a field.
    pub(crate) input: Option<Input>,
}

/// One thing that is asked for with a confirmation.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) value: String,
    /// What may be chosen; nothing for a free text.
    pub(crate) choices: Vec<String>,
}

impl Confirm {
    /// Asks for one thing to be done to another.
    pub(crate) fn new(
        frame: Frame,
        title: impl Into<String>,
        subject: impl Into<String>,
        button: &'static str,
        back: impl Into<String>,
    ) -> Self {
        Self {
            frame,
            title: title.into(),
            subject: subject.into(),
            effects: Vec::new(),
            impossible: None,
            button,
            destroys: false,
            back: back.into(),
            hidden: Vec::new(),
            input: None,
        }
    }

    /// Says one thing more that will happen.
    pub(crate) fn effect(mut self, effect: impl Into<String>) -> Self {
        self.effects.push(effect.into());
        self
    }

    /// Says that something is lost.
    pub(crate) fn destroying(mut self) -> Self {
        self.destroys = true;
        self
    }

    /// Says why it cannot be done, if that is so.
    pub(crate) fn unless(mut self, impossible: Option<String>) -> Self {
        self.impossible = impossible;
        self
    }
}
