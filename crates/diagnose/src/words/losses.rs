//! Losses, and the waits for the retransmission timer, as sentences.

use sweetspot_trace::flow::TimerWaits;

use crate::Evidence;
use crate::quantities::{counted, ms};

/// The retransmissions and loss events, as a clause.
pub fn losses(e: &Evidence) -> String {
    match e.retransmitted {
        Some(0) => "they came before the observation".to_owned(),
        Some(_) => format!(
            "{}, in {}{}",
            resent(e),
            counted(e.loss_events, "loss event", "loss events"),
            timeout_words(e)
        ),
        None => format!("segments went missing on the path {}", about_times(e.loss_events)),
    }
}

/// The number of loss events at a receiver. Reordering and lost repairs make it differ from the sender's.
pub fn about_times(events: u64) -> String {
    if events == 1 { "once".to_owned() } else { format!("about {events} times") }
}

/// How many segments were retransmitted, as a clause.
pub fn resent(e: &Evidence) -> String {
    let retransmitted = e.retransmitted.unwrap_or_default();
    let segments = match e.segments {
        all if all < retransmitted => counted(retransmitted, "segment", "segments"),
        all => format!("{retransmitted} of {}", counted(all, "segment", "segments")),
    };
    let verb = if retransmitted == 1 { "was" } else { "were" };
    format!("{segments} {verb} retransmitted")
}

/// Which of the loss events were timeouts, if any.
fn timeout_words(e: &Evidence) -> String {
    match (e.timeouts, e.loss_events) {
        (0, _) => String::new(),
        (1, 1) => ", a retransmission timeout".to_owned(),
        (n, all) if n >= all => ", all of them retransmission timeouts".to_owned(),
        (n, _) => format!(
            ", {} of them {}",
            n,
            if n == 1 { "a retransmission timeout" } else { "retransmission timeouts" }
        ),
    }
}

/// The sender's waits for its retransmission timer, as a sentence after others.
pub fn timer_words(waits: &TimerWaits, e: &Evidence) -> String {
    let rtt = e.rtt.map_or(String::new(), |rtt| format!(" (median RTT: {})", ms(rtt)));
    let [all, longest, answer] = [waits.time, waits.longest, waits.answer];
    match waits.count {
        1 => format!(
            " The sender waited {all} for its retransmission timer; the retransmission was answered within {answer}{rtt}."
        ),
        n => format!(
            " The sender waited for its retransmission timer {n} times, {all} in all and {longest} at the longest; each retransmission \
             was answered within {answer}{rtt}."
        ),
    }
}
