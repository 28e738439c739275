//! The numbers that the papers print, against what their formulas give here. Where the two
//! differ, the comment says by how much and what would explain it.

mod blog;
mod heffner;
mod right_sizing;
mod router;
mod sobas;
