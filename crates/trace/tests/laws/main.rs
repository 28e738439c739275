//! Laws of reading captures.

mod flows;
mod formats;
mod hostile;
mod layers;
mod packets;
