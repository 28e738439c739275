//! Depth of the bottleneck's buffer, from a stream that fills it.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration};

use crate::discipline::drops_by_aqm;
use crate::finding::{Bound, Finding};
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
///
/// `longest_s` is the longest queueing delay that any stream observed. The buffer held that queue, so an estimate below it is
/// wrong: an AQM's drops do not show a full buffer, and leave only this bound.
pub fn buffer_depth(overload: &Overload<'_>, longest_s: f64) -> BufferDepth {
    let size = overload.stream.size;
    let in_bytes = |wait: f64, packets: u64| {
        overload.capacity * Duration::from_secs_f64(wait) + size * packets
    };
    let observed = in_bytes(longest_s.max(overload.longest_wait_s()), 0);
    let delay = |bytes: Bytes| bytes / overload.capacity;
    let at_least = |why: &str| match observed {
        Bytes::ZERO => BufferDepth { bytes: Finding::unknown(why), delay: Finding::unknown(why) },
        _ => BufferDepth {
            bytes: Finding::bounded(Bound::AtLeast(observed), why),
            delay: Finding::bounded(Bound::AtLeast(delay(observed)), why),
        },
    };
    if !overload.is_full() {
        return at_least("it did not fill");
    }
    if drops_by_aqm(overload) {
        return at_least("drops come from the AQM, not from a full buffer");
    }
    let last_half = overload.stream.sent / 2;
    let waits: Sorted = overload
        .beside_losses()
        .iter()
        .filter(|beside| beside.index >= last_half)
        .map(|beside| beside.waited_s.max(0.0))
        .collect();
    let Some([low, wait, high]) = waits.quantiles([0.05, 0.5, 0.95]) else {
        return at_least("no packet arrived next to a dropped one");
    };
    let how = format!("the delay of the packets next to {} dropped ones", waits.len());
    let [low, value, high] = [in_bytes(low, 0), in_bytes(wait, 1), in_bytes(high, 2).max(observed)];
    BufferDepth {
        bytes: Finding::known(value, low, high, how.clone()),
        delay: Finding::known(delay(value), delay(low), delay(high), how),
    }
}
