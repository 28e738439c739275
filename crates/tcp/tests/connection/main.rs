//! Laws of a sender and a receiver that talk to one another over a path that loses what the test says
//! to lose.

mod pair;
mod receiver;
mod recovery;
mod sender;
mod switch;
