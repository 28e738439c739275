//! Captures taken before a network card segments data, or after it reassembles them.

use sweetspot_trace::file::{self, Decoder};
use sweetspot_trace::packet::{Dissector, Segment};
use sweetspot_units::{Duration, Time};

use super::watch::SNAP_BYTES;

/// Where several segments on the wire appear as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergePoint {
    /// Segmentation offload: the sender's data, before it is split.
    BeforeSending,
    /// Receive offload: the data that arrived before the card's interrupt.
    OnArrival,
}

/// The largest IPv4 packet.
const LARGEST: usize = 65_535;
/// The length of the Ethernet header, and the offset of the length field in the IPv4 header.
const ETHERNET: usize = 14;
const TOTAL_LENGTH: usize = ETHERNET + 2;

/// A frame and its payload.
struct Frame {
    bytes: Vec<u8>,
    length: usize,
    first: Time,
    time: Time,
    segment: Option<Segment>,
}

impl MergePoint {
    /// Maximum delay of a further segment after the first of a run: the sender passes a whole run
    /// on at once, while a card interrupts a few thousand times a second.
    fn patience(self) -> Duration {
        match self {
            MergePoint::BeforeSending => Duration::from_micros(100),
            MergePoint::OnArrival => Duration::from_micros(500),
        }
    }

    /// The same capture with runs of full segments merged.
    pub fn apply(self, mut capture: &[u8]) -> Result<Vec<u8>, String> {
        let (mut decoder, mut dissector) = (Decoder::default(), Dissector::default());
        let mut together = file::file_header(SNAP_BYTES as u32).to_vec();
        let mut run: Option<Frame> = None;
        while let Some(record) = decoder.next(&mut capture).map_err(|e| e.to_string())? {
            let segment = dissector.dissect(&record).ok().filter(|segment| segment.payload > 0);
            let (bytes, length) = (record.bytes.to_vec(), record.length);
            let frame = Frame { bytes, length, first: record.time, time: record.time, segment };
            match &mut run {
                Some(run) if self.takes(run, &frame) => self.add(run, &frame),
                _ => {
                    let before = run.replace(frame);
                    before.iter().for_each(|frame| frame.write(&mut together));
                }
            }
        }
        run.iter().for_each(|frame| frame.write(&mut together));
        Ok(together)
    }

    /// Whether a network card would have merged `next` into `run`.
    fn takes(self, run: &Frame, next: &Frame) -> bool {
        let Some((a, b)) = run.segment.zip(next.segment) else { return false };
        let follows = a.seq.wrapping_add(a.payload) == b.seq && a.source == b.source;
        follows
            && (a.ack, a.flags, a.options) == (b.ack, b.flags, b.options)
            && run.length + b.payload as usize <= LARGEST
            && next.time.since(run.first) <= self.patience()
    }

    fn add(self, run: &mut Frame, next: &Frame) {
        let Some((segment, more)) = run.segment.as_mut().zip(next.segment) else { return };
        segment.payload += more.payload;
        run.length += more.payload as usize;
        if self == MergePoint::OnArrival {
            run.time = next.time;
        }
        let length = (run.length - ETHERNET) as u16;
        if let Some(field) = run.bytes.get_mut(TOTAL_LENGTH..TOTAL_LENGTH + 2) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
}

impl Frame {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend(file::record_header(self.time, self.bytes.len(), self.length));
        into.extend(&self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 frame with 100 bytes of payload.
    fn frame(seq: u32) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 140, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x9c, 0x40, 0x0f, 0xa0]);
        frame.extend(seq.to_be_bytes());
        frame.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn back_to_back_segments_are_merged_without_losing_bytes() {
        let mut capture = file::file_header(SNAP_BYTES as u32).to_vec();
        // Three in quick succession, one 10 ms later.
        for (seq, micros) in [(1, 0), (101, 10), (201, 20), (301, 10_000)] {
            let bytes = frame(seq);
            let time = Time::ZERO + Duration::from_micros(1_000_000 + micros);
            capture.extend(file::record_header(time, bytes.len(), 154));
            capture.extend(bytes);
        }
        for put_together in [MergePoint::BeforeSending, MergePoint::OnArrival] {
            let together = put_together.apply(&capture).unwrap();
            let (mut decoder, mut dissector) = (Decoder::default(), Dissector::default());
            let (mut rest, mut seen) = (together.as_slice(), Vec::new());
            while let Some(record) = decoder.next(&mut rest).unwrap() {
                let segment = dissector.dissect(&record).unwrap();
                seen.push((segment.seq, segment.payload));
            }
            assert_eq!(seen, [(1, 300), (301, 100)]);
        }
    }
}
