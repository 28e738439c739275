//! SOBAS: socket buffer auto-sizing (section VII of Jain, Prasad, Dovrolis).
//!
//! [`Paper`] is the paper's algorithm to the letter. [`Sobas`] goes further: it decides per round
//! trip, ramps without overflowing a small buffer, paces the sender and keeps watching. [`Live`]
//! does without probes, trains and the sender's help: it has what a receiving kernel knows of any
//! connection. All are made of the same parts, a file each: the packet trains, the probes' round
//! trip, the congestion check.

mod adaptive;
mod average;
mod congestion;
mod dispersion;
mod epoch;
mod explore;
mod flights;
mod following;
mod herald;
mod hold;
mod known;
mod limits;
mod live;
mod manner;
mod meter;
mod paper;
mod round_trip;
mod saturation;
mod sharing;
mod toll;
mod trains;

pub use adaptive::Sobas;
pub use live::Live;
pub use paper::Paper;
