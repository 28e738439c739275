//! A transfer with persistent, window-limited cross traffic: equations (3) and (6) to (8).

use sweetspot_scenario::{AppliedFormula, EngineError};
use sweetspot_units::{Bytes, Duration};

use super::not_covered;
use super::steady::{SOBAS, Steady, SteadyFlow, formula};
use super::terms::{KnownCross, Terms};
use super::window::Window;
use crate::path::elephants::Elephants;
use crate::path::saturation::SweetSpot;

pub(super) fn steady(terms: &Terms<'_>) -> Result<Steady, EngineError> {
    let (KnownCross::Elephants { rtt: cross_rtt, acks }, [transfer]) =
        (&terms.cross, terms.transfers)
    else {
        return Err(not_covered("several transfers meet elephants, and equation (7) covers one"));
    };
    if terms.loss.get() > 0.0 {
        return Err(not_covered("elephants on a path that loses at random are not window-limited"));
    }
    let window = terms.window(transfer)?;
    let (c, t) = (terms.path.capacity(), terms.path.minimum_rtt());
    let (link, buffer) = link(terms, *cross_rtt, *acks)?;
    let Some(queue) = link.backlog_of_window(window.wire) else {
        return Err(not_covered(format!(
            "a window above {} overflows the buffer; only a simulation then gives the transfer's share against \
             buffer-limited transfers",
            link.window_at_backlog(buffer)
        )));
    };
    let rtt = t + queue / c;
    let rate = (window.wire / rtt).min(c);
    let flow = SteadyFlow { rate, window: window.wire, rtt_mean: rtt, rtt_p99: rtt, loss: 0.0 };
    Ok(Steady {
        flows: vec![flow],
        cross: link.cross_rate(queue),
        backlog: (queue, queue),
        formulas: vec![
            throughput(&window, queue, *cross_rtt, &flow, terms),
            best(&link, buffer, terms),
        ],
        assumptions: vec![
            "Of the packets that wait, the transfer's are those of its share of the rate; the \
             paper's S = R T_e + Q counts all of them as the transfer's."
                .to_owned(),
        ],
    })
}

// SOBAS §V-B: with windows of at least A T_e the link is full; at the window of eq. (8) the buffer is full, too.
pub(super) fn sweet_spot(terms: &Terms<'_>) -> Result<SweetSpot, EngineError> {
    let KnownCross::Elephants { rtt, acks } = &terms.cross else {
        return Err(not_covered("there are no elephants"));
    };
    let (link, buffer) = link(terms, *rtt, *acks)?;
    let available = terms.path.capacity() - terms.used;
    let low = available * terms.path.minimum_rtt();
    Ok(SweetSpot { low, high: link.window_at_backlog(buffer) })
}

/// The link in the form that the equations need, and the backlog that fills its buffer.
fn link(
    terms: &Terms<'_>,
    cross_rtt: Duration,
    acks: f64,
) -> Result<(Elephants, Bytes), EngineError> {
    let (c, t) = (terms.path.capacity(), terms.path.minimum_rtt());
    let buffer = available_buffer(terms, cross_rtt, acks);
    Ok((Elephants::new(c, c - terms.used, t, cross_rtt, buffer)?, buffer))
}

fn throughput(
    window: &Window,
    queue: Bytes,
    cross_rtt: Duration,
    flow: &SteadyFlow,
    terms: &Terms<'_>,
) -> AppliedFormula {
    let (c, t) = (terms.path.capacity(), terms.path.minimum_rtt());
    formula(
        "throughput",
        "R = A (T_ct + Q/A) / (T_ct + Q/C), S = R (T_e + Q/C)",
        format!(
            "S = {} ({}), C = {c}, A = {}, T_e = {t}, T_ct = {cross_rtt}: Q = {queue}, R = {}",
            window.wire,
            window.rule,
            c - terms.used,
            flow.rate
        ),
        &format!("{SOBAS}, equations (3), (6) and (7)"),
    )
}

fn best(link: &Elephants, buffer: Bytes, terms: &Terms<'_>) -> AppliedFormula {
    let places =
        terms.places.map_or(String::new(), |places| format!(" ({places} packets, ACKs included)"));
    formula(
        "the largest throughput",
        "R^ = A (T_ct + B/A) / (T_ct + B/C)",
        format!(
            "B = {buffer}{places}: R^ = {} at S = {}",
            link.rate_at_backlog(buffer),
            link.window_at_backlog(buffer)
        ),
        &format!("{SOBAS}, equation (8)"),
    )
}

/// The backlog, in bytes, at which the buffer is full. If the buffer is counted in packets, ACKs of reverse transfers occupy
/// places, too.
fn available_buffer(terms: &Terms<'_>, cross_rtt: Duration, acks: f64) -> Bytes {
    let Some(places) = terms.places else { return terms.path.buffer() };
    let (capacity, packet) = (terms.path.capacity().as_f64() / 8.0, terms.packet.as_f64());
    let cross_rtt = cross_rtt.as_secs_f64();
    let mut buffer = terms.path.buffer().as_f64();
    // Longer queues slow the elephants and thus reduce the number of their ACKs. The mean packet size in the queue therefore
    // depends slightly on its length. Each round halves the error or better.
    for _ in 0..FIXED_POINT_ROUNDS {
        let slowed = cross_rtt / (cross_rtt + buffer / capacity);
        let ack_bytes = terms.used.as_f64() / 8.0 * acks * slowed;
        let packets = (capacity - ack_bytes) / packet + ack_bytes / terms.ack.as_f64();
        buffer = (places - 1) as f64 * capacity / packets;
    }
    Bytes::from_f64(buffer)
}

const FIXED_POINT_ROUNDS: usize = 40;
