//! Hosts: the window of a socket buffer, window scale, frame efficiency, receive-window sizing.

pub mod advertised_window;
pub mod frame;
pub mod heffner;
pub mod right_sizing;
pub mod rledbat;
pub mod window_scale;
