//! The pages, a file each with its template beside it. They ask the handle and show what it says; no rules.

pub(crate) mod confirm;
pub(crate) mod consumer;
pub(crate) mod consumers;
pub(crate) mod dead_letters;
pub(crate) mod documents;
pub(crate) mod jobs;
pub(crate) mod log;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod resource;
pub(crate) mod resources;
pub(crate) mod sign_in;
pub(crate) mod slots;
pub(crate) mod subscription;
pub(crate) mod subscription_form;
pub(crate) mod subscription_steps;
pub(crate) mod subscriptions;
pub(crate) mod trials;
