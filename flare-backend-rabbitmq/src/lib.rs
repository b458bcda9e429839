#![doc = include_str!("../README.md")]

mod config;
mod connector;
mod deliveries;
mod error;
mod link;
mod source;
mod transport;

pub use config::RabbitMqConfig;
pub use connector::RabbitMqConnector;

/// The name errors carry, and the word consumers name this source by.
const BACKEND: &str = "rabbitmq";
