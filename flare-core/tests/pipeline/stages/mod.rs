//! The stages between a put and its rows under load: what is written, how much waits, whether it is
//! told that the node works, and who waits for whom. Simulated time, one thread, memory behind a
//! store that is slow or stands still.

mod collapse;
mod fairness;
mod ready;
mod world;
