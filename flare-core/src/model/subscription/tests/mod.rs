//! Takes settings of subscriptions; checks how they are put together, and the form that stores keep. Each
//! rule of the table is tried where users write them, in flare-http's `wire`.

mod builder;
mod stored;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDw2hxhD0b";
