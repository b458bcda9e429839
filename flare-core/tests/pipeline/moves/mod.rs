//! A document that several resources match: where it is found, where it moves, and who is told.
//! Every order of puts, deletes, and creations and deletions of resources beside a small model;
//! every way two of them can meet; and a crash at every call of the store in between.

mod crash;
mod model;
mod races;
mod table;
mod world;
