//! The window that a Linux receiver advertises for a socket buffer, for each era of the kernel. The blog (S. Gordon 2012)
//! determined the first two by experiment.

use sweetspot_units::Bytes;

use crate::Result;
use crate::error::require;

/// Kernel versions that derive the advertised window from the buffer by one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// Up to 3.3: `tcp_adv_win_scale` = 2 keeps a quarter of the buffer for overhead.
    ThreeQuarters,
    /// 3.4 to 6.5: `tcp_adv_win_scale` = 1 keeps a half (kernel commit b49960a05e32, also in
    /// Ubuntu's 3.2).
    Half,
    /// 6.6 and 6.7: the measured ratio of payload to memory, starting at a cautious quarter or so (kernel commit
    /// dfa2f0483360). `tcp_adv_win_scale` no longer has an effect.
    CautiousRatio,
    /// From 6.8: the measured ratio, starting at a half (kernel commit 697a6c8cec03).
    Ratio,
}

/// Payload divided by memory in 256ths, as stored by kernels from 6.6 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalingRatio(u16);

impl ScalingRatio {
    // Linux net/ipv4/tcp_input.c, tcp_measure_rcv_mss(): (payload << 8) / truesize, at least 1.
    /// The ratio of packets with `payload` bytes that take `memory` bytes of kernel memory each.
    ///
    /// # Errors
    /// If `memory` is zero or less than `payload`.
    pub fn measured(payload: Bytes, memory: Bytes) -> Result<ScalingRatio> {
        let holds = memory > Bytes::ZERO && payload <= memory;
        require(holds, "memory", memory, "at least the payload that it holds")?;
        // The kernel stores the ratio in 8 bits.
        Ok(ScalingRatio((payload.get() * 256 / memory.get()).clamp(1, 255) as u16))
    }

    /// The share of the buffer that is available as window.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 256.0
    }
}

impl Era {
    /// The era of the released kernel `major`.`minor`; distributions backport patches.
    pub fn of_kernel(major: u32, minor: u32) -> Era {
        match (major, minor) {
            version if version < (3, 4) => Era::ThreeQuarters,
            version if version < (6, 6) => Era::Half,
            version if version < (6, 8) => Era::CautiousRatio,
            _ => Era::Ratio,
        }
    }

    /// Whether `tcp_adv_win_scale` has an effect.
    pub fn obeys_adv_win_scale(self) -> bool {
        self < Era::CautiousRatio
    }

    // Linux include/net/tcp.h, tcp_win_from_space().
    /// The window for `memory`, the socket's whole receive buffer. From 6.6 on, `measured` replaces a connection's initial
    /// ratio after the first full segments.
    pub fn window(self, memory: Bytes, measured: Option<ScalingRatio>) -> Bytes {
        let space = memory.get();
        Bytes::new(match self {
            Era::ThreeQuarters => space - space / 4,
            Era::Half => space - space / 2,
            Era::CautiousRatio | Era::Ratio => {
                let ratio = measured.unwrap_or(self.first_ratio());
                (u128::from(space) * u128::from(ratio.0) / 256) as u64
            }
        })
    }

    // Linux net/core/sock.c, __sock_set_rcvbuf(): twice the requested size, after limiting the request to rmem_max.
    /// The window of a program that sets SO_RCVBUF to `requested` on a host that allows `rmem_max`.
    ///
    /// # Errors
    /// If `requested` is zero.
    pub fn window_of_so_rcvbuf(
        self,
        requested: Bytes,
        rmem_max: Bytes,
        measured: Option<ScalingRatio>,
    ) -> Result<Bytes> {
        require(requested > Bytes::ZERO, "SO_RCVBUF", requested, "it must be above zero")?;
        let granted = requested.min(rmem_max);
        Ok(self.window(granted.saturating_add(granted), measured))
    }

    /// The minimum memory for a window of at least `window`: the value of `tcp_rmem[2]` with which autotuning reaches it.
    pub fn memory_for(self, window: Bytes, measured: Option<ScalingRatio>) -> Bytes {
        let w = u128::from(window.get());
        let memory = match self {
            // space - floor(space/4) = ceil(3 space/4) >= w  <=>  space > 4 (w - 1) / 3.
            Era::ThreeQuarters => (w * 4).saturating_sub(4) / 3 + u128::from(w > 0),
            Era::Half => (w * 2).saturating_sub(1),
            Era::CautiousRatio | Era::Ratio => {
                (w * 256).div_ceil(u128::from(measured.unwrap_or(self.first_ratio()).0))
            }
        };
        Bytes::new(u64::try_from(memory).unwrap_or(u64::MAX))
    }

    /// The SO_RCVBUF that a program must request: half of the memory, because the kernel doubles it.
    pub fn so_rcvbuf_for(self, window: Bytes, measured: Option<ScalingRatio>) -> Bytes {
        Bytes::new(self.memory_for(window, measured).get().div_ceil(2))
    }

    fn first_ratio(self) -> ScalingRatio {
        match self {
            // (1200 << 8) / SKB_TRUESIZE(4096); an sk_buff and its shared info take 576 B on
            // 64-bit machines: 307,200 / 4,672 = 65.
            Era::CautiousRatio => ScalingRatio(65),
            // 1 << (8 - 1).
            _ => ScalingRatio(128),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERAS: [Era; 4] = [Era::ThreeQuarters, Era::Half, Era::CautiousRatio, Era::Ratio];

    #[test]
    fn kernel_versions_map_to_their_eras() {
        let of = |(a, b)| Era::of_kernel(a, b);
        assert_eq!([(2, 6), (3, 3)].map(of), [Era::ThreeQuarters; 2]);
        assert_eq!([(3, 4), (4, 19), (5, 15), (6, 5)].map(of), [Era::Half; 4]);
        assert_eq!([(6, 6), (6, 7)].map(of), [Era::CautiousRatio; 2]);
        assert_eq!([(6, 8), (6, 18), (7, 0)].map(of), [Era::Ratio; 3]);
        assert!(Era::Half.obeys_adv_win_scale() && !Era::CautiousRatio.obeys_adv_win_scale());
    }

    #[test]
    fn a_megabyte_in_each_era_matches_a_hand_calculation() {
        // 1,000,000 B: 3/4, 1/2, 65/256 = 253,906, 128/256.
        let windows = ERAS.map(|era| era.window(Bytes::new(1_000_000), None).get());
        assert_eq!(windows, [750_000, 500_000, 253_906, 500_000]);
    }

    #[test]
    fn a_measured_ratio_replaces_the_initial_one() {
        // 1448 B in a packet of 2304 B of memory: 370,688 / 2304 = 160; 160/256 of 1 MB.
        let ratio = ScalingRatio::measured(Bytes::new(1448), Bytes::new(2304)).unwrap();
        assert_eq!(ratio.share(), 0.625);
        assert_eq!(Era::Ratio.window(Bytes::new(1_000_000), Some(ratio)), Bytes::new(625_000));
        assert_eq!(Era::Half.window(Bytes::new(1_000_000), Some(ratio)), Bytes::new(500_000));
        assert!(ScalingRatio::measured(Bytes::new(2), Bytes::new(1)).is_err());
        assert!(ScalingRatio::measured(Bytes::ZERO, Bytes::ZERO).is_err());
    }

    #[test]
    fn rmem_max_caps_the_requested_buffer() {
        // A common mistake: 4 MB requested, 212,992 allowed and doubled; half of that is window.
        let requested = Bytes::new(4_000_000);
        let window = Era::Half.window_of_so_rcvbuf(requested, Bytes::new(212_992), None);
        assert_eq!(window, Ok(Bytes::new(212_992)));
        assert!(Era::Half.window_of_so_rcvbuf(Bytes::ZERO, requested, None).is_err());
    }

    #[test]
    fn the_memory_for_a_window_is_minimal() {
        for era in ERAS {
            for w in [1u64, 2, 3, 4, 5, 1000, 65_535, 1_000_001] {
                let memory = era.memory_for(Bytes::new(w), None);
                assert!(era.window(memory, None).get() >= w, "{era:?} {w} {memory}");
                let less = memory - Bytes::new(1);
                assert!(era.window(less, None).get() < w, "{era:?} {w} {memory}");
            }
            assert_eq!(era.memory_for(Bytes::ZERO, None), Bytes::ZERO);
        }
    }

    #[test]
    fn the_suggested_so_rcvbuf_yields_the_wanted_window() {
        for era in ERAS {
            let wanted = Bytes::new(12_345_678);
            let requested = era.so_rcvbuf_for(wanted, None);
            assert!(era.window_of_so_rcvbuf(requested, Bytes::MAX, None).unwrap() >= wanted);
        }
    }
}
