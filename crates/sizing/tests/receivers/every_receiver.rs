use proptest::prelude::*;
use sweetspot_units::Duration;

use crate::{MAX, MSS, RTT, Script};

const ALL: [&str; 10] = [
    "drs",
    "drs:maxwnd",
    "heffner",
    "heffner:twice",
    "heffner:read",
    "heffner:no-timestamps",
    "linux:6.15",
    "linux:6.16",
    "linux:6.18",
    "linux",
];

#[test]
fn no_receiver_decides_before_it_knows_the_rtt() {
    for sizing in ALL {
        let mut script = Script::new(sizing);
        let first = script.window;
        assert!((4 * MSS..=65_536).contains(&first), "{sizing}: {first}");
        assert_eq!(script.controller.poll_timeout(), None, "{sizing}");
        script.receive(3 * MSS, Duration::from_millis(50));
        assert_eq!(script.window, first, "{sizing}");
    }
}

#[test]
fn the_window_grows_for_a_window_limited_sender() {
    // The sender always fills the window, as in slow start on an endless link. From its first
    // window, each receiver reaches a hundred times as much.
    for sizing in ALL {
        let mut script = Script::new(sizing);
        let first = script.window;
        let mut cwnd = 10 * MSS;
        for _ in 0..400 {
            script.receive(cwnd.min(script.window), RTT);
            cwnd = (2 * cwnd).min(10_000 * MSS);
        }
        // Heffner adds four segments to the arrivals: 400 RTTs are 1600 segments.
        assert!(script.window >= first * 20, "{sizing}: {first} -> {}", script.window);
    }
}

proptest! {
    #[test]
    fn the_window_stays_between_one_segment_and_the_hosts_limit(
        rounds in prop::collection::vec((0u64..3000, 1u64..300, 0u64..100, 1u64..500), 1..40),
    ) {
        for sizing in ALL {
            let mut script = Script::new(sizing);
            for (segments, lasting, unread, rtt) in &rounds {
                script.rtt(Duration::from_millis(*rtt));
                let lasting = Duration::from_millis(*lasting);
                script.receive_leaving(segments * MSS, lasting, unread * MSS);
                prop_assert!((MSS..=MAX).contains(&script.window), "{} {}", sizing, script.window);
            }
        }
    }
}
