//! The window that a Linux sender's socket buffer sustains: autotuned up to `tcp_wmem[2]`, or twice a program's SO_SNDBUF.

use sweetspot_units::{Bytes, Duration};

// include/linux/skbuff.h, SKB_TRUESIZE(), on a 64-bit machine: MAX_TCP_HEADER 256, `struct skb_shared_info` 320, `struct
// sk_buff` 256. The payload is in pages that segments share (tcp_sendmsg_locked()), and counts with its own size.
/// Memory of a segment in addition to its payload.
const OVERHEAD: f64 = 832.0;
// net/ipv4/tcp_output.c, tcp_tso_autosize(): sk_pacing_shift is 10.
/// Segments per second at any sending rate.
const SEGMENTS_PER_SECOND: f64 = 1024.0;
/// The largest segment (GSO_LEGACY_MAX_SIZE), which a sender without pacing passes to the device at once.
pub const LARGEST_SEGMENT: Bytes = Bytes::new(65_536);
/// Packets of the smallest segment in a stream (`tcp_min_tso_segs`).
const SMALLEST_SEGMENT: f64 = 2.0;

// include/net/sock.h, sk_stream_is_writeable(): a waiting program is woken when the free memory is half of the queued memory.
/// The share of the buffer that is still full when a waiting program refills it.
const REFILL_SHARE: f64 = 2.0 / 3.0;

/// A sender's socket buffer on a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SendBuffer {
    /// Its size as counted by the kernel (`sk_sndbuf`): memory, not payload.
    pub memory: Bytes,
    /// Payload of a full packet.
    pub mss: Bytes,
    /// The RTT.
    pub rtt: Duration,
}

impl SendBuffer {
    /// The window of a paced sender, such as bbr: data added by a refill wait in the buffer until they are due. No sender has a
    /// smaller window. Measured on 6.18: 2 % to 16 % more with bbr, 0.2 to 4 MiB, 40 to 100 ms (docs/advise.md).
    pub fn window(&self) -> Bytes {
        self.payload(REFILL_SHARE * self.memory.as_f64())
    }

    /// The mean window of a sender that sends each refill at once, such as cubic without fq: it falls linearly from the whole
    /// buffer to the rest at the next refill. Measured on 6.18: 0.829 of 4 MiB at 80 ms. Below 64 KiB per millisecond it may
    /// exceed the buffer: tcp_sendmsg_locked() lets a partly sent segment grow without checking the memory.
    pub fn window_of_bursts(&self) -> Bytes {
        (self.window() + self.payload(self.memory.as_f64())) / 2
    }

    /// The payload of segments that together use `memory`. A segment carries 1/1024 s of the rate, but at least two packets and
    /// at most 64 KiB.
    fn payload(&self, memory: f64) -> Bytes {
        let segments = SEGMENTS_PER_SECOND * self.rtt.as_secs_f64();
        let of = |segment: f64| memory / (1.0 + OVERHEAD / segment);
        let timed = memory - OVERHEAD * segments;
        let least = of(SMALLEST_SEGMENT * self.mss.as_f64());
        Bytes::from_f64(timed.min(of(LARGEST_SEGMENT.as_f64())).max(least))
    }
}

// net/ipv4/tcp_input.c, tcp_sndbuf_expand(): twice the congestion window. Fast recovery sends new data in addition to a window
// of data that is not cumulatively acknowledged, and a program may react late to free space. That also covers refills, unless
// packets are small.
/// The send buffer that always allows at least `window` in flight, with packets of `mss` payload.
pub fn memory_for(window: Bytes, mss: Bytes) -> Bytes {
    let refilled = (1.0 + OVERHEAD / (SMALLEST_SEGMENT * mss.as_f64())) / REFILL_SHARE;
    (window * 2).max(window.scaled(refilled) + Bytes::new(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(memory: u64, ms: u64) -> SendBuffer {
        let (memory, mss) = (Bytes::new(memory), Bytes::new(1448));
        SendBuffer { memory, mss, rtt: Duration::from_millis(ms) }
    }

    /// 80 ms are 81.92 segments with 832 B each in addition to payload, 68,157 B. Two thirds of 4 MiB are 2,796,203 B.
    #[test]
    fn linuxs_default_buffer_sustains_two_thirds_of_its_size() {
        let default = buffer(4_194_304, 80);
        assert_eq!(default.window(), Bytes::new(2_728_045));
        // The mean of that and 4,194,304 - 68,157.
        assert_eq!(default.window_of_bursts(), Bytes::new(3_427_096));
    }

    /// Segments of two packets: 1 + 832 / 2896 = 1.2873 bytes of memory per byte of payload.
    #[test]
    fn a_slow_senders_segments_have_two_packets() {
        assert_eq!(buffer(60_000, 50).window(), Bytes::new(31_073));
    }

    /// Bytes in flight divided by the buffer's memory, as measured (6.18.44; `sweetspot emulate`, goodput times the min RTT).
    #[test]
    fn paced_senders_reach_the_window_and_at_most_17_percent_more() {
        let measured = [
            (200_000, 50, 0.602),
            (1_048_576, 40, 0.676),
            (1_048_576, 100, 0.641),
            (2_097_152, 80, 0.659),
            (4_194_304, 80, 0.666),
        ];
        for (memory, ms, share) in measured {
            let ratio = share * memory as f64 / buffer(memory, ms).window().as_f64();
            assert!((1.0..1.17).contains(&ratio), "{memory} {ms}: {ratio}");
        }
        // cubic without pacing.
        let bursts = buffer(4_194_304, 80).window_of_bursts().as_f64();
        assert!((0.829 * 4_194_304.0 / bursts - 1.0).abs() < 0.02, "{bursts}");
    }

    #[test]
    fn law_the_memory_for_a_window_always_sustains_it() {
        for mss in [88, 524, 1248, 1448, 8948].map(Bytes::new) {
            for window in [14_480, 1_000_000, 1_000_000_000].map(Bytes::new) {
                let memory = memory_for(window, mss);
                assert!(memory >= window * 2);
                for rtt in [0, 1, 50, 1000].map(Duration::from_millis) {
                    let buffer = SendBuffer { memory, mss, rtt };
                    assert!(buffer.window() >= window, "{buffer:?}");
                }
            }
        }
    }
}
