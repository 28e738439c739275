//! The mean size of a transfer, given or assumed, and the degree to which flows of that size persist.

use sweetspot_theory::Packets;
use sweetspot_theory::router::closed_loop::size_to_fill;
use sweetspot_units::Bytes;

use super::{Favour, Mix, RouterQuestion};

/// Router-buffer §III-A: the mean of its transfers, "realistic" beside traces.
pub(super) const TYPICAL: Bytes = Bytes::new(80_000);
/// From e packets on, larger transfers need fewer flows.
const FEWEST_PACKETS: f64 = 3.0;

/// Packets of C T per flow up to which transfers that come and go fill the link: n flows do with 2 C T log2(M) / n packets on
/// average, and the largest mean simulated is M = 200.
const COME_AND_GO: f64 = 13.0;
/// From here on transfers would need more than 2400 packets on average, and flows count as persistent.
const PERSIST: f64 = 8.0 * COME_AND_GO;
/// The largest mean transfer that was simulated, in packets.
const LARGEST_MEAN: f64 = 200.0;
/// Transfers of this many times the size with which they fill the link count as persistent. In the simulator C T / sqrt(n) then uses
/// 95 % of the link or more (8 to 200 flows, C T of 250 and 1000 packets).
const LASTING: f64 = 50.0;

/// The mean size given, or the typical one. Bulk flows of unknown size fill the link, and so few that each has more than 13 packets of
/// C T are assumed to last, the longer the fewer.
pub(super) fn mean(q: &RouterQuestion, bdp: Packets) -> Bytes {
    if let Some(size) = q.mean_size() {
        return size;
    }
    let Some(flows) = q.flows.filter(|_| q.mix == Mix::Bulk) else { return TYPICAL };
    let packet = q.packet.as_f64();
    let typical = TYPICAL.as_f64() / packet;
    let filling = size_to_fill(flows as f64, load(q), bdp, typical.max(FEWEST_PACKETS));
    if filling <= typical {
        return TYPICAL;
    }
    let each = bdp.get() / flows as f64;
    let share = match q.favour {
        Favour::Throughput => share(each / COME_AND_GO, PERSIST / COME_AND_GO),
        Favour::Short | Favour::Latency => 0.0,
    };
    // In whole bytes, so that the size assumed and the same one given have the same answer.
    Bytes::from_f64(libm::ceil(filling * libm::pow(LASTING, share) * packet))
}

/// The share of bulk flows that persist, as [`lasting_share`]; `None` if the number of flows is not known or bulk transfers are not
/// favoured.
pub(super) fn persistence(q: &RouterQuestion, mean: Bytes, bdp: Packets) -> Option<f64> {
    lasting_share(q, mean, bdp).filter(|_| q.favour == Favour::Throughput)
}

/// True if all flows persist: none is a short transfer.
pub(super) fn none_is_short(q: &RouterQuestion, mean: Bytes, bdp: Packets) -> bool {
    lasting_share(q, mean, bdp) == Some(1.0)
}

/// The share of flows that persist: 0 if transfers of `mean` size come and go, 1 if they last long enough; in between, in proportion to the
/// logarithm of the size over that with which the flows fill the link in slow start. `None` if the number of flows is not known.
fn lasting_share(q: &RouterQuestion, mean: Bytes, bdp: Packets) -> Option<f64> {
    let filling = size_to_fill(q.flows? as f64, load(q), bdp, LARGEST_MEAN);
    Some(share(mean.as_f64() / q.packet.as_f64() / filling, LASTING))
}

/// The mean size from which so few bulk flows count as persistent.
pub(super) fn lasting(q: &RouterQuestion, bdp: Packets) -> Option<Bytes> {
    let flows = q.flows.filter(|_| q.favour == Favour::Throughput)? as f64;
    Some(q.packet.scaled(LASTING * size_to_fill(flows, load(q), bdp, LARGEST_MEAN)))
}

/// Whether transfers of `mean` size would persist if enough of them shared the link.
pub(super) fn may_persist(q: &RouterQuestion, mean: Bytes) -> bool {
    mean > q.packet.scaled(LARGEST_MEAN * LASTING)
}

fn load(q: &RouterQuestion) -> f64 {
    q.load.unwrap_or(1.0)
}

fn share(ratio: f64, end: f64) -> f64 {
    (libm::log(ratio) / libm::log(end)).clamp(0.0, 1.0)
}
