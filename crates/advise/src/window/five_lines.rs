//! The five lines of the answer: window, settings, expected rate, risk and reason. If loss limits the transfer, the remedy
//! replaces a closed form's reason and follows a simulation's.

use sweetspot_theory::host::send_buffer::LARGEST_SEGMENT;
use sweetspot_units::{Bytes, Duration, Percent, Rate};

use super::lossy::{FILLED_SHARE, SUFFICIENT_RATE_SHARE};
use super::show::{rate, size};
use super::{CrossKind, MOST_STREAMS, TriedWindows, WindowAdvice};
use crate::limit::LARGEST_WINDOW;
use crate::text::{labelled, percent, two_digits, with_error};

/// Width of a line's label, in columns.
const LABEL: usize = 10;

impl WindowAdvice {
    /// The answer, each line wrapped to `width` columns.
    pub(super) fn in_five_lines(&self, width: usize) -> String {
        let is_loss_by_closed_form = self.loss_limited && self.simulated.is_none();
        let [window, expected, risk] = match is_loss_by_closed_form {
            true => self.with_loss(),
            false => [self.held(), self.expected(), self.risk()],
        };
        let why = (!is_loss_by_closed_form).then(|| ("why", self.why()));
        let fix = self.loss_limited.then(|| ("fix", self.fills_in_words()));
        // Only the first line of the settings has the label.
        let names = core::iter::once("settings").chain(core::iter::repeat(""));
        let settings = names.zip(self.settings_in_lines());
        core::iter::once(("window", window))
            .chain(settings)
            .chain([("rate", expected), ("risk", risk)])
            .chain(why)
            .chain(fix)
            .map(|(name, words)| {
                // A command must stay one line to be pasted.
                let width = if words.starts_with("sweetspot ") { usize::MAX } else { width };
                labelled(LABEL, name, &words, width)
            })
            .collect()
    }

    fn held(&self) -> String {
        let or_more = if self.is_any_larger_as_fast() { " or more" } else { "" };
        let window =
            format!("{}{or_more} {}", size(self.recommended.window), self.per_connection());
        match self.polite() {
            Some((polite, free)) => {
                format!("{window}. To take only the free {free}, use {polite} instead")
            }
            None => window,
        }
    }

    /// Whether loss, not the window, limits the rate with the recommended window and all larger ones simulated.
    fn is_any_larger_as_fast(&self) -> bool {
        let hold = self.recommended.window;
        self.loss_limited
            && self.simulated.as_ref().is_some_and(|simulated| {
                simulated.windows.iter().all(|tried| tried.as_fast || Some(tried.window) < hold)
            })
    }

    /// The largest window simulated that takes no more than other flows leave, and the rate that they leave; `None` if they yield nothing
    /// to the recommended one.
    fn polite(&self) -> Option<(Bytes, Rate)> {
        let q = &self.question;
        let cross = q.cross.filter(|cross| cross.kind != CrossKind::Udp)?;
        let free = cross.available(q.rate);
        let windows = &self.simulated.as_ref()?.windows;
        // Even a window above A T_m takes only the free rate until the others yield.
        let polite = windows.iter().take_while(|tried| tried.rate <= free).last()?;
        let recommended =
            windows.iter().find(|tried| Some(tried.window) == self.recommended.window)?;
        let is_surely_more =
            recommended.rate > free + recommended.rate_error + recommended.rate_error;
        (is_surely_more && polite.window < recommended.window).then_some((polite.window, free))
    }

    /// Whether the answer says that a larger window is as good.
    pub(super) fn allows_larger(&self) -> bool {
        match self.simulated {
            Some(_) => self.is_any_larger_as_fast(),
            None => self.loss_limited && !self.peaks_overflow,
        }
    }

    /// Window, rate and risk by closed form, if loss limits the transfer.
    fn with_loss(&self) -> [String; 3] {
        let window = match self.peaks_overflow {
            true => self.held(),
            false => {
                format!("{} or more {}", size(self.recommended.window), self.per_connection())
            }
        };
        let expected = format!(
            "{}{} on the wire with {}: {}",
            rate(self.recommended.rate),
            self.each(),
            self.question.congestion,
            match self.gains_by_twice() {
                Some(_) => "loss limits it, and the window its peaks",
                None => "loss, not the window, limits it",
            }
        );
        let risk = match self.peaks_overflow {
            true => format!("larger peaks overflow the buffer; {}", self.twice_in_words()),
            false => self.around_in_words(),
        };
        [window, expected, risk]
    }

    fn per_connection(&self) -> String {
        match self.connections {
            1 => format!("per connection{}", self.memory_words()),
            n => format!("for each of {n} connections: TCP has no window above {LARGEST_WINDOW}"),
        }
    }

    /// The sentence that relates the settings to the window, if both follow the same rule.
    fn memory_words(&self) -> &'static str {
        let s = &self.settings;
        // Half of an odd number may be rounded.
        let is_twice = s.tcp_rmem_max.get().abs_diff(s.tcp_wmem_max.get()) <= 1;
        match is_twice && s.autotuning_reaches() {
            true => "; its socket buffers take twice that",
            false => "",
        }
    }

    /// The congestion control, if losses make it relevant.
    fn congestion_control_words(&self) -> String {
        match self.question.random_loss() {
            Some(_) => format!(" with {}", self.question.congestion),
            _ => String::new(),
        }
    }

    fn each(&self) -> &'static str {
        if self.connections > 1 { " each" } else { "" }
    }

    /// The warning about a buffer that cannot hold one burst of its sender. The closed forms and the simulator assume that ACKs
    /// spread the packets. An unknown buffer counts as none, unless loss keeps the window below it.
    fn burst_words(&self) -> Option<String> {
        let known = self.question.buffer;
        if known.is_none() && self.loss_limited {
            return None;
        }
        let buffer = known.unwrap_or(Bytes::ZERO) * self.connections;
        // A burst is never larger than the window.
        let burst = LARGEST_SEGMENT.min(self.recommended.window?);
        (buffer < burst).then(|| {
            let buffer = match known {
                Some(_) => format!("the buffer of {buffer} is smaller"),
                None => "the path's buffer is unknown and may be smaller".to_owned(),
            };
            format!(
                "{buffer} than the {burst} that a Linux sender without pacing may send at once (TSO). Such \
                 bursts may lose packets at any window that fills the path. A sender that paces (fq or bbr) has none."
            )
        })
    }

    /// The warning about mice beside a shallow or unknown buffer, which no closed form counts as bursty.
    fn mice_words(&self) -> Option<String> {
        let q = &self.question;
        let is_mice = q.cross.is_some_and(|cross| cross.kind == CrossKind::Mice);
        let is_deep = q.buffer.is_some_and(|buffer| buffer >= q.rate * q.rtt);
        let simulate = match q.buffer {
            None => "give --buffer to simulate it",
            Some(_) if self.is_interrupted => "only the rest of the simulation would show that",
            Some(_) => "only a simulation shows that (--verify sim)",
        };
        (is_mice && !is_deep && self.simulated.is_none()).then(|| {
            format!("mice are bursty: in a shallow buffer the rate can be far lower; {simulate}.")
        })
    }

    /// The warnings about what closed forms, or also the simulator, do not count.
    pub(super) fn own_warnings(&self) -> impl Iterator<Item = String> {
        self.burst_words().into_iter().chain(self.mice_words())
    }

    fn expected(&self) -> String {
        let full = match self.burst_words().or_else(|| self.mice_words()) {
            Some(_) => format!("at most {}", rate(self.recommended.rate)),
            None => rate(self.recommended.rate),
        };
        let queue = match self.added_delay[0] {
            None | Some(Duration::ZERO) => "no queue".to_owned(),
            Some(delay) if self.simulated.is_some() => format!("{} queue", simulated_delay(delay)),
            Some(delay) => format!("{delay} queue"),
        };
        let whose = format!(" on the wire, simulated{}", self.congestion_control_words());
        match &self.simulated {
            // The nearest window that was tried, which is not exactly half.
            Some(simulated) => {
                let full = simulated.uncertain().unwrap_or(full);
                let limit = match self.loss_limited && simulated.none_bound() {
                    true => "; loss, not the window, limits it",
                    false => "",
                };
                let closed = self
                    .closed_form
                    .map(|rate| format!("; at this window the closed form gives {rate}"));
                let closed = closed.unwrap_or_default();
                let smaller = match simulated.near_half() {
                    None => "no smaller window was simulated".to_owned(),
                    Some(tried) => format!("{} gives {}", tried.window, tried.rate),
                };
                format!("{full}{whose}, {queue}{limit}{closed}; {smaller}")
            }
            None => format!(
                "{full}{} on the wire{}, {queue}; half the window: {}",
                self.each(),
                self.congestion_control_words(),
                rate(self.wrong_by_two[0].rate)
            ),
        }
    }

    fn risk(&self) -> String {
        if let Some(simulated) = &self.simulated {
            return self.beyond(simulated);
        }
        let twice = self.twice_in_words();
        let [_, double] = &self.wrong_by_two;
        match (self.question.buffer, self.added_delay[1].unwrap_or_default()) {
            _ if double.window > Some(LARGEST_WINDOW) => twice,
            (None, _) => format!("no --buffer given, so none is assumed: {twice}"),
            _ if double.rate.is_none() => twice,
            (Some(_), Duration::ZERO) => twice,
            // A window that overflows the buffer also empties it.
            (Some(_), delay) if double.window > Some(self.sweet_spot.high) => {
                format!("{twice}, with up to {delay} of queue")
            }
            (Some(_), delay) => format!("{twice}, {delay} queue"),
        }
    }

    fn twice_in_words(&self) -> String {
        let [_, double] = &self.wrong_by_two;
        match (double.rate, self.question.loss) {
            (None, _) if double.window > Some(LARGEST_WINDOW) => {
                "TCP has no window twice as large".to_owned()
            }
            (None, _) if self.question.buffer.is_none() => {
                "twice the window may lose packets; give --buffer to simulate it".to_owned()
            }
            (None, _) => {
                "twice the window overflows the buffer; no closed form gives its rate".to_owned()
            }
            (Some(twice), None) => {
                let with = self.question.congestion;
                // The sawtooth of single losses; bursts of losses cost more.
                match double.window > Some(self.sweet_spot.high) {
                    true if Some(twice) >= self.recommended.rate => {
                        format!(
                            "twice the window overflows the buffer; still up to {twice} with {with}"
                        )
                    }
                    true if self.question.buffer.is_none() => {
                        format!(
                            "twice the window loses packets: at most {twice} with {with}; give --buffer if the path has one"
                        )
                    }
                    true => format!(
                        "twice the window overflows the buffer: at most {twice} with {with}"
                    ),
                    false => format!("twice the window gives {twice} with {with}"),
                }
            }
            (Some(twice), Some(_)) => format!("twice the window gives {twice}"),
        }
    }

    /// The ways to fill a path when loss keeps one connection from filling it.
    fn fills_in_words(&self) -> String {
        let Some(fills) = &self.fills_path else { return String::new() };
        let loss = fills.loss.map(|loss| format!("a loss of {}", percent(Some(loss))));
        let bbr = fills.bbr.then(|| "BBR".to_owned());
        let others: Vec<String> = loss.into_iter().chain(bbr).collect();
        let (share, n) = (Percent(FILLED_SHARE), fills.connections);
        // With several connections, each has to fill its share.
        let times = if self.connections > 1 { " times as many" } else { "" };
        let n_words = format!("{n}{times} connections");
        if n.saturating_mul(self.connections) <= MOST_STREAMS {
            let others = others.join(", ");
            let or = if others.is_empty() { "" } else { " or " };
            return format!("to fill {share} of the path: {others}{or}{n_words}");
        }
        let most = format!("{n_words}, but `send --streams` opens at most {MOST_STREAMS}");
        match (others.join(" or "), fills.bbr) {
            (others, true) => {
                format!("to fill {share} of the path: {others}. It would take {most}")
            }
            (others, false) if others.is_empty() => {
                format!("repair the path. To fill {share} of it would take {most}")
            }
            (others, false) => {
                format!(
                    "repair the path: to fill {share} of it takes {others}. It would take {most}"
                )
            }
        }
    }

    /// The rates with half and with twice the window, if loss is the limit.
    fn around_in_words(&self) -> String {
        let half = self.half_in_words();
        match self.gains_by_twice() {
            Some(twice) => format!("{half}; twice, if buffered, {twice}"),
            None => format!("{half}; a larger one gains about 1 %"),
        }
    }

    /// The rate with twice the window, if that is faster. The buffer, which is unknown, must hold such peaks.
    fn gains_by_twice(&self) -> Option<Rate> {
        let [one, twice] = [&self.recommended, &self.wrong_by_two[1]].map(|choice| choice.rate);
        let (one, twice) = one.zip(twice).filter(|_| !self.peaks_overflow)?;
        (one < twice.scaled(SUFFICIENT_RATE_SHARE * SUFFICIENT_RATE_SHARE)).then_some(twice)
    }

    /// The cost of half the window. Loss may limit a flow to far less than either window.
    fn half_in_words(&self) -> String {
        let [recommended_rate, half] = [&self.recommended, &self.wrong_by_two[0]].map(|c| c.rate);
        match recommended_rate.zip(half) {
            Some((recommended_rate, half))
                if half >= recommended_rate.scaled(SUFFICIENT_RATE_SHARE) =>
            {
                "half the window is almost as fast".to_owned()
            }
            _ => format!("half the window gives {}", rate(half)),
        }
    }

    fn why(&self) -> String {
        if let Some(simulated) = &self.simulated {
            return simulated_why(simulated) + &self.beyond_the_spot();
        }
        let spot = self.sweet_spot;
        let full = match self.question.cross {
            None if self.connections > 1 => {
                format!("rate x RTT is {} each", spot.low)
            }
            None => format!("rate x RTT is {} of payload", spot.low),
            Some(_) => format!("cross traffic leaves room for {}", spot.low),
        };
        let q = &self.question;
        if self.recommended.window == Some(q.payload(q.initial_window())) {
            return "ten packets, TCP's initial window, fill what cross traffic leaves".to_owned();
        }
        if spot.low == spot.high {
            return format!("{full}; more would queue");
        }
        format!("{full}{}; with the buffer full, {}", self.margin_in_words(), spot.high)
    }

    /// The effect of a larger window: of the first that is slower, or of the largest.
    fn beyond(&self, simulated: &TriedWindows) -> String {
        let hold = simulated.hold().map(|hold| hold.window);
        let larger = simulated.windows.iter().skip_while(|tried| Some(tried.window) <= hold);
        let mut ties = larger.clone().take_while(|tried| tried.as_fast || tried.is_unsure);
        let ties_by_chance = ties.any(|tried| tried.is_unsure);
        let mut slower = larger.skip_while(|tried| tried.as_fast || tried.is_unsure).peekable();
        let first = slower.peek().copied();
        let verb = if slower.any(|tried| tried.as_fast) { "may be" } else { "is" };
        match (first, simulated.windows.last()) {
            (Some(tried), _) => {
                format!(
                    "a larger one {verb} slower: {} gives {}, {} queue",
                    tried.window,
                    tried.rate,
                    simulated_delay(tried.delay)
                )
            }
            (None, Some(last)) if ties_by_chance => {
                let delay = simulated_delay(last.delay);
                format!("no significant difference up to {}, {delay} queue", last.window)
            }
            (None, Some(last)) if hold != Some(last.window) => {
                format!(
                    "no slower up to {}, the largest simulated: {} queue",
                    last.window,
                    simulated_delay(last.delay)
                )
            }
            _ => match self.question.cross.map(|cross| cross.kind) {
                Some(CrossKind::Elephants | CrossKind::Mice) => {
                    let taken = self.polite().zip(self.recommended.rate);
                    let taken = taken.map(|((_, free), rate)| rate.saturating_sub(free));
                    let taken = taken.map(|taken| format!("it takes {taken} that is not free; "));
                    let taken = taken.unwrap_or_default();
                    format!(
                        "{taken}a larger one takes more from the other flows; none was simulated"
                    )
                }
                _ => "none: path and buffer hold no more".to_owned(),
            },
        }
    }

    /// The reason why the window is outside the closed form's sweet spot, if it is.
    fn beyond_the_spot(&self) -> String {
        let is_mice = self.question.cross.is_some_and(|cross| cross.kind == CrossKind::Mice);
        match self.recommended.window {
            Some(window) if window > self.sweet_spot.high => {
                let why = match self.question.random_loss() {
                    _ if is_mice => ", where mice never give way",
                    Some(_) => ", with which loss recovery stalls",
                    _ => "",
                };
                format!("; larger than {}{why}", self.spot_in_words())
            }
            Some(window) if window < self.sweet_spot.low => {
                format!("; smaller than {}", self.spot_in_words())
            }
            _ => String::new(),
        }
    }

    fn spot_in_words(&self) -> String {
        let whose = match self.question.random_loss() {
            Some(_) => "the sweet spot without loss,",
            None => "the closed form's",
        };
        let [low, high] = [self.sweet_spot.low, self.sweet_spot.high].map(|end| end.to_string());
        let ends = match (low.split_once(' '), high.split_once(' ')) {
            _ if low == high => high,
            (Some((number, unit)), Some((_, other))) if unit == other => {
                format!("{number} to {high}")
            }
            _ => format!("{low} to {high}"),
        };
        format!("{whose} {ends}")
    }

    /// The margin above the window that fills the path.
    fn margin_in_words(&self) -> String {
        let above = |window: Bytes| window.as_f64() / self.sweet_spot.low.as_f64() - 1.0;
        match self.recommended.window.map(above) {
            Some(margin) if margin >= 0.005 && self.question.cross.is_none() => {
                format!(", plus {} headroom", Percent(margin))
            }
            _ => String::new(),
        }
    }
}

/// A simulated delay without digits that another seed would change.
fn simulated_delay(delay: Duration) -> Duration {
    Duration::from_secs_f64(two_digits(delay.as_secs_f64()))
}

impl TriedWindows {
    /// The rate of the recommended window with its 95 % interval, if that interval is wider than the tolerance.
    fn uncertain(&self) -> Option<String> {
        let hold = self.hold()?;
        let half = self.interval(hold)?;
        let is_wide = half > hold.rate.saturating_sub(hold.rate.scaled(SUFFICIENT_RATE_SHARE));
        is_wide.then(|| format!("{} (95 %)", with_error(hold.rate, half)))
    }
}

fn simulated_why(simulated: &TriedWindows) -> String {
    let as_fast = simulated.windows.iter().filter(|tried| tried.as_fast).count();
    let (tried, seeds) = (simulated.windows.len(), simulated.seeds);
    let is_largest = simulated.hold() == simulated.windows.last();
    match as_fast {
        0 | 1 if is_largest && tried > 1 => format!(
            "the largest of {tried} windows simulated is the fastest, {seeds} runs each; the search ends there"
        ),
        0 | 1 => format!("the fastest of {tried} windows simulated, {seeds} runs each"),
        _ => format!(
            "{as_fast} of {tried} simulated windows tie for fastest, {seeds} runs each; this is the smallest"
        ),
    }
}
