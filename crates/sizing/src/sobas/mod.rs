//! SOBAS: socket buffer auto-sizing (section VII of Jain, Prasad, Dovrolis).

mod paper;

pub use paper::Paper;
pub use paper::Paper as Sobas;
