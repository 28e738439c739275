//! Hosts: the window of a receive or send buffer, window scale, frame efficiency, receive-window sizing.

pub mod advertised_window;
pub mod frame;
pub mod heffner;
pub mod right_sizing;
pub mod rledbat;
pub mod send_buffer;
pub mod window_scale;
