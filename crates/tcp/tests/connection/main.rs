//! Laws of a sender and a receiver over a path that loses the packets named by the test.

mod packetdrill;
mod pair;
mod receiver;
mod recovery;
mod sender;
mod switch;
