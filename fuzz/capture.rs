//! A capture, as a hostile or broken program may write it, as a function of bytes. Run by the fuzz
//! target (`cargo +nightly fuzz run capture`) and by the property tests of `sweetspot-trace`.

use sweetspot_trace::file::{CaptureError, Decoder};
use sweetspot_trace::flow::Table;
use sweetspot_trace::packet::{Dissector, PacketCounts, Segment};

/// The result of reading a capture: its segments, the packet counts, and whether it ended without
/// error.
pub type Read = (Vec<Segment>, PacketCounts, Result<(), CaptureError>);

/// Reads `data` in pieces of `size` bytes, and follows its connections to their ends.
pub fn capture(data: &[u8], size: usize) -> Read {
    let (mut decoder, mut dissector) = (Decoder::default(), Dissector::default());
    // A small capacity, so that connections must be evicted.
    let mut table = Table::with_capacity(3);
    let (mut waiting, mut segments) = (Vec::new(), Vec::new());
    for piece in data.chunks(size.max(1)) {
        waiting.extend_from_slice(piece);
        let mut input = &waiting[..];
        loop {
            match decoder.next(&mut input) {
                Ok(Some(record)) => {
                    assert!(record.bytes.len() <= record.length);
                    let Ok(segment) = dissector.dissect(&record) else { continue };
                    segments.push(segment);
                    table.take(&segment);
                }
                Ok(None) => break,
                Err(error) => return (segments, dissector.counts(), Err(error)),
            }
        }
        waiting = input.to_vec();
    }
    let ended = decoder.end(&waiting);
    while let Some(connection) = table.drain() {
        for stream in &connection.streams {
            assert!(stream.counts().acked <= stream.counts().bytes + stream.counts().unseen);
        }
    }
    (segments, dissector.counts(), ended)
}
