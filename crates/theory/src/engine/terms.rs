//! Converts a scenario's quantities to the formulas' terms, or explains why no formula covers it.

use sweetspot_path::{DirectionSpec, QueueDiscipline};
use sweetspot_scenario::{
    Congestion, Cross, EngineError, Flavour, Reverse, Scenario, Tcp, TrafficKind, Transfer,
};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use super::not_covered;
use crate::path::Path;

#[derive(Debug)]
pub(super) struct Terms<'a> {
    pub transfers: &'a [Transfer],
    /// C, T_m with a packet's serialisation on every link, and the buffer behind that packet.
    pub path: Path,
    /// A full packet on the wire.
    pub packet: Bytes,
    /// Bytes of the cross traffic's ACKs on the wire.
    pub ack: Bytes,
    pub cross: KnownCross,
    /// Rate of the cross traffic before the transfers start, including its ACKs.
    pub used: Rate,
    /// Random loss in the direction of the data.
    pub loss: Probability,
    /// The buffer's size in packets, unless it is counted in bytes.
    pub places: Option<u64>,
    pub assumptions: Vec<String>,
}

/// Cross traffic that a closed form covers.
#[derive(Debug)]
pub(super) enum KnownCross {
    None,
    /// Cross traffic of constant rate, which does not react.
    Unresponsive,
    /// Persistent window-limited TCP; `rtt` is the harmonic mean of its RTTs.
    Elephants {
        rtt: Duration,
        /// ACKs of reverse transfers, as a share of the cross traffic's rate.
        acks: f64,
    },
}

impl<'a> Terms<'a> {
    pub(super) fn of(scenario: &'a Scenario) -> Result<Terms<'a>, EngineError> {
        covered(scenario)?;
        let path = &scenario.path;
        let narrow = path.narrow();
        // Every link holds a packet for as long as it sends it. In a scenario, the narrow link's
        // packet counts as part of its buffer.
        let serial = path.hops.iter().map(|hop| path.packet / hop.rate);
        let serial = serial.fold((path.packet / path.access_rate) * 2, |sum, time| sum + time);
        let buffer = narrow.buffer.in_bytes(path.packet).saturating_sub(path.packet);
        let mut terms = Terms {
            transfers: &scenario.transfers,
            path: Path::new(narrow.rate, path.rtt + serial, buffer)?,
            packet: path.packet,
            ack: scenario.cross.first().map_or(Tcp::NS2, |cross| cross.tcp).ack_size(),
            cross: KnownCross::None,
            used: Rate::ZERO,
            loss: forward_loss(scenario),
            places: match narrow.buffer {
                Volume::Packets(packets) => Some(packets),
                Volume::Bytes(_) => None,
            },
            assumptions: vec![
                "Steady state: slow start and the time until the transfer has found its window \
                 are not counted."
                    .to_owned(),
            ],
        };
        terms.add_cross(scenario)?;
        Ok(terms)
    }

    pub(super) fn payload_share(&self, transfer: &Transfer) -> f64 {
        self.payload(transfer).as_f64() / self.packet.as_f64()
    }

    pub(super) fn payload(&self, transfer: &Transfer) -> Bytes {
        self.packet.saturating_sub(transfer.tcp.header)
    }

    /// The units of the formulas, where they differ from the outcome's.
    pub(super) fn units(&self, transfer: &Transfer) -> Option<String> {
        let (packet, payload) = (self.packet, self.payload(transfer));
        (payload < packet).then(|| {
            format!(
                "The formulas' rates and windows count whole packets of {} B; the transfer's goodput and window count the {} B \
                 of payload in each.",
                packet.get(),
                payload.get()
            )
        })
    }

    fn add_cross(&mut self, scenario: &Scenario) -> Result<(), EngineError> {
        let CrossRates { udp, windows, mut acks, reciprocal } =
            CrossRates::of(scenario, self.packet)?;
        if udp > 0.0 && windows > 0.0 {
            return Err(not_covered(
                "cross traffic is mixed: there are formulas only for unresponsive traffic or \
                 for window-limited transfers",
            ));
        }
        if scenario.path.reverse == Reverse::Clean {
            acks = 0.0;
        }
        self.used = Rate::from_f64(udp + windows + acks);
        if self.used >= self.path.capacity() {
            return Err(not_covered(format!(
                "cross traffic needs {} of {} and so congests the path before the transfer \
                 starts; equation (9) would need the resulting loss and RTT as measurements",
                self.used,
                self.path.capacity()
            )));
        }
        if udp > 0.0 {
            self.cross = KnownCross::Unresponsive;
            self.assumptions.push(
                "Cross traffic as a fluid of constant rate: T_e = T_m, and of a full buffer the \
                 transfer's are the share A/C. Its bursts lower the throughput near the ends of the sweet spot."
                    .to_owned(),
            );
        } else if windows > 0.0 {
            self.cross = KnownCross::Elephants {
                rtt: Duration::from_secs_f64(reciprocal / windows),
                acks: acks / (windows + acks),
            };
            self.assumptions.push(
                "The elephants never lose a packet, so their windows limit them; their RTT is \
                 the harmonic mean of the entry's."
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Rates of the cross traffic, bit/s.
#[derive(Default)]
struct CrossRates {
    udp: f64,
    /// Rate of the elephants.
    windows: f64,
    /// Rate of their ACKs.
    acks: f64,
    /// The elephants' windows, bits: the sum of the products of rate and RTT.
    reciprocal: f64,
}

impl CrossRates {
    fn of(scenario: &Scenario, packet: Bytes) -> Result<CrossRates, EngineError> {
        let narrow = scenario.path.bottleneck();
        let mut rates = CrossRates::default();
        for cross in &scenario.cross {
            if cross.hops != (narrow, narrow) && scenario.path.hops.len() > 1 {
                return Err(not_covered(
                    "cross traffic crosses other links than the narrow one, and the formulas \
                     cover one link",
                ));
            }
            if cross.inputs.is_some() {
                return Err(not_covered("cross traffic that comes through input links is bursty"));
            }
            rates.add(cross, packet)?;
        }
        Ok(rates)
    }

    fn add(&mut self, cross: &Cross, packet: Bytes) -> Result<(), EngineError> {
        match cross.kind {
            TrafficKind::Pareto { count, rate, .. } | TrafficKind::Poisson { count, rate } => {
                self.udp += count as f64 * rate.as_f64();
                Ok(())
            }
            TrafficKind::Elephants { count, window: Some(window) } => {
                let payload = packet.saturating_sub(cross.tcp.header);
                let window = (window.in_packets(payload).max(1) * packet.get()) as f64;
                let inverse = mean_inverse(cross.rtt);
                self.windows += count as f64 * window * 8.0 * inverse;
                self.reciprocal += count as f64 * window * 8.0;
                let each = if cross.tcp.delayed_ack { 2.0 } else { 1.0 };
                let share = cross.tcp.ack_size().as_f64() / packet.as_f64() / each;
                self.acks += count as f64 * window * 8.0 * inverse * share;
                Ok(())
            }
            TrafficKind::Elephants { window: None, .. } => Err(not_covered(
                "elephants without a window congest the path by themselves, and no closed form gives the resulting \
                 loss and RTT: equation (9) takes them from measurements",
            )),
            TrafficKind::Mice { .. }
            | TrafficKind::ClosedLoop { .. }
            | TrafficKind::Arrivals { .. } => Err(not_covered(
                "transfers of limited size back off less than persistent ones, so closed forms only bound the \
                 throughput: at least the available bandwidth A, at most equation (8) (SOBAS paper, section V-C)",
            )),
        }
    }
}

/// `Ok` if the formulas cover the transfers and the path, apart from the cross traffic.
fn covered(scenario: &Scenario) -> Result<(), EngineError> {
    if scenario.transfers.is_empty() {
        return Err(not_covered("there is no [[transfer]], and the formulas describe one"));
    }
    if scenario.transfers.iter().any(|t| !t.reader.is_greedy() || !t.writer.is_greedy()) {
        return Err(not_covered(
            "an application reads or writes slower than TCP, and the formulas cover only TCP",
        ));
    }
    if scenario.transfers.iter().any(|transfer| transfer.follows) {
        return Err(not_covered(
            "a transfer begins when another ends, and the formulas describe steady states",
        ));
    }
    if scenario.send_pool.is_some() {
        return Err(not_covered("senders share memory, and the formulas give each its own window"));
    }
    let path = &scenario.path;
    if path.hops.iter().any(|hop| hop.queue != QueueDiscipline::DropTail) {
        return Err(not_covered("the formulas hold only for drop-tail queues"));
    }
    if path.hops.iter().any(|hop| hop.policer.is_some() || hop.burst > Bytes::ZERO) {
        return Err(not_covered("the formulas hold only for links of constant rate"));
    }
    if path.hops.iter().any(|hop| hop.reorder > Probability::ZERO) {
        return Err(not_covered(
            "packets overtake each other, and the formulas assume their order",
        ));
    }
    let end = scenario.warmup + scenario.duration;
    scenario.transfers.iter().try_for_each(|transfer| permanent(transfer, end))?;
    let varies = |hop: &DirectionSpec| hop.jitter.max(hop.aggregation) > Duration::ZERO;
    if path.hops.iter().any(varies) {
        return Err(not_covered(
            "the round trip varies by itself, and the formulas assume a fixed one",
        ));
    }
    if path.backward != path.hops {
        return Err(not_covered(
            "its links differ between the two directions, and the formulas assume equal ones",
        ));
    }
    if path.packet_spread > Bytes::ZERO {
        return Err(not_covered("packets differ in size, and the formulas assume equal ones"));
    }
    if !path.changes.is_empty() || !path.traces.is_empty() {
        return Err(not_covered("the path changes, and the formulas assume a fixed one"));
    }
    Ok(())
}

/// `Ok` if the transfer is unlimited and lasts throughout the measurement.
fn permanent(transfer: &Transfer, end: Duration) -> Result<(), EngineError> {
    if transfer.size.is_some() {
        return Err(not_covered(
            "the transfer has a size, and the formulas describe the steady state of an endless \
             one",
        ));
    }
    if transfer.start >= end {
        return Err(not_covered("the transfer starts after the measured time is over"));
    }
    Ok(())
}

/// Whether the congestion control reacts to losses as Reno does.
pub(super) fn is_reno(congestion: Congestion) -> bool {
    use Congestion::{NewReno, Reno, Sack, Sack1};
    matches!(congestion, Reno | NewReno | Sack | Sack1)
}

/// Segments per increase of the window. An ACK for every second segment, with a window that grows
/// per ACK, halves the slope.
pub(super) fn segments_per_step(transfer: &Transfer) -> u32 {
    let by_acks = transfer.tcp.flavour == Flavour::Ns2;
    if transfer.tcp.delayed_ack && by_acks { 2 } else { 1 }
}

fn forward_loss(scenario: &Scenario) -> Probability {
    let kept = scenario.path.hops.iter().map(|hop| 1.0 - hop.loss.get()).product::<f64>();
    Probability::new(1.0 - kept).unwrap_or(Probability::ZERO)
}

/// The mean of 1/T over RTTs evenly distributed between two values: ln(b/a) / (b - a).
pub(super) fn mean_inverse((min, max): (Duration, Duration)) -> f64 {
    let (a, b) = (min.as_secs_f64(), max.as_secs_f64());
    if b - a < 1e-9 { 1.0 / a } else { libm::log(b / a) / (b - a) }
}
