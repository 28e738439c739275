use sweetspot_units::Bytes;

use crate::Evidence;
use crate::quantities::in_bytes;

/// A clamp on the receiver's window (TCP_WINDOW_CLAMP) that the kernel did not set by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowClamp {
    /// The largest window that it allows.
    pub size: Bytes,
    /// Whether `sweetspot tune` is known to have set it.
    pub is_of_tuner: bool,
}

impl WindowClamp {
    /// The clamp, if it is small enough to bound the window.
    pub(crate) fn binding(e: &Evidence) -> Option<WindowClamp> {
        e.clamp.filter(|clamp| e.window.is_none_or(|window| window > clamp.size / 2))
    }

    /// The clamp as a sentence after the verdict.
    pub(crate) fn words(&self) -> String {
        let size = in_bytes(self.size);
        match self.is_of_tuner {
            true => format!(" sweetspot tune holds the window at {size}."),
            false => {
                format!(" A clamp of {size} (TCP_WINDOW_CLAMP) limits the window, not the buffer.")
            }
        }
    }

    /// The remedy. A larger buffer would not help.
    pub(crate) fn fix(&self) -> &'static str {
        match self.is_of_tuner {
            true => {
                "Nothing, if the tuner should run. A larger buffer changes nothing. To remove the limit, stop the tuner; \
                 sweetspot tune undo removes the limits of a killed one."
            }
            false => {
                "On the receiver: find the program that sets TCP_WINDOW_CLAMP (the receiving one, or a tuner such as sweetspot tune). \
                 A larger buffer changes nothing."
            }
        }
    }
}
