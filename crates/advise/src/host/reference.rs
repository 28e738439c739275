//! Published recommendations from other sources, for comparison.

use sweetspot_units::{Bytes, Duration, Rate};

/// A recommendation for the two buffer limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedSettings {
    /// The publisher.
    pub who: &'static str,
    /// The hosts that the recommendation is meant for.
    pub class: &'static str,
    /// `net.core.rmem_max` and `wmem_max`.
    pub socket_max: Bytes,
    /// `tcp_rmem[2]` and `tcp_wmem[2]`.
    pub autotuning_max: Bytes,
}

const MIB: u64 = 1 << 20;

// fasterdata.es.net/host-tuning/linux: 64 MB and 32 MB for 10G up to 100 ms; 128 MB and 64 MB for
// longer 10G paths and for 40G.
/// ESnet's values for a host of `speed` and a path with this `rtt`.
pub(super) fn esnet(speed: Rate, rtt: Duration) -> PublishedSettings {
    let near = speed <= Rate::from_mbit_per_second(10_000) && rtt <= Duration::from_millis(100);
    let (class, socket, tuned) = match near {
        true => ("10G, up to 100 ms", 64, 32),
        false => ("10G beyond 100 ms, 40G", 128, 64),
    };
    reference("ESnet", class, socket, tuned)
}

// perfSONAR 5.2, configure_sysctl: by the speed of the interface.
/// perfSONAR's values for a host of `speed`.
pub(super) fn perfsonar(speed: Rate) -> PublishedSettings {
    let gbit = |n: u64| Rate::from_mbit_per_second(n * 1000);
    let (class, socket, tuned) = match speed {
        s if s >= gbit(40) => ("40G and more", 512, 256),
        s if s >= gbit(10) => ("10G and more", 256, 128),
        _ => ("below 10G", 64, 32),
    };
    reference("perfSONAR", class, socket, tuned)
}

fn reference(who: &'static str, class: &'static str, socket: u64, tuned: u64) -> PublishedSettings {
    PublishedSettings {
        who,
        class,
        socket_max: Bytes::new(socket * MIB),
        autotuning_max: Bytes::new(tuned * MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_and_longer_paths_get_larger_buffers() {
        let (ten, forty) = (Rate::from_mbit_per_second(10_000), Rate::from_mbit_per_second(40_000));
        let (near, far) = (Duration::from_millis(80), Duration::from_millis(200));
        assert_eq!(esnet(ten, near).autotuning_max, Bytes::new(33_554_432));
        assert_eq!(esnet(ten, far).autotuning_max, Bytes::new(67_108_864));
        assert_eq!(perfsonar(forty).autotuning_max, Bytes::new(268_435_456));
        assert!(perfsonar(ten).socket_max < perfsonar(forty).socket_max);
    }
}
