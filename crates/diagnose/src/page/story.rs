use sweetspot_units::{Bytes, Rate};

use crate::quantities::{in_rate, seconds};
use crate::{Class, Flow, percent};

/// The diagnosis in three sentences for readers that do not know TCP.
pub fn story(flow: &Flow) -> [String; 3] {
    [what(flow), why(flow), next(flow)]
}

fn what(flow: &Flow) -> String {
    let bytes = Bytes::new(flow.bytes);
    let rate = rate(flow.goodput_bps);
    // The kernel's counters have no packets, so use the total time of the limits.
    let lasted = flow.seen.map_or(flow.limits.total(), |seen| seen.last.since(seen.begun));
    match flow.bytes {
        0 => format!("{} sent nothing to {}.", flow.source.ip(), flow.destination.ip()),
        _ if flow.goodput_is_while_sending => {
            format!(
                "{} sent {bytes} to {}, {rate} while it was sending.",
                flow.source.ip(),
                flow.destination.ip()
            )
        }
        _ => format!(
            "{} sent {bytes} to {} within {}: {rate} from the first byte to the last.",
            flow.source.ip(),
            flow.destination.ip(),
            seconds(lasted.as_secs_f64())
        ),
    }
}

fn why(flow: &Flow) -> String {
    // The time of the reported cause, not of its family.
    let share = percent(flow.limits.share(flow.verdict.cause));
    let cause = match flow.verdict.cause {
        Class::Opportunity => "it was too short to become fast: every connection starts slowly",
        Class::Congestion => "TCP kept its window small because packets had been lost before",
        Class::Transport => "TCP was still probing, carefully, how fast the path is",
        Class::ReceiverWindow => "the receiver allowed no more to be on the way at once",
        Class::ReceiverApplication => "the receiving program did not keep up with reading",
        Class::SenderWindow => "the sender's buffer held no more at once",
        Class::Bandwidth => "the path was full: it carries no more",
        Class::Application => "the sending program had nothing to send",
        Class::Pacing => "the sending program had set itself a speed limit",
        Class::Stalled => "no answer came: the other end or the path was down",
        Class::WaitingForPeer => "the sender waited for the other program",
        Class::Idle => "neither program had anything to send",
        Class::NeverEstablished => "the connection was never opened",
        Class::Unknown if flow.seen.is_none() => {
            return "These counters do not show what limited it.".to_owned();
        }
        Class::Unknown => return "This capture does not show what limited it.".to_owned(),
    };
    let which = if flow.goodput_is_while_sending { "that" } else { "the" };
    format!("For {share} % of {which} time {cause}.")
}

fn next(flow: &Flow) -> String {
    if let Some(gain) = flow.expected_gain_bps.filter(|gain| *gain > 0.05 * flow.goodput_bps) {
        let reached = rate(flow.goodput_bps + gain);
        return format!("Without that limit, the path carries up to {reached}.");
    }
    match flow.verdict.cause {
        Class::Opportunity => {
            "Its time is that of round trips; fewer and longer connections spare the slow beginning."
        }
        Class::Congestion => "Whoever runs the network can find where the packets are lost.",
        Class::Transport => "It becomes faster the longer it lasts.",
        Class::ReceiverWindow => {
            "A larger buffer at the receiver allows more, if its program reads in time."
        }
        Class::SenderWindow => "A larger buffer at the sender allows more.",
        Class::ReceiverApplication => "The receiving program, or its disk, is the place to look.",
        Class::Bandwidth => "Only a faster path makes it faster.",
        Class::Application => "The sending program, or what it waits for, is the place to look.",
        Class::WaitingForPeer => {
            "It finishes sooner if the other program asks sooner, or for more at once."
        }
        Class::Idle => "Nothing needs to be done.",
        Class::Pacing => "The sending program can lift that limit.",
        Class::Stalled => {
            "Whoever runs the other end and the network can find which of them fell silent."
        }
        Class::NeverEstablished => {
            "The service there, or a filter before it, is the place to look."
        }
        Class::Unknown => {
            "A capture from before the connection begins, of both directions, tells more."
        }
    }
    .to_owned()
}

fn rate(bps: f64) -> String {
    in_rate(Rate::from_f64(bps))
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;
    use crate::{Evidence, Limits};

    fn story_of(limits: Limits) -> [String; 3] {
        let ends = ["192.0.2.1:1000".parse().unwrap(), "192.0.2.2:80".parse().unwrap()];
        let evidence = Evidence {
            bytes: Bytes::new(20_000),
            goodput: Rate::from_mbit_per_second(2),
            ..Evidence::default()
        };
        story(&Flow::new(ends[0], ends[1], limits, &evidence))
    }

    #[test]
    fn every_class_gets_its_own_three_sentences() {
        let stories = Class::ALL.map(|class| story_of(Limits::only(class, Duration::from_secs(1))));
        for (n, sentences) in stories.iter().enumerate() {
            for sentence in sentences {
                assert!(sentence.ends_with('.') && !sentence.contains(". "), "{sentence}");
            }
            assert!(stories[n + 1..].iter().all(|other| other[1] != sentences[1]), "{sentences:?}");
        }
    }

    #[test]
    fn a_flow_from_counters_lasts_as_long_as_its_limits() {
        // 20,000 bytes at 2 Mbit/s.
        let [first, ..] = story_of(Limits::only(Class::Congestion, Duration::from_millis(80)));
        assert!(first.contains("20 kB to 192.0.2.2 within 80 ms: 2.0 Mbit/s"), "{first}");
    }

    #[test]
    fn the_story_gives_the_time_of_the_cause_not_of_its_family() {
        let mut limits = Limits::only(Class::WaitingForPeer, Duration::from_secs(6));
        limits.add(Class::Idle, Duration::from_secs(4));
        assert!(story_of(limits)[1].starts_with("For 60 % of the time the sender waited"));
    }

    #[test]
    fn a_small_window_after_losses_is_not_described_as_loss_time() {
        let [_, why, _] = story_of(Limits::only(Class::Congestion, Duration::from_secs(1)));
        let expected = "TCP kept its window small because packets had been lost before";
        assert_eq!(why, format!("For 100 % of the time {expected}."));
    }
}
