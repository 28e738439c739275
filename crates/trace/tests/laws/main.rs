//! Invariants of reading captures.

mod flows;
mod formats;
mod holds;
mod hostile;
mod joined;
mod layers;
mod packets;
mod script;
mod timers;
