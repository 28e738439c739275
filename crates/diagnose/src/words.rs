//! Verdicts as sentences: what limits, the evidence, the gain, the fix.

use sweetspot_theory::reno::pftk;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::{Class, Evidence};

/// What is won if `class` no longer limits.
pub fn gain(class: Class, e: &Evidence) -> Rate {
    let reachable = match class {
        Class::ReceiverWindow
        | Class::ReceiverApplication
        | Class::SenderWindow
        | Class::Application
        | Class::Pacing
        | Class::Transport => at_this_loss(e),
        Class::Congestion => e.capacity,
        Class::Opportunity | Class::Bandwidth | Class::Unknown => None,
    };
    reachable.map_or(Rate::ZERO, |rate| rate.saturating_sub(e.goodput))
}

/// The path's capacity, or what Reno reaches at the losses seen, if that is less.
fn at_this_loss(e: &Evidence) -> Option<Rate> {
    let capacity = e.capacity?;
    let at_loss = || {
        let p = Probability::new(e.loss_events as f64 / e.segments.max(1) as f64)?;
        let rtt = e.rtt?;
        let timeout = rtt + Duration::from_millis(200);
        Some(pftk::Flow::new(e.mss, rtt, timeout, p).ok()?.approximate())
    };
    // PFTK holds where loss is a steady state and not a few events.
    Some(if e.loss_events < 5 { capacity } else { at_loss().map_or(capacity, |r| r.min(capacity)) })
}

/// The verdict as a paragraph.
pub fn verdict(class: Class, share: f64, e: &Evidence, gain: Rate) -> String {
    let percent = (share * 100.0).round();
    let mut words = match class {
        Class::Unknown => {
            let why = e.unknown_because.unwrap_or("too little was seen");
            return format!("What limits it cannot be told: {why}.");
        }
        Class::Opportunity => format!(
            "{percent} % of the time in the handshake and slow start: {} in {} are too little to \
             find the path's capacity.",
            e.bytes, e.lasted
        ),
        Class::Congestion => {
            let what = match e.resent {
                Some(resent) => format!(
                    "{resent} of {} segments were sent again, in {} loss events{}",
                    e.segments,
                    e.loss_events,
                    timeouts(e)
                ),
                None => format!("segments were missing{}", times("", e.loss_events)),
            };
            format!(
                "{percent} % of the time limited by the congestion window after losses: {what}."
            )
        }
        Class::Transport => format!(
            "{percent} % of the time limited by a congestion window that grows slowly, without \
             a loss{}.",
            flight(e)
        ),
        Class::ReceiverWindow => receiver_window(percent, e),
        Class::ReceiverApplication => format!(
            "{percent} % of the time limited by the receiving application: it reads more slowly \
             than data comes, so that its window shrank to {}{}.",
            e.window.map_or("nothing".to_owned(), in_bytes),
            times(", closed", e.zero_windows)
        ),
        Class::SenderWindow => format!(
            "{percent} % of the time limited by the sender's buffer{}, and stood still there.",
            flight(e)
        ),
        Class::Bandwidth => bandwidth(percent, e),
        Class::Application => format!(
            "{percent} % of the time limited by the sending application: it had nothing to send \
             though the network would have taken more."
        ),
        Class::Pacing => format!(
            "{percent} % of the time limited by a pacing rate that the sender set for itself."
        ),
    };
    if gain > e.goodput.scaled(0.05) {
        words += &format!(" Without that: {} expected.", mbit(e.goodput + gain));
    }
    words
}

fn receiver_window(percent: f64, e: &Evidence) -> String {
    let mut words = format!("{percent} % of the time limited by the receiver's window");
    if let (Some(window), Some(rtt)) = (e.window, e.rtt) {
        words += &format!(": {} at {} allow {}", in_bytes(window), ms(rtt), mbit(window / rtt));
    }
    words += ".";
    if e.scale == Some(0) {
        words += " The window scale was 0: the program set a small SO_RCVBUF before connect or \
                  listen, or a device on the way removed the option.";
    }
    words
}

fn bandwidth(percent: f64, e: &Evidence) -> String {
    let mut words = format!("{percent} % of the time at the path's capacity");
    if let Some(capacity) = e.capacity {
        words += &format!(" of {}", mbit(capacity));
    }
    if let (Some(least), Some(rtt)) = (e.rtt_min, e.rtt)
        && rtt > least.scaled(1.1)
    {
        words += &format!(
            ", behind a standing queue: the round trip is {} where {} would do",
            ms(rtt),
            ms(least)
        );
    }
    words + "."
}

/// What to do about it.
pub fn fix(class: Class, e: &Evidence) -> String {
    let needed = || {
        let (capacity, rtt) = (e.capacity?, e.rtt_min.or(e.rtt)?);
        Some(capacity * rtt)
    };
    let sized = |what: &str| match needed() {
        Some(bytes) => format!("{what} at least {bytes}"),
        None => format!("{what} the bandwidth-delay product"),
    };
    match class {
        Class::Opportunity => "Nothing is wrong. Fewer, longer connections (keep-alive) spare the \
                               handshake and slow start."
            .to_owned(),
        Class::Congestion => "Find where packets are lost: a buffer too small for bursts wants a \
                              paced sender (SO_MAX_PACING_RATE, bbr, or sweetspot send); random \
                              loss wants a repaired link."
            .to_owned(),
        Class::Transport => "Wait, or take a congestion control that grows faster (cubic, bbr) on \
                             the sender."
            .to_owned(),
        Class::ReceiverWindow => {
            sized("On the receiver: do not set SO_RCVBUF, and let net.ipv4.tcp_rmem allow")
                + " in its third value (twice that in buffer)."
        }
        Class::ReceiverApplication => {
            "On the receiver: let the program read faster (its disk, its CPU, a thread of its own \
             for reading)."
                .to_owned()
        }
        Class::SenderWindow => {
            sized("On the sender: do not set SO_SNDBUF, and let net.ipv4.tcp_wmem allow")
                + " in its third value (twice that in buffer)."
        }
        Class::Bandwidth => match needed() {
            Some(bytes) => format!(
                "Only a faster path. A window of {bytes} on the receiver (sweetspot tune) keeps \
                 the rate and empties the queue."
            ),
            None => "Only a faster path.".to_owned(),
        },
        Class::Application => "On the sender: find what the program waits for (disk, CPU, \
                               requests one at a time) before it writes."
            .to_owned(),
        Class::Pacing => "On the sender: raise or lift SO_MAX_PACING_RATE.".to_owned(),
        Class::Unknown => "Capture again: from before the connection begins, both directions, 96 \
                           bytes of each packet or more."
            .to_owned(),
    }
}

fn flight(e: &Evidence) -> String {
    match (e.flight, e.rtt) {
        (Some(flight), Some(rtt)) => {
            format!(": {} were under way at {}, {}", flight, ms(rtt), mbit(flight / rtt))
        }
        _ => String::new(),
    }
}

fn timeouts(e: &Evidence) -> String {
    times(", with timeouts", e.timeouts)
}

fn times(what: &str, n: u64) -> String {
    match n {
        0 => String::new(),
        1 => format!("{what} once"),
        n => format!("{what} {n} times"),
    }
}

/// Bytes to the last one, with thousands set off.
fn in_bytes(bytes: Bytes) -> String {
    let digits = bytes.get().to_string();
    let mut words = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            words.push(',');
        }
        words.push(digit);
    }
    words + " bytes"
}

fn mbit(rate: Rate) -> String {
    let mbit = rate.as_f64() / 1e6;
    match mbit {
        m if m >= 100.0 => format!("{m:.0} Mbit/s"),
        m if m >= 1.0 => format!("{m:.1} Mbit/s"),
        m => format!("{:.0} kbit/s", m * 1000.0),
    }
}

fn ms(time: Duration) -> String {
    match time.as_secs_f64() * 1e3 {
        m if m >= 10.0 => format!("{m:.0} ms"),
        m if m >= 1.0 => format!("{m:.1} ms"),
        m => format!("{:.0} us", m * 1000.0),
    }
}
