//! Compresses single pieces if that saves time.
//!
//! Compression saves time if the path is the bottleneck: pieces are queued, and this thread compresses faster than the
//! connections send. Content that does not shrink is tried less and less often.

use ruzstd::decoding::FrameDecoder;
use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_units::{Bytes, Duration, Rate, Time};
use zstd::bulk::Compressor;

/// The fastest of zstd's usual levels. The next ones gain a few percent at half the speed.
const LEVEL: i32 = 1;
/// Minimum number of queued pieces that indicates that the path is slower than the disk.
pub(crate) const WAITING_PIECES: usize = 2;
/// Compression speed until one has been measured: slower than a CPU core of 2015.
const ASSUMED_SPEED: Rate = Rate::from_mbit_per_second(800);
/// Maximum size of a compressed piece as a share of its content. A smaller gain is not worth the receiver's time.
const WORTHWHILE: f64 = 7.0 / 8.0;
/// Maximum number of pieces that are skipped after some that did not shrink: 16 MiB.
const MAX_PASSED_OVER: u32 = 64;
/// Content shorter than this hardly shrinks, bytes.
const MIN_CONTENT: usize = 512;
/// The shortest interval over which the rate of the connections is measured.
const METER_INTERVAL: Duration = Duration::from_millis(100);

/// Compresses pieces on one thread.
pub(crate) struct Packer {
    compressor: Compressor<'static>,
    packed: Vec<u8>,
    trials: Trials,
    speed: Rate,
}

/// Decides which pieces to try, from how much the previous ones shrank.
#[derive(Debug, Default)]
struct Trials {
    pass_over: u32,
    next_pass_over: u32,
}

impl Packer {
    /// `None` if the compressor cannot be created.
    pub fn new() -> Option<Packer> {
        let compressor = Compressor::new(LEVEL).ok()?;
        let (packed, trials) = (Vec::new(), Trials::default());
        Some(Packer { compressor, packed, trials, speed: ASSUMED_SPEED })
    }

    /// Whether to compress the next piece, given `waiting` queued pieces and the total rate `carried` of the connections.
    pub fn is_worthwhile(&mut self, length: usize, waiting: usize, carried: Option<Rate>) -> bool {
        length >= MIN_CONTENT
            && waiting >= WAITING_PIECES
            && carried.is_some_and(|carried| carried < self.speed)
            && self.trials.is_next()
    }

    /// The compressed content; `None` if it does not shrink enough. `clock` returns the time.
    pub fn pack(&mut self, content: &[u8], clock: impl Fn() -> Time) -> Option<&[u8]> {
        let begin = clock();
        self.packed.clear();
        self.packed.resize(content.len(), 0);
        // The only error is that the result does not fit.
        let packed = self.compressor.compress_to_buffer(content, &mut self.packed[..]);
        let took = clock().since(begin);
        if content.len() as u64 * 4 >= PIECE_BYTES && took > Duration::ZERO {
            self.speed = Bytes::new(content.len() as u64) / took;
        }
        let max = (content.len() as f64 * WORTHWHILE) as usize;
        let packed = packed.ok().filter(|length| *length <= max);
        self.trials.note(packed.is_some());
        packed.map(|length| &self.packed[..length])
    }
}

impl Trials {
    fn is_next(&mut self) -> bool {
        let next = self.pass_over == 0;
        self.pass_over = self.pass_over.saturating_sub(1);
        next
    }

    fn note(&mut self, shrank: bool) {
        self.next_pass_over =
            if shrank { 0 } else { (self.next_pass_over * 2 + 1).min(MAX_PASSED_OVER) };
        self.pass_over = self.next_pass_over;
    }
}

/// The rate of all connections of a transfer together.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    since: Option<Time>,
    bytes: Bytes,
    rate: Option<Rate>,
}

impl Meter {
    /// Counts `bytes` more, written to a connection by `now`.
    pub fn note(&mut self, now: Time, bytes: Bytes) {
        let since = *self.since.get_or_insert(now);
        self.bytes += bytes;
        if now.since(since) >= METER_INTERVAL {
            self.rate = Some(self.bytes / now.since(since));
            (self.since, self.bytes) = (Some(now), Bytes::ZERO);
        }
    }

    /// The total rate of the connections, once it is known.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

/// Decompresses pieces on one thread, in bounded memory even if the sender is hostile.
pub(crate) struct Unpacker(FrameDecoder);

impl Default for Unpacker {
    fn default() -> Unpacker {
        let mut decoder = FrameDecoder::new();
        // A piece is a single segment, so no window is longer than a piece.
        decoder.set_max_window_size(PIECE_BYTES);
        Unpacker(decoder)
    }
}

impl Unpacker {
    /// Decompresses a piece of `length` bytes; `None` if `packed` does not hold exactly that.
    pub fn unpack(&mut self, packed: &[u8], length: u32) -> Option<Vec<u8>> {
        let mut content = vec![0; length as usize];
        let unpacked = self.0.decode_all(packed, &mut content);
        unpacked.is_ok_and(|unpacked| unpacked == content.len()).then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// A clock that advances by `step` at each call.
    fn clock(step: Duration) -> impl Fn() -> Time {
        let now = Cell::new(Time::ZERO);
        move || {
            now.set(now.get() + step);
            now.get()
        }
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    #[test]
    fn packing_pays_if_pieces_wait_and_the_path_is_slower_than_compression() {
        let mut packer = Packer::new().unwrap();
        let slow = Some(Rate::from_mbit_per_second(100));
        assert!(packer.is_worthwhile(4096, WAITING_PIECES, slow));
        assert!(!packer.is_worthwhile(4096, WAITING_PIECES - 1, slow), "the disk is slower");
        assert!(!packer.is_worthwhile(4096, 16, Some(Rate::from_mbit_per_second(10_000))));
        assert!(!packer.is_worthwhile(4096, 16, None), "the path is not known yet");
        assert!(!packer.is_worthwhile(100, 16, slow));
        // 256 KiB in 100 ms are 21 Mbit/s, slower than the path.
        packer.pack(&[0; 256 << 10], clock(Duration::from_millis(100))).unwrap();
        assert!(!packer.is_worthwhile(4096, 16, slow));
        assert!(packer.is_worthwhile(4096, 16, Some(Rate::from_mbit_per_second(20))));
    }

    #[test]
    fn incompressible_content_is_tried_less_and_less() {
        let (mut packer, noise) = (Packer::new().unwrap(), noise(256 << 10));
        let (mut tried, pieces) = (0, 10_000);
        for _ in 0..pieces {
            if packer.is_worthwhile(noise.len(), 16, Some(Rate::ZERO)) {
                tried += 1;
                assert!(packer.pack(&noise, clock(Duration::from_millis(1))).is_none());
            }
        }
        assert!(tried < pieces / 50, "{tried}");
        let text = b"the same again ".repeat(1000);
        packer.trials.pass_over = 0;
        for _ in 0..10 {
            assert!(
                packer.is_worthwhile(text.len(), 16, Some(Rate::ZERO)),
                "shrinking content is always tried"
            );
            assert!(packer.pack(&text, clock(Duration::from_millis(1))).is_some());
        }
    }

    #[test]
    fn the_meter_shows_the_rate_of_the_last_interval() {
        let (mut meter, start) = (Meter::default(), Time::ZERO);
        meter.note(start, Bytes::new(1000));
        assert_eq!(meter.rate(), None);
        meter.note(start + METER_INTERVAL, Bytes::new(9000));
        assert_eq!(meter.rate(), Some(Bytes::new(10_000) / METER_INTERVAL));
        meter.note(start + METER_INTERVAL * 3, Bytes::new(40_000));
        assert_eq!(meter.rate(), Some(Bytes::new(20_000) / METER_INTERVAL));
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
        assert!(bomb.len() < 10_000);
        assert_eq!(Unpacker::default().unpack(&bomb, PIECE_BYTES as u32), None, "a long window");
        // Two frames in one piece, and a frame that holds more than its announced length.
        let piece = zstd::bulk::compress(&vec![0; PIECE_BYTES as usize], 1).unwrap();
        let mut unpacker = Unpacker::default();
        assert_eq!(unpacker.unpack(&[&piece[..], &piece].concat(), PIECE_BYTES as u32), None);
        assert_eq!(unpacker.unpack(&piece, PIECE_BYTES as u32 - 1), None);
        assert!(unpacker.unpack(&piece, PIECE_BYTES as u32).is_some(), "the decoder still works");
    }

    proptest! {
        #[test]
        fn packed_content_unpacks_unchanged(seed in 0usize..200, repeat in 2usize..300) {
            let content = noise(seed + 1).repeat(repeat);
            let mut packer = Packer::new().unwrap();
            if let Some(packed) = packer.pack(&content, clock(Duration::from_millis(1))) {
                prop_assert!(packed.len() < content.len());
                let unpacked = Unpacker::default().unpack(packed, content.len() as u32);
                prop_assert_eq!(unpacked, Some(content));
            }
        }

        #[test]
        fn damaged_data_causes_no_panic_and_no_content_of_wrong_length(
            damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8),
            cut in any::<usize>(),
        ) {
            let content = noise(3000).repeat(20);
            let mut packed = zstd::bulk::compress(&content, 1).unwrap();
            for (at, byte) in damage {
                let at = at % packed.len();
                packed[at] ^= byte;
            }
            packed.truncate(cut % packed.len() + 1);
            // Any output is verified by its hash later.
            let unpacked = Unpacker::default().unpack(&packed, content.len() as u32);
            prop_assert!(unpacked.is_none_or(|unpacked| unpacked.len() == content.len()));
        }
    }
}
