//! Studies of Sweetspot: the papers' figures, agreement with ns-2 and between engines, populations of random paths,
//! router buffers, and the pages that they write. No part of the product depends on this crate.

pub mod csv;
pub mod gallery;
pub mod gauntlet;
pub mod lab;
pub mod markdown;
pub mod matrix;
pub mod notes;
pub mod ns2;
pub mod page_abstract;
pub mod papers;
pub mod router;
pub mod validate;
mod welch;
