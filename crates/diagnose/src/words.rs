//! Verdicts as sentences: the limit, the evidence, the gain.

mod losses;
mod receiver;
mod unknown;

use sweetspot_units::{Bytes, Rate};

use self::losses::{losses, timer_words};
use self::receiver::{receiver_application, receiver_window};
use self::unknown::unknown;
use crate::evidence::{Failure, Nagle, PROGRAM_OR_BUFFER, Stall};
use crate::explained::allowed;
use crate::quantities::{counted, in_bytes, in_rate, ms, times};
use crate::{Class, Evidence, SharedPath, percent};

/// Whether a family's share, as printed, is larger than its leading class's.
pub fn is_shared([family, own]: [f64; 2]) -> bool {
    percent(family) > percent(own)
}

/// The name of `cause` as a part of the applications' time, after "mostly".
pub fn part(cause: Class) -> &'static str {
    match cause {
        Class::WaitingForPeer => "waiting for the peer",
        Class::Idle => "idle",
        _ => "the sender's",
    }
}

/// The share of all application classes, and the share of the class with the most time, `most`.
fn applications(shares: [f64; 2], most: &str) -> String {
    let [family, own] = shares.map(percent);
    let part = if is_mostly(shares) { "mostly" } else { "partly" };
    let own = if is_shared(shares) { format!(" ({own} %)") } else { String::new() };
    format!("{family} % of the time limited by the applications, {part} {most}{own}")
}

/// Whether the leading class has clearly more than half of its family's share.
pub(crate) fn is_mostly([family, own]: [f64; 2]) -> bool {
    own > 0.6 * family
}

/// The verdict as a paragraph; the shares are of the family and of its leading class.
pub fn verdict(class: Class, shares: [f64; 2], e: &Evidence, gain: Option<Rate>) -> String {
    let [percent, own] = shares.map(percent);
    let mut words = match class {
        Class::Unknown => return unknown(shares[0], e),
        Class::NeverEstablished => return never_established(e),
        Class::Opportunity => format!(
            "{percent} % of the time in the handshake and slow start: {} in {} is too little to \
             find the path's capacity.",
            in_bytes(e.bytes),
            e.lasted
        ),
        Class::Congestion => format!(
            "{percent} % of the time limited by the congestion window after losses: {}.{}{}{}",
            losses(e),
            e.timer.map_or(String::new(), |timer| timer_words(&timer.waits, e)),
            e.stall.map_or(String::new(), |stall| pause(&stall)),
            if e.doubts_rtt_min { NEVER_EMPTY } else { "" }
        ),
        Class::Transport if e.loss_events > 0 => format!(
            "{percent} % of the time limited by a congestion window that grows slowly between losses{}; {}.{}",
            flight(e),
            losses(e),
            if e.doubts_rtt_min { NEVER_EMPTY } else { "" }
        ),
        Class::Transport => format!(
            "{percent} % of the time limited by a congestion window that grows slowly{}{}.{}",
            if e.lost_before { " after earlier losses" } else { ", without losses" },
            flight(e),
            if e.doubts_rtt_min { NEVER_EMPTY } else { "" }
        ),
        Class::ReceiverWindow => receiver_window(percent, e),
        Class::ReceiverApplication => receiver_application(percent, e),
        Class::SenderWindow if e.is_one_reading => {
            let rest = match e.unknown_because {
                Some(PROGRAM_OR_BUFFER) => format!(" The rest: {PROGRAM_OR_BUFFER}."),
                _ => String::new(),
            };
            format!("{percent} % of the time limited by the sender's buffer.{rest}")
        }
        Class::SenderWindow => format!(
            "{percent} % of the time limited by the sender's buffer{}; the flight did not grow.",
            flight(e)
        ),
        Class::Bandwidth => bandwidth(percent, e),
        Class::Application if e.has_nagle() => nagles(shares, e),
        Class::Application if e.holds_partial_segment => format!(
            "{percent} % of the time limited by the sending application: it writes less than a segment at a time, and each waits \
             until the one before it is acknowledged (Nagle's algorithm)."
        ),
        Class::Application if is_shared(shares) => format!(
            "{}: it had nothing to send although the network could have carried more.",
            applications(shares, "by the sender's")
        ),
        Class::Application => format!(
            "{percent} % of the time limited by the sending application: it had nothing to send \
             although the network could have carried more."
        ),
        Class::WaitingForPeer if e.granted.is_some() => granted(own, e),
        Class::WaitingForPeer => format!(
            "{}: the sender had nothing to send until the receiver's next request or answer arrived.",
            applications(shares, "by the receiver's")
        ),
        Class::Idle if e.is_sampled && e.bytes == Bytes::ZERO => format!(
            "{percent} % of the time idle: no data moved for {}, and neither program had anything to send.",
            e.lasted
        ),
        Class::Idle => format!(
            "{}: neither side had anything to send, between transfers or after the last.",
            applications(shares, "idle")
        ),
        Class::Pacing => format!(
            "{percent} % of the time limited by the pacing rate that the sender set (SO_MAX_PACING_RATE)."
        ),
        Class::Stalled => stalled(percent, e),
    };
    if let Some(gain) = gain.filter(|gain| is_noticeable(*gain, e)) {
        let [capacity, now] = [e.goodput + gain, e.goodput].map(in_rate);
        let whose =
            if e.shared.is_some() { "its share of the path" } else { "the path's capacity" };
        words += &format!(" Without this limit: up to {capacity}, {whose}, instead of {now}.");
    }
    words
}

/// Whether `gain` is worth a sentence.
pub(crate) fn is_noticeable(gain: Rate, e: &Evidence) -> bool {
    gain > e.goodput.scaled(0.05)
}

/// The verdict on a window above TCP, such as HTTP/2's or SSH's.
fn granted(percent: f64, e: &Evidence) -> String {
    let window = e.granted.unwrap_or_default();
    let mut words = format!(
        "{percent} % of the time limited by a window above TCP: each burst followed a small message from the \
         receiver rather than its acknowledgements, and at most {} were in flight",
        in_bytes(window)
    );
    if let Some((rtt, rate)) = e.rtt_min.or(e.rtt).zip(allowed(Class::WaitingForPeer, e)) {
        words += &format!(". At {} that allows {}", ms(rtt), in_rate(rate));
    }
    words + "."
}

/// The verdict on Nagle's algorithm. The first share covers all application classes; Nagle's own share follows if it is
/// smaller.
fn nagles(shares: [f64; 2], e: &Evidence) -> String {
    let nagle = e.nagle.unwrap_or_default();
    let share = percent(shares[0]);
    let own = percent(nagle.time.as_secs_f64() / e.lasted.as_secs_f64());
    let whole = match is_shared(shares) {
        true => format!("the applications, {own} % by "),
        false if own < share => format!("the sending application, {own} % by "),
        false => String::new(),
    };
    let rtt = e.rtt_min.map_or(String::new(), |rtt| format!(", at an RTT of {}", ms(rtt)));
    format!(
        "{share} % of the time limited by {whole}Nagle's algorithm and delayed acknowledgements: {} small segments left only \
         when the small segment before them was acknowledged, {} later{rtt}.",
        nagle.waits,
        ms(nagle.each())
    )
}

/// Nagle's algorithm, which had `share` of the time, as a remark on another verdict.
pub fn nagle_beside(nagle: &Nagle, share: f64) -> String {
    format!(
        "{:.0} % of the time {} small segments waited for delayed acknowledgements of those before them, {} each \
         (Nagle's algorithm): TCP_NODELAY or one write for each message avoids that",
        percent(share),
        nagle.waits,
        ms(nagle.each())
    )
}

/// A window above TCP, which had `share` of the time, as a remark on another verdict.
pub fn granted_beside(window: Bytes, share: f64) -> String {
    format!(
        "{:.0} % of the time a window above TCP limited it: bursts followed small messages from the receiver \
         rather than its acknowledgements, and at most {} were in flight",
        percent(share),
        in_bytes(window)
    )
}

/// The number of retransmission timeouts, after `what`; empty if there were none.
fn timeouts(what: &str, e: &Evidence) -> String {
    match e.timeouts {
        0 => String::new(),
        n => format!("{what}{}", counted(n, "retransmission timeout", "retransmission timeouts")),
    }
}

/// A silence, as a sentence after another verdict.
fn pause(stall: &Stall) -> String {
    format!(" For {}.", silence(stall))
}

/// The time without acknowledgements, after "for".
pub fn silence(stall: &Stall) -> String {
    let end = if stall.ended { "then the receiver answered" } else { "no answer came after that" };
    format!("{}, from {} on, nothing was acknowledged; {end}", stall.lasted, stall.after)
}

fn stalled(percent: f64, e: &Evidence) -> String {
    let Some(stall) = e.stall else {
        return format!("{percent} % of the time stalled: nothing was acknowledged.");
    };
    if stall.beyond {
        return format!(
            "{percent} % of the time stalled: from {} on, the sender retransmitted already acknowledged \
             data{} within {}. The acknowledgement passed the capture and was lost beyond it, or the \
             sender fell silent.",
            stall.after,
            times("", stall.repeats),
            stall.lasted
        );
    }
    if let Some(reset) = stall.reset {
        return format!(
            "{percent} % of the time stalled: the receiver reset the connection {reset} after the beginning. After that \
             the sender still retransmitted{} within {}.{}",
            times("", stall.repeats),
            stall.lasted,
            all_timeouts(e),
        );
    }
    if stall.unheard {
        return format!(
            "{percent} % of the time stalled: no packet from the receiver was captured, and the \
             sender behaved as if none reached it: for {} it retransmitted the same data{}.{}",
            stall.lasted,
            times("", stall.repeats),
            all_timeouts(e),
        );
    }
    let end = if stall.ended { "before an answer came" } else { "and no answer came" };
    if let Some(passes) = e.passes {
        return format!(
            "{percent} % of the time stalled: segments of up to {} were acknowledged, and all larger ones vanished \
             from {} on. The path drops large packets, and the ICMP messages that say so do not arrive (a PMTUD \
             black hole). For {} nothing was acknowledged, {end}.",
            in_bytes(passes),
            stall.after,
            stall.lasted
        );
    }
    // Shorter silences may have a part of the time, too.
    let is_only =
        stall.lasted.as_secs_f64() >= SINGLE_STALL_SHARE * percent / 100.0 * e.lasted.as_secs_f64();
    let silence = if is_only {
        "the receiver fell silent"
    } else {
        "the longest silence of the receiver began"
    };
    format!(
        "{percent} % of the time stalled: {silence} {} after the beginning. For {} nothing was \
         acknowledged, though the sender retransmitted{}, {end}.{}",
        stall.after,
        stall.lasted,
        times("", stall.repeats),
        all_timeouts(e),
    )
}

/// From this share of the stalled time on, the longest silence is treated as the only one.
const SINGLE_STALL_SHARE: f64 = 0.9;

/// The retransmission timeouts of the whole connection, as a sentence after others; empty if there were none.
fn all_timeouts(e: &Evidence) -> String {
    match timeouts(" In all it had ", e) {
        none if none.is_empty() => none,
        words => words + ".",
    }
}

fn never_established(e: &Evidence) -> String {
    match e.failure {
        Some(Failure::Refused) => format!(
            "The connection was never established: it was refused by a reset after {}.",
            e.lasted
        ),
        Some(Failure::Unconfirmed) => format!(
            "The connection was never established: the SYN was answered, but no ACK followed \
             within {}.",
            e.lasted
        ),
        // The kernel does not tell when it sent the first one.
        Some(Failure::Unanswered) if e.is_sampled => format!(
            "The connection was never established: {} sent, no answer.",
            counted(e.segments, "SYN", "SYNs")
        ),
        Some(Failure::Unanswered) | None => format!(
            "The connection was never established: {} SYN sent in {} got no answer.",
            e.segments, e.lasted
        ),
    }
}

/// The possible causes of evenly spaced data, which a capture cannot distinguish.
const SPACED_BY: &str =
    "Either a link or a shaper before the capture point spaces them, or the sender itself does";

fn bandwidth(percent: f64, e: &Evidence) -> String {
    let at = if e.may_be_paced() { "a steady rate" } else { "the path's capacity" };
    let mut words = format!("{percent} % of the time at {at}");
    if let Some(SharedPath { others, together_bps }) = e.shared {
        let others = counted(others, "other connection", "other connections");
        let together = in_rate(Rate::from_f64(together_bps));
        words += &format!(", which it shared with {others} (together {together})");
    } else if let Some(capacity) = e.capacity {
        words += &format!(" of {}", in_rate(capacity));
    }
    if e.in_device {
        words += ": most of its data in flight waits in the queues of the sender's own device (a slow device, or a shaper on it)";
    } else if e.paced {
        words += &format!(
            ": the gaps between its segments fit this rate. {SPACED_BY} (bbr, SO_MAX_PACING_RATE)"
        );
    } else if let Some((min, rtt)) = e.standing_queue() {
        words += &match e.doubts_rtt_min {
            true => format!(
                ", behind a standing queue: the round trip is {}, {} or more of it in the queue",
                ms(rtt),
                ms(rtt.saturating_sub(min))
            ),
            false => format!(
                ", behind a standing queue: the round trip is {} where {} would do",
                ms(rtt),
                ms(min)
            ),
        };
    } else if e.model_based {
        words += ", as measured by bbr, which paces its data: there is no standing queue";
        if e.loss_events > 0 {
            words += &format!("; {}, which hardly slow bbr down", losses(e));
        }
    } else if e.drops_without_queue() {
        words += &format!(
            ": {}, although no queue stands. A policer drops packets like this, and so does a very small buffer. A sender that \
             ignores random losses (bbr) looks the same",
            losses(e)
        );
    } else if e.doubts_queue && !e.even {
        words += &format!(
            ": its round trip is uncertain, so a queue does not show. {SPACED_BY} (bbr, SO_MAX_PACING_RATE)"
        );
    } else if e.may_be_paced() && !e.even {
        words += ", without a visible queue. Seen from the receiver, a full link, a shaper, a pacing sender (bbr, SO_MAX_PACING_RATE) and a \
                  program that writes a little at a time look the same";
    } else if e.may_be_paced() {
        words += &format!(
            ": its segments are evenly spaced, and no queue is visible. {SPACED_BY} (bbr, SO_MAX_PACING_RATE)"
        );
    }
    words + "."
}

/// The doubt about a growing congestion window as the limit.
const NEVER_EMPTY: &str = " The capture began in mid-connection and never saw the path empty. If a queue stood all the time, the limit \
                           is the path's capacity.";

fn flight(e: &Evidence) -> String {
    match (e.flight, e.flight_round.or(e.rtt)) {
        (Some(flight), Some(rtt)) => {
            format!(
                ": {} in flight per RTT of {} is {}",
                in_bytes(flight),
                ms(rtt),
                in_rate(flight / rtt)
            )
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;
    use crate::Reader;

    #[test]
    fn the_text_gives_a_varying_windows_mean_and_names_a_late_reader() {
        let e = Evidence {
            window: Some(Bytes::new(3225)),
            largest_window: Some(Bytes::new(4096)),
            rtt: Some(Duration::from_millis(4)),
            ..Evidence::default()
        };
        let varies = receiver_window(58.0, &Evidence { reader: Reader::Late, ..e });
        assert!(varies.contains("3,225 bytes on average at 4.0 ms"), "{varies}");
        assert!(varies.contains("Its program often reads late"), "{varies}");
        let constant = receiver_window(58.0, &Evidence { window: e.largest_window, ..e });
        assert!(constant.contains("4,096 bytes at 4.0 ms"), "{constant}");
    }

    #[test]
    fn mostly_requires_more_than_half_of_the_time() {
        let words = |own| verdict(Class::Idle, [0.85, own], &Evidence::default(), None);
        assert!(words(0.43).contains("partly idle (43 %)"), "{}", words(0.43));
        assert!(words(0.6).contains("mostly idle (60 %)"), "{}", words(0.6));
    }

    #[test]
    fn a_doubtful_min_rtt_promises_no_shorter_rtt() {
        let e = Evidence {
            rtt_min: Some(Duration::from_millis(83)),
            rtt: Some(Duration::from_millis(102)),
            capacity: Some(Rate::from_mbit_per_second(50)),
            ..Evidence::default()
        };
        let doubtful = Evidence { doubts_rtt_min: true, ..e };
        let [sure, unsure] = [e, doubtful].map(|e| bandwidth(90.0, &e));
        assert!(sure.contains("102 ms where 83 ms would do"), "{sure}");
        assert!(unsure.contains("102 ms, 19 ms or more of it in the queue"), "{unsure}");
        // 50 Mbit/s x 83 ms.
        assert_eq!(e.sweet_spot(), Some(Bytes::new(518_750)));
        assert_eq!(doubtful.sweet_spot(), None);
    }

    #[test]
    fn counts_of_one_are_singular() {
        let text = |segments, retransmitted| {
            let retransmitted = Some(retransmitted);
            losses(&Evidence { segments, retransmitted, loss_events: 1, ..Evidence::default() })
        };
        assert_eq!(text(40, 1), "1 of 40 segments was retransmitted, in 1 loss event");
        assert_eq!(text(40, 2), "2 of 40 segments were retransmitted, in 1 loss event");
        let packets = |n| counted(n, "packet was", "packets were");
        assert_eq!([0, 1, 2].map(packets), ["0 packets were", "1 packet was", "2 packets were"]);
    }
}
