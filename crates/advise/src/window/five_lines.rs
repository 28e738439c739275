//! The window, the settings, the gain, the risk, why: a line each.

use core::cmp::Ordering;

use sweetspot_units::Duration;

use super::show::{rate, size};
use super::{TriedWindow, TriedWindows, WindowAdvice};
use crate::limit::LARGEST_WINDOW;

impl WindowAdvice {
    pub(super) fn in_five_lines(&self) -> String {
        let s = &self.settings;
        let receiver = match s.autotuning_reaches() {
            true => format!("tcp_rmem[2] {}", s.tcp_rmem_max.get()),
            false => format!("SO_RCVBUF {}", s.so_rcvbuf.get()),
        };
        let settings =
            format!("{receiver} (receiver), tcp_wmem[2] {} (sender)", s.tcp_wmem_max.get());
        let hold = size(self.recommended.window);
        let [window, gain, risk, why] = if self.loss_limited {
            [
                match self.peaks_overflow {
                    true => format!("{hold} {}", self.per_connection()),
                    false => format!("{hold} or more {}", self.per_connection()),
                },
                format!(
                    "{}{} with {}: loss, not the window, limits it",
                    rate(self.recommended.rate),
                    self.each(),
                    self.question.congestion
                ),
                match self.peaks_overflow {
                    true => format!(
                        "more overflows the buffer at times; twice that gives {}",
                        rate(self.wrong_by_two[1].rate)
                    ),
                    false => "a smaller window only costs rate".to_owned(),
                },
                "find where packets are lost; until then bbr or several streams help".to_owned(),
            ]
        } else {
            [format!("{hold} {}", self.per_connection()), self.gain(), self.risk(), self.why()]
        };
        let lines = [
            ("window", window),
            ("settings", settings),
            ("gain", gain),
            ("risk", risk),
            ("why", why),
        ];
        lines.map(|(name, words)| format!("{name:<9} {words}\n")).concat()
    }

    fn per_connection(&self) -> String {
        match self.connections {
            1 => format!("per connection{}", self.memory_words()),
            n => format!("for each of {n} connections: TCP has no window above {LARGEST_WINDOW}"),
        }
    }

    /// How the settings follow from the window: tcp_rmem and tcp_wmem count memory.
    fn memory_words(&self) -> &'static str {
        let s = &self.settings;
        let window = self.recommended.window.unwrap_or_default();
        // Half of an odd number is rounded.
        let is_twice = s.tcp_rmem_max.get().abs_diff(s.tcp_wmem_max.get()) <= 1;
        match s.tcp_wmem_max.cmp(&(window * 2)) {
            _ if !is_twice || !s.autotuning_reaches() => "",
            Ordering::Greater => "; settings count memory: twice that plus 5 %",
            Ordering::Equal => "; settings count memory: twice that",
            Ordering::Less => "",
        }
    }

    /// The congestion control, where losses make it count.
    fn by_whom(&self) -> String {
        match self.question.loss {
            Some(loss) if loss.get() > 0.0 => format!(" with {}", self.question.congestion),
            _ => String::new(),
        }
    }

    fn each(&self) -> &'static str {
        if self.connections > 1 { " each" } else { "" }
    }

    fn gain(&self) -> String {
        let full = rate(self.recommended.rate);
        let queue = match self.added_delay[0] {
            Duration::ZERO => "no queue".to_owned(),
            delay => format!("{delay} of queue"),
        };
        let half = &self.wrong_by_two[0];
        match &self.simulated {
            // Not half: the nearest window that was tried.
            Some(_) => match half.window {
                None => format!("{full} simulated, {queue}; no smaller window was tried"),
                Some(_) => format!(
                    "{full} simulated, {queue}; {} gives {}",
                    size(half.window),
                    rate(half.rate)
                ),
            },
            None => format!(
                "{full}{}{}, {queue}; half that gives {}",
                self.each(),
                self.by_whom(),
                rate(half.rate)
            ),
        }
    }

    fn risk(&self) -> String {
        if let Some(simulated) = &self.simulated {
            return beyond(simulated);
        }
        let Some(twice) = self.wrong_by_two[1].rate else {
            return "twice that overflows the buffer, and no closed form says how far".to_owned();
        };
        let twice = match self.question.loss {
            None => format!("{twice} with {}", self.question.congestion),
            Some(_) => twice.to_string(),
        };
        match (self.question.buffer, self.added_delay[1]) {
            (None, _) => format!("twice that gives {twice} if the path has no buffer"),
            (Some(_), Duration::ZERO) => format!("twice that gives {twice}"),
            (Some(_), delay) => format!("twice that gives {twice} and {delay} of delay"),
        }
    }

    fn why(&self) -> String {
        if let Some(simulated) = &self.simulated {
            return simulated_why(simulated);
        }
        let spot = self.sweet_spot;
        let full = match self.question.cross {
            None if self.connections > 1 => {
                format!("{} each (rate x RTT) fills the path", spot.low)
            }
            None => format!("{} (rate x RTT) fills the path", spot.low),
            Some(_) => format!("{} fills what others leave of the path", spot.low),
        };
        if spot.low == spot.high {
            return format!("{full}; more would queue");
        }
        format!("{full}, {} its buffer too", spot.high)
    }
}

/// The windows that the simulations cannot tell apart, or the rule that chose.
fn simulated_why(simulated: &TriedWindows) -> String {
    match simulated.equally_good() {
        [smallest, .., largest] => format!(
            "{} to {} may all be as fast as the fastest, by {} runs each",
            smallest.window, largest.window, simulated.seeds
        ),
        _ => format!(
            "the smallest of {} within {:.0} % of the best, in {} runs each",
            simulated.windows.len(),
            simulated.rate_given_up * 100.0,
            simulated.seeds
        ),
    }
}

/// The effect of a window above those that may be the fastest: the first with a rate at least 3 % lower, or the largest.
fn beyond(simulated: &TriedWindows) -> String {
    let Some((hold, larger)) =
        simulated.windows.get(simulated.hold..).and_then(|from| from.split_first())
    else {
        return "not simulated".to_owned();
    };
    let gives = |tried: &TriedWindow| {
        format!("{} gives {} and {} of delay", tried.window, tried.rate, tried.delay)
    };
    let equal = simulated.equally_good().last().map_or(hold.window, |largest| largest.window);
    let is_slower =
        |tried: &&TriedWindow| tried.window > equal && tried.rate < hold.rate.scaled(0.97);
    match (larger.iter().find(is_slower), larger.last()) {
        (Some(tried), _) => format!("{} is too far: it gives {}", tried.window, tried.rate),
        (None, Some(largest)) if largest.window == equal => {
            format!(
                "none up to {}, the largest tried: {}, {} of delay",
                largest.window, largest.rate, largest.delay
            )
        }
        (None, Some(largest)) => gives(largest),
        (None, None) => "nothing larger was simulated".to_owned(),
    }
}
