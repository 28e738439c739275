//! Verdicts without a limit, as sentences.

use super::losses::{about_times, resent};
use crate::evidence::{BufferThen, ONE_INTERVAL, UNREAD};
use crate::gain::{outruns_losses, usual_rtt};
use crate::quantities::{in_bytes, in_rate, ms};
use crate::{Arrivals, Evidence, Reader, percent};

/// The verdict without a limit.
pub fn unknown(share: f64, e: &Evidence) -> String {
    if let Some(class) = e.unexplained {
        return format!(
            "The limit is unknown. The {class} accounts for most of the time, but not for the measured rate of {}.",
            in_rate(e.goodput)
        );
    }
    if let Some(unread) = e.unread.filter(|_| e.unknown_because == Some(UNREAD)) {
        return format!(
            "The limit is unknown, but probably the receiving application: {} lay unread at that moment; {UNREAD}.",
            in_bytes(unread)
        );
    }
    if e.is_by_receiver() {
        return beyond_receiver(e);
    }
    if e.is_one_reading && e.unknown_because == Some(ONE_INTERVAL) {
        return beyond_totals(share, e);
    }
    format!("The limit is unknown: {}.", e.unknown_because.unwrap_or("too little was seen"))
}

/// The verdict on the totals of one reading, which exclude the limits that the kernel times.
fn beyond_totals(share: f64, e: &Evidence) -> String {
    let [or_buffer, excluded] = match e.buffer_then {
        BufferThen::NotFull => ["", "the peer's window and the send buffer."],
        BufferThen::Full => [
            "the send buffer, ",
            "the peer's window. At that moment the send buffer was full, so it may be the limit.",
        ],
        BufferThen::Missing => {
            ["the send buffer, ", "the peer's window; ss prints the send buffer only with -m."]
        }
    };
    let mut words = format!(
        "For {} % of the time with data in flight, {or_buffer}the congestion window, a pacing rate or the path's capacity limited \
         it; one reading does not show which. The kernel's totals exclude {excluded}",
        percent(share)
    );
    if e.retransmitted.is_some_and(|n| n > 0) {
        words += &format!(" In all, {}.", resent(e));
    }
    if let Some((min, rtt)) = e.rtt_min.zip(e.rtt) {
        let when = match e.buffer_then {
            BufferThen::Full => " Then",
            _ => " At that moment",
        };
        let times = rtt.as_secs_f64() / min.as_secs_f64();
        words += &match e.standing_queue() {
            Some(_) if e.held_by_peer => format!(
                "{when} the RTT was {}, {times:.1} times its minimum: a queue stood, or the receiving program read late.",
                ms(rtt)
            ),
            Some(_) => format!(
                "{when} the RTT was {}, {times:.1} times its minimum: a queue stood, as at the path's capacity.",
                ms(rtt)
            ),
            None => format!(
                "{when} the RTT was {} (minimum {}): no queue stood, as with {}.",
                ms(rtt),
                ms(min),
                match e.model_based {
                    true => "bbr at any rate up to the path's capacity",
                    false if e.buffer_then == BufferThen::Full => {
                        "a send buffer or a congestion window below the path's capacity"
                    }
                    false => "a congestion window below the path's capacity",
                }
            ),
        };
    }
    words
}

/// The verdict on a live connection from its receiver's kernel, if the limit is not at the
/// receiver.
fn beyond_receiver(e: &Evidence) -> String {
    let mut words = match e.reader {
        Reader::Late => {
            return "Either this receiving program, the sender or the path limits the rate. Check the program first: it often reads late."
                .to_owned();
        }
        _ if e.window.is_none() => {
            "Its program reads in time. Either this receiver's window, which these readings lack (rcv_wnd: Linux 6.2 and a later ss), \
             or the sender or the path limits the rate"
                .to_owned()
        }
        _ => "The sender or the path limits the rate, not this receiver: its program reads in time"
            .to_owned(),
    };
    if let Some((window, rtt)) = e.window.zip(usual_rtt(e)) {
        let arrives = e.goodput * rtt;
        let [arrives, window] = [arrives, window].map(in_bytes);
        words += &format!(", and only {arrives} of its window of {window} arrive per RTT");
    }
    words += ".";
    if e.loss_events > 0 {
        words += &format!(" Segments went missing on the path {}", about_times(e.loss_events));
        words += match outruns_losses(e) {
            true => {
                ". At this loss rate Reno and CUBIC would be slower: the sender ignores losses (bbr)."
            }
            false => "; each one slows a loss-based sender (Reno, CUBIC) down.",
        };
    }
    if let Some(pause) = e.program_pause {
        return format!(
            "{words} Data arrives in bursts with pauses of up to {}, longer than a round trip: the sender's program writes a little \
             at a time.",
            ms(pause)
        );
    }
    words
        + match e.arrivals {
            Arrivals::Steady => {
                " Data arrives without pauses, as from a full link, a shaper, a pacing sender (bbr) or a program that writes a little at a time."
            }
            // Data behind a lost segment arrives, but is not delivered until it is repaired.
            Arrivals::Pausing if e.loss_events > 0 => "",
            Arrivals::Pausing => {
                " Data arrives with pauses, in which the sender waits for its program, its send buffer or its congestion window."
            }
            Arrivals::Unknown => "",
        }
}
