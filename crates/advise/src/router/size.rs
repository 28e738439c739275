//! The mean size of a transfer, given or assumed, and the share of flows of that size that persist.

use sweetspot_theory::Packets;
use sweetspot_theory::router::closed_loop::size_to_fill;
use sweetspot_units::Bytes;

use super::{Favour, Mix, RouterQuestion};

/// The mean transfer in router-buffer §III-A, called "realistic", compared with traces.
pub(super) const TYPICAL: Bytes = Bytes::new(80_000);
/// For transfers larger than e packets, the number of flows that fill the link falls with their size.
const MIN_PACKETS: f64 = 3.0;

/// Packets of C T per flow up to which transfers that come and go can fill the link. Of n flows, each must have 2 C T log2(M) / n
/// packets on average, and M = 200 is the largest mean that was simulated.
const COME_AND_GO: f64 = 13.0;
/// Packets of C T per flow from which flows count as persistent. To fill the link, transfers would need more than 2400 packets on
/// average.
const PERSISTENT_PACKETS: f64 = 8.0 * COME_AND_GO;
/// The largest mean transfer that was simulated, in packets.
const LARGEST_MEAN: f64 = 200.0;
/// Flows count as persistent if their transfers are this many times larger than needed to fill the link. In the simulator, C T /
/// sqrt(n) then keeps 95 % of the link or more in use (8 to 200 flows, C T of 250 and 1000 packets).
const PERSISTENT_SIZE_RATIO: f64 = 50.0;

/// The mean size: given, typical, or for a known number of bulk flows assumed large enough to fill the link. If few flows have
/// more than 13 packets of C T each, they are assumed to last: the fewer, the longer.
pub(super) fn mean(q: &RouterQuestion, bdp: Packets) -> Bytes {
    if let Some(size) = q.mean_size() {
        return size;
    }
    let Some(flows) = q.flows.filter(|_| q.mix == Mix::Bulk) else { return TYPICAL };
    let packet = q.packet.as_f64();
    let typical = TYPICAL.as_f64() / packet;
    let filling = size_to_fill(flows as f64, load(q), bdp, typical.max(MIN_PACKETS));
    if filling <= typical {
        return TYPICAL;
    }
    let each = bdp.get() / flows as f64;
    let share = match q.favour {
        Favour::Throughput => share(each / COME_AND_GO, PERSISTENT_PACKETS / COME_AND_GO),
        Favour::Short | Favour::Latency => 0.0,
    };
    // In whole bytes, so that giving the assumed size explicitly does not change the answer.
    Bytes::from_f64(libm::ceil(filling * libm::pow(PERSISTENT_SIZE_RATIO, share) * packet))
}

/// The share of bulk flows that persist, from [`lasting_share`]; `None` if the number of flows is unknown or bulk transfers are
/// not favoured.
pub(super) fn persistence(q: &RouterQuestion, mean: Bytes, bdp: Packets) -> Option<f64> {
    lasting_share(q, mean, bdp).filter(|_| q.favour == Favour::Throughput)
}

/// Whether all flows persist, so that no transfer is short.
pub(super) fn none_is_short(q: &RouterQuestion, mean: Bytes, bdp: Packets) -> bool {
    lasting_share(q, mean, bdp) == Some(1.0)
}

/// The share of flows that persist: 0 if transfers of the size `mean` come and go, 1 if they last long enough. Between these it
/// follows the logarithm of the ratio of `mean` to the size with which the flows fill the link in slow start. `None` if the
/// number of flows is unknown.
fn lasting_share(q: &RouterQuestion, mean: Bytes, bdp: Packets) -> Option<f64> {
    let filling = filling(q, q.flows?, bdp);
    Some(share(mean.as_f64() / q.packet.as_f64() / filling, PERSISTENT_SIZE_RATIO))
}

/// The mean transfer, in packets, with which that many flows fill the link in slow start.
pub(super) fn filling(q: &RouterQuestion, flows: u64, bdp: Packets) -> f64 {
    size_to_fill(flows as f64, load(q), bdp, LARGEST_MEAN)
}

/// The mean size from which on this number of bulk flows counts as persistent.
pub(super) fn lasting(q: &RouterQuestion, bdp: Packets) -> Option<Bytes> {
    let flows = q.flows.filter(|_| q.favour == Favour::Throughput)?;
    Some(q.packet.scaled(PERSISTENT_SIZE_RATIO * filling(q, flows, bdp)))
}

/// Whether transfers of the size `mean` would persist if enough of them shared the link.
pub(super) fn may_persist(q: &RouterQuestion, mean: Bytes) -> bool {
    mean > q.packet.scaled(LARGEST_MEAN * PERSISTENT_SIZE_RATIO)
}

fn load(q: &RouterQuestion) -> f64 {
    q.load.unwrap_or(1.0)
}

fn share(ratio: f64, end: f64) -> f64 {
    (libm::log(ratio) / libm::log(end)).clamp(0.0, 1.0)
}
