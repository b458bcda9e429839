#![doc = include_str!("../README.md")]

mod access;
mod ask;
mod assets;
mod behind;
mod console;
mod edge;
mod fields;
mod frame;
mod lists;
mod origin;
mod pages;
mod plot;
mod refusal;
mod routes;
mod settings_form;
mod show;

pub use console::{Console, router};
