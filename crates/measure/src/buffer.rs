//! Depth of the bottleneck's buffer, from a stream that fills it.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration};

use crate::discipline::drops_early;
use crate::finding::Finding;
use crate::overload::Overload;

/// A buffer's depth.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferDepth {
    /// Depth in bytes on the wire.
    pub bytes: Finding<Bytes>,
    /// Depth as the time that the link takes to drain it.
    pub delay: Finding<Duration>,
}

/// The buffer's depth, from packets next to dropped ones. The depth includes the packet in service until its last bit has left.
///
/// Let the link's rate be C and the packet's size s. A packet that waited for w found between C w - s and C w bytes in the
/// buffer, not counting itself. It was accepted, so the buffer holds at least C w. The next packet was dropped, so the buffer
/// holds less than C w + 2 s.
pub fn buffer_depth(overload: &Overload<'_>) -> BufferDepth {
    let size = overload.stream.size;
    let in_bytes = |wait: f64, packets: u64| {
        overload.capacity * Duration::from_secs_f64(wait) + size * packets
    };
    let unknown = |why: String| BufferDepth {
        bytes: Finding::unknown(why.clone()),
        delay: Finding::unknown(why),
    };
    let longest = overload.longest_wait_s();
    if !overload.is_full() {
        return unknown(format!(
            "it did not fill: it holds {} or more, {} at this rate",
            in_bytes(longest, 1),
            in_bytes(longest, 1) / overload.capacity
        ));
    }
    if drops_early(overload) {
        return unknown(format!(
            "the queue discipline drops before the buffer is full; {} were queued",
            in_bytes(longest, 1)
        ));
    }
    let last_half = overload.stream.sent / 2;
    let waits: Sorted = overload
        .beside_losses()
        .iter()
        .filter(|beside| beside.index >= last_half)
        .map(|beside| beside.waited_s.max(0.0))
        .collect();
    let Some([low, wait, high]) = waits.quantiles([0.05, 0.5, 0.95]) else {
        return unknown("no packet arrived next to a dropped one".into());
    };
    let how = format!("the delay of the packets next to {} dropped ones", waits.len());
    let [low, value, high] = [in_bytes(low, 0), in_bytes(wait, 1), in_bytes(high, 2)];
    let delay = |bytes: Bytes| bytes / overload.capacity;
    BufferDepth {
        bytes: Finding::known(value, low, high, how.clone()),
        delay: Finding::known(delay(value), delay(low), delay(high), how),
    }
}
