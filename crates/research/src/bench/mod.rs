//! Benchmarks of Sweetspot, which write their results to `docs/results`.

pub mod commands;
mod facts;
mod lab;
mod library;
mod limits;
mod live;
mod measure;
mod speed;
mod stages;
mod store;
mod transfer;
