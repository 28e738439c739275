//! Laws of a sender and a receiver over a path that loses the packets that the test names.

mod packetdrill;
mod pair;
mod receiver;
mod recovery;
mod sender;
mod switch;
