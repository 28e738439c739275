//! The papers' published numbers, compared with their formulas here. Where the two differ, the comment gives the difference and
//! a possible explanation.

mod blog;
mod heffner;
mod right_sizing;
mod router;
mod sobas;
