//! Several whole Flares share the lanes, as a cluster, in one thread on a manual clock: what their
//! clients see when nodes join, die, are drained, freeze, or are only for some of the work. At every
//! request it is looked who works the slot and whether another request for it is under way.

mod backfill;
mod feed;
mod hosts;
mod node;
mod observed;
mod pins;
mod scenarios;
mod world;
