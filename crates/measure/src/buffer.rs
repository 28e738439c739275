//! The depth of the bottleneck's buffer, from a stream that fills it.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration};

use crate::discipline::drops_early;
use crate::finding::Finding;
use crate::overload::Overload;

/// A buffer's depth.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferDepth {
    /// In bytes on the wire.
    pub bytes: Finding<Bytes>,
    /// As the longest time that a packet waited in it.
    pub delay: Finding<Duration>,
}

/// The buffer's depth: the delay of a packet next to a dropped one, times the capacity, plus the packet itself. It counts the
/// packet in service.
pub fn buffer_depth(overload: &Overload<'_>) -> BufferDepth {
    let size = overload.stream.size;
    let in_bytes = |wait: f64| overload.capacity * Duration::from_secs_f64(wait) + size;
    let unknown = |why: String| BufferDepth {
        bytes: Finding::unknown(why.clone()),
        delay: Finding::unknown(why),
    };
    let longest = overload.longest_wait_s();
    if !overload.is_full() {
        return unknown(format!(
            "it did not fill: it holds {} or more, {} at this rate",
            in_bytes(longest),
            Duration::from_secs_f64(longest)
        ));
    }
    if drops_early(overload) {
        return unknown(format!(
            "the queue discipline drops before the buffer is full; {} were queued",
            in_bytes(longest)
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
    let span = Duration::from_secs_f64;
    BufferDepth {
        bytes: Finding::known(in_bytes(wait), in_bytes(low), in_bytes(high), how.clone()),
        delay: Finding::known(span(wait), span(low), span(high), how),
    }
}
