use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::{Bytes, Duration, Rate, Volume};

/// One path of the benchmark.
pub struct CellPlan {
    /// Its name in the document and for `--only`.
    pub name: String,
    /// The path.
    pub path: PathSpec,
    /// The file's size.
    pub size: Bytes,
    /// Whether iperf3 is also measured on it.
    pub reference: bool,
}

/// The demonstration's path.
pub fn demo() -> CellPlan {
    let tenth = 0.1;
    CellPlan { name: "demo".into(), reference: true, ..cell(100, 100, tenth) }
}

/// All combinations of three rates, two RTTs, and a small and a large buffer.
pub fn matrix() -> Vec<CellPlan> {
    let mut all = Vec::new();
    for mbit in [20, 100, 400] {
        for ms in [20, 100] {
            all.extend([0.1, 1.0].map(|bdps| cell(mbit, ms, bdps)));
        }
    }
    all
}

/// A path of `mbit` Mbit/s and `ms` milliseconds, with a buffer of `bdps` bandwidth-delay products.
fn cell(mbit: u64, ms: u64, bdps: f64) -> CellPlan {
    // Ten packets: a smaller buffer would drop packets of the initial window (RFC 6928: ten
    // segments).
    const MIN_BUFFER: Bytes = Bytes::new(15_000);
    // 16.6 s at the path's payload capacity, so that slow start is a small part of it.
    const SIZE_PER_MBIT: Bytes = Bytes::new(2_000_000);
    let (rate, rtt) = (Rate::from_mbit_per_second(mbit), Duration::from_millis(ms));
    let buffer = (rate * rtt).scaled(bdps).max(MIN_BUFFER);
    let direction = DirectionSpec::new(rate, rtt / 2, Volume::Bytes(buffer));
    CellPlan {
        name: format!("{mbit}Mbit-{ms}ms-{bdps:.1}BDP"),
        path: PathSpec { up: direction, down: direction, mtu: Bytes::new(1500), seed: 1 },
        size: SIZE_PER_MBIT * mbit,
        // At high packet rates CPU time is clearly above the noise.
        reference: (mbit, ms, bdps) == (400, 20, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_comparison::DEMO_PATH;

    #[test]
    fn the_benchmark_begins_with_the_demonstrations_path() {
        assert_eq!(Ok(demo().path), DEMO_PATH.parse());
        assert_eq!(demo().size, Bytes::new(200_000_000));
    }

    #[test]
    fn small_buffers_are_one_tenth_bdp_but_at_least_15_kb() {
        let buffers: Vec<String> =
            matrix().iter().map(|plan| plan.path.up.buffer.to_string()).collect();
        // BDPs: 20 Mbit/s x 20 ms = 50 kB, x 100 ms = 250 kB; at 100 Mbit/s 250 kB and 1.25 MB; at
        // 400 Mbit/s 1 MB and 5 MB.
        let expected = [
            "15 kB", "50 kB", "25 kB", "250 kB", "25 kB", "250 kB", "125 kB", "1.25 MB", "100 kB",
            "1 MB", "500 kB", "5 MB",
        ];
        assert_eq!(buffers, expected);
    }
}
