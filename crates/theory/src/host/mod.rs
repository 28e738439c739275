//! What a host makes of a buffer: windows, scales, frames, and receivers that size themselves.

pub mod advertised_window;
pub mod frame;
pub mod heffner;
pub mod right_sizing;
pub mod rledbat;
pub mod window_scale;
