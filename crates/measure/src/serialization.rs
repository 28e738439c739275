//! Serialisation time of one packet on the path: the extra delay of larger packets on its links.

use sweetspot_units::Rate;

use crate::finding::Finding;
use crate::observation::StreamRecord;
use crate::undisturbed::{lower_line, points};

/// Half-width of the rate's interval, due to clocks and schedulers.
const HALF_WIDTH: f64 = 0.02;
/// Minimum number of packets of either size.
const MIN_PACKETS: usize = 8;

/// The rate from the extra delay of the earliest full packets over the earliest small ones (Jacobson 1997, "pathchar").
///
/// A packet of L bytes on an idle path takes L / C_i on each link. Two sizes therefore differ by (L - l) sum(1 / C_i), so the
/// result never exceeds the narrow link's rate. Other flows' shares do not affect it: if each flow has its own queue
/// (FQ-CoDel), cross traffic slows a train but not a single packet. `sparse` are the small packets; the lower line under
/// their delays is the path without queues. `heads` are streams of full packets: the first packet of each has no earlier
/// packet of the measurement in front of it.
pub fn serialization<'a>(
    sparse: &StreamRecord,
    heads: impl IntoIterator<Item = &'a StreamRecord>,
) -> Finding<Rate> {
    let small = points(sparse, None);
    let origin = sparse.arrivals.iter().min_by_key(|arrival| arrival.index);
    let Some(origin) = origin.filter(|_| small.len() >= MIN_PACKETS) else {
        return Finding::unknown("too few small packets arrived");
    };
    let (intercept, slope) = lower_line(&small);
    let (mut found, mut min, mut bits) = (0, f64::INFINITY, 0.0);
    for stream in heads {
        let head = StreamRecord {
            arrivals: stream.arrivals.iter().filter(|a| a.index == 0).copied().collect(),
            ..*stream
        };
        for (at, delay) in points(&head, Some(origin.sent)) {
            found += 1;
            min = min.min(delay - intercept - slope * at);
            bits = (stream.size.as_f64() - sparse.size.as_f64()) * 8.0;
        }
    }
    if found < MIN_PACKETS || bits <= 0.0 || min <= 0.0 {
        return Finding::unknown(format!("{found} full packets travelled alone: too few"));
    }
    let rate = bits / min;
    let bound = |rate: f64| Rate::from_f64(rate.round());
    let (low, high) = (bound(rate * (1.0 - HALF_WIDTH)), bound(rate * (1.0 + HALF_WIDTH)));
    let how = format!(
        "the extra delay of {found} single full packets over small ones: trains get a share of the link"
    );
    Finding::known(bound(rate), low, high, how)
}
