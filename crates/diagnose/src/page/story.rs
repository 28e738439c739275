use sweetspot_units::{Bytes, Duration};

use crate::{Class, Flow};

/// What happened, in three sentences for who does not know TCP.
pub fn story(flow: &Flow) -> [String; 3] {
    [what(flow), why(flow), next(flow)]
}

fn what(flow: &Flow) -> String {
    let bytes = Bytes::new(flow.bytes);
    let rate = rate(flow.goodput_bps);
    let lasted = flow.seen.map(|seen| seen.last.since(seen.begun)).unwrap_or_default();
    match flow.bytes {
        0 => format!("{} sent nothing to {}.", flow.source.ip(), flow.destination.ip()),
        _ => format!(
            "{} sent {bytes} to {} within {}, while it sent at {rate}.",
            flow.source.ip(),
            flow.destination.ip(),
            rounded(lasted)
        ),
    }
}

fn why(flow: &Flow) -> String {
    let share = (flow.verdict.share_of_time * 100.0).round();
    let cause = match flow.verdict.cause {
        Class::Opportunity => "it was too short to become fast: every connection starts slowly",
        Class::Congestion => "packets were lost on the way, and TCP slows down when they are",
        Class::Transport => "TCP was still looking, carefully, for how fast the path is",
        Class::ReceiverWindow => "the receiver allowed no more to be on the way at once",
        Class::ReceiverApplication => "the receiving program did not keep up with reading",
        Class::SenderWindow => "the sender's buffer held no more at once",
        Class::Bandwidth => "the path was full: it carries no more",
        Class::Application => "the sending program had nothing to send",
        Class::Pacing => "the sending program had set itself a speed limit",
        Class::Stalled => "nobody answered: the other end or the path was away",
        Class::WaitingForPeer => "the sender waited for the other program's turn",
        Class::Idle => "neither program had anything to say",
        Class::NeverEstablished => "the connection was never opened",
        Class::Unknown => return "What held it back cannot be told from this capture.".to_owned(),
    };
    format!("For {share} % of the time {cause}.")
}

fn next(flow: &Flow) -> String {
    if flow.expected_gain_bps > 0.05 * flow.goodput_bps {
        let reached = rate(flow.goodput_bps + flow.expected_gain_bps);
        format!("With that mended, about {reached} can be expected.")
    } else {
        "Nothing that this capture shows would make it faster.".to_owned()
    }
}

fn rate(bps: f64) -> String {
    match bps / 1e6 {
        m if m >= 100.0 => format!("{m:.0} Mbit/s"),
        m if m >= 1.0 => format!("{m:.1} Mbit/s"),
        m => format!("{:.0} kbit/s", m * 1e3),
    }
}

fn rounded(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.0} ms", s * 1e3),
    }
}
