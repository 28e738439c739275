use sweetspot_theory::host::send_buffer;
use sweetspot_theory::host::window_scale::WindowScale;
use sweetspot_units::Bytes;

use crate::{AdviceError, Kernel};

/// The receiver's and sender's settings that allow a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    /// Minimum of `tcp_rmem[2]` for autotuning to reach the window.
    pub tcp_rmem_max: Bytes,
    /// The `SO_RCVBUF` of a program that sets its own buffer; `rmem_max` must allow it.
    pub so_rcvbuf: Bytes,
    /// The sender's `tcp_wmem[2]`.
    pub tcp_wmem_max: Bytes,
    /// The window scale that the window needs.
    pub window_scale: WindowScale,
    /// The step between windows with that scale.
    pub granularity: Bytes,
}

/// Linux's default of `tcp_rmem[1]`, the initial buffer of a connection. Autotuning only grows it.
pub(super) const FIRST_RECEIVE_BUFFER: Bytes = Bytes::new(131_072);

impl WindowSettings {
    /// Whether `tcp_rmem[2]` limits the window. It does not if it is below the initial buffer.
    pub fn autotuning_reaches(&self) -> bool {
        self.tcp_rmem_max >= FIRST_RECEIVE_BUFFER
    }

    /// The settings for `window`, in packets with `mss` of payload, on `kernel`. The ratio of memory to window is a new
    /// connection's.
    ///
    /// # Errors
    /// If TCP cannot have such a large window.
    pub fn for_window(
        window: Bytes,
        mss: Bytes,
        kernel: Kernel,
    ) -> Result<WindowSettings, AdviceError> {
        let window_scale = WindowScale::for_window(window)?;
        Ok(WindowSettings {
            tcp_rmem_max: kernel.era().memory_for(window, None),
            so_rcvbuf: kernel.era().so_rcvbuf_for(window, None),
            tcp_wmem_max: send_buffer::memory_for(window, mss),
            window_scale,
            granularity: window_scale.granularity(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Kernel = Kernel { major: 6, minor: 18 };
    const MSS: Bytes = Bytes::new(1448);

    #[test]
    fn settings_for_a_window_of_100_mb_match_hand_calculation() {
        let s = WindowSettings::for_window(Bytes::new(100_000_000), MSS, KERNEL).unwrap();
        // Half of the receive buffer is window from 6.8 on; a sender's holds twice its window. 100e6 / 65,535 = 1525.9 -> 2^11.
        assert_eq!(s.tcp_rmem_max, Bytes::new(200_000_000));
        assert_eq!(s.so_rcvbuf, Bytes::new(100_000_000));
        assert_eq!(s.tcp_wmem_max, Bytes::new(200_000_000));
        assert_eq!((s.window_scale.bits(), s.granularity), (11, Bytes::new(2048)));
    }

    #[test]
    fn autotuning_cannot_set_a_window_below_the_initial_buffer() {
        let reaches = |window| {
            let settings = WindowSettings::for_window(Bytes::new(window), MSS, KERNEL).unwrap();
            settings.autotuning_reaches()
        };
        // Half of 131,072 is window.
        assert!(!reaches(65_535) && reaches(65_536));
    }

    #[test]
    fn windows_above_one_gibibyte_are_rejected() {
        assert!(WindowSettings::for_window(Bytes::new(2_000_000_000), MSS, KERNEL).is_err());
    }
}
