//! Simulation results of the link, or of a scaled-down link, and the choice of a buffer from them.

use serde_json::{Value, json};
use sweetspot_statistics::student_t;
use sweetspot_theory::Packets;
use sweetspot_units::{Duration, Rate};

use super::{BufferRange, Favour, buffers};
use crate::text::{row, table, with_error, wrap};

/// Simulation results for several buffers.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// The rate of the simulated link; its users are scaled in proportion.
    pub rate: Rate,
    /// `rate` as a share of the real link's rate.
    pub scale: f64,
    /// The number of users in the closed loop.
    pub users: u64,
    /// The number of input links.
    pub inputs: u64,
    /// Warm-up time of each run, in seconds.
    pub warmup: u64,
    /// Measured time per buffer and seed, in seconds.
    pub seconds: u64,
    /// Number of runs per buffer.
    pub seeds: u64,
    /// The buffers in rising order, in packets of the real link, scaled up from the simulated link.
    pub buffers: Vec<SimulatedBuffer>,
    /// The index of the formula's buffer.
    pub advised: usize,
    /// The index of the rule's buffer, C T.
    pub rule: usize,
}

/// The results for one buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedBuffer {
    /// The buffer.
    pub buffer: Packets,
    /// The number of flows active at a time, scaled up to the real link.
    pub flows: f64,
    /// Packets dropped over packets that arrived.
    pub loss: f64,
    /// The mean queueing delay.
    pub mean_delay: Duration,
    /// The share of the link in use.
    pub used: f64,
    /// Median throughput of transfers of the median size.
    pub short: SimulatedRate,
    /// Median throughput of bulk transfers.
    pub bulk: SimulatedRate,
    /// The standard errors of loss, delay and utilisation.
    pub errors: SimulatedErrors,
}

/// Standard errors of a buffer's numbers over the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedErrors {
    /// Of the loss.
    pub loss: f64,
    /// Of the mean queueing delay.
    pub mean_delay: Duration,
    /// Of the share of the link in use.
    pub used: f64,
}

/// A median rate with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedRate {
    /// The median; 0 if no transfer finished.
    pub rate: Rate,
    /// The standard error of the median.
    pub error: Rate,
    /// The number of transfers that finished.
    pub flows: u64,
}

/// The fewest packets in flight that allow three duplicate ACKs after a loss.
pub(super) const PACKETS_IN_FLIGHT: f64 = 4.0;
/// At this loss rate, Reno's mean window, sqrt(3 / 2p), falls to the four packets that three duplicate ACKs need.
pub(super) const OVERLOAD_LOSS: f64 = 3.0 / 32.0;
/// A median of fewer transfers is not reliable.
const ENOUGH_FLOWS: u64 = 30;
/// A buffer replaces the first choice only if its rate is higher by this ratio.
const MIN_RATE_GAIN: f64 = 1.05;
/// Significance level of a difference between two buffers (Student's t over the seeds).
const SIGNIFICANCE: f64 = 0.05;

/// A simulation decides if the simulated link's rate is at least this share of the real one. By C T / sqrt(n), a link scaled by
/// `scale` needs a share of buffer 1 / sqrt(scale) times as large. At this limit the factor is 1.4, less than one step between
/// the buffers tried.
const DECISIVE_SCALE: f64 = 0.5;
/// The share of the recommended buffer's rate that the buffers in the range keep.
pub(super) const SHARE: f64 = 0.9;
/// C T / sqrt(n) should keep this share of a link in use if persistent flows can fill it (Appenzeller, Keslassy, McKeown 2004).
pub(super) const FULL_LOAD_SHARE: f64 = 0.98;

impl SimulatedRate {
    /// The median, if enough transfers finished.
    pub(super) fn known(&self) -> Option<Rate> {
        (self.flows >= ENOUGH_FLOWS).then_some(self.rate)
    }
}

impl SimulatedErrors {
    /// The larger error of each number.
    pub(super) fn larger(&self, other: &SimulatedErrors) -> SimulatedErrors {
        SimulatedErrors {
            loss: self.loss.max(other.loss),
            mean_delay: self.mean_delay.max(other.mean_delay),
            used: self.used.max(other.used),
        }
    }
}

impl SimulatedBuffer {
    fn of(&self, favour: Favour) -> SimulatedRate {
        if favour == Favour::Throughput { self.bulk } else { self.short }
    }
}

impl Simulated {
    /// The buffer to recommend for `favour`. The first choice is C T for bulk transfers, whatever the formula asks for, and the
    /// formula's buffer for short ones. A significantly better buffer up to `most` replaces it: the smallest within 5 % of the
    /// best that is no worse than the first choice. More than C T would delay all traffic ([`Simulated::larger`]).
    pub(super) fn chosen(&self, favour: Favour, most: Packets) -> Option<usize> {
        let first = self.first(favour);
        let all = || (0..self.up_to(most).max(first + 1)).filter(|i| self.counts(*i, favour));
        let best = all().max_by(|a, b| self.rate(*a, favour).total_cmp(&self.rate(*b, favour)))?;
        if !self.counts(first, favour) {
            return None;
        }
        if !self.is_better(best, first, favour) {
            return Some(first);
        }
        let enough = (self.rate(best, favour) / MIN_RATE_GAIN).max(self.rate(first, favour));
        all().find(|i| self.rate(*i, favour) >= enough)
    }

    /// The position of the buffer for bulk transfers between the formula's buffer, 0, and C T, 1. It falls as the loss with C T
    /// approaches the loss of an overload. From half of that loss on, a larger buffer mostly adds delay, and chance would decide
    /// between equally good buffers.
    pub(super) fn share_of_rule(&self) -> f64 {
        let loss = self.loss_with_rule().unwrap_or_default().max(f64::MIN_POSITIVE);
        libm::log2(OVERLOAD_LOSS / loss).clamp(0.0, 1.0)
    }

    /// The results for `buffer`, interpolated between its neighbours; `None` outside the buffers tried.
    pub(super) fn at(&self, buffer: Packets) -> Option<SimulatedBuffer> {
        let (first, last) = (self.buffers.first()?.buffer, self.buffers.last()?.buffer);
        // On the simulated link, buffers are whole packets.
        let rounding = 0.5 / self.scale;
        if buffer.get() < first.get() - rounding || buffer.get() > last.get() + rounding {
            return None;
        }
        let inside = if buffer > last { last } else { buffer };
        let above = self.buffers.iter().position(|tried| tried.buffer >= inside)?;
        let (low, high) = (&self.buffers[above.saturating_sub(1)], &self.buffers[above]);
        let fraction = |b: f64| libm::log(b / low.buffer.get());
        let share =
            if above == 0 { 1.0 } else { fraction(inside.get()) / fraction(high.buffer.get()) };
        let line = |one: f64, other: f64| one + (other - one) * share;
        // Loss and delay follow powers of the buffer (router-buffer §VI).
        let power = |one: f64, other: f64| match one > 0.0 && other > 0.0 {
            true => one * libm::pow(other / one, share),
            false => line(one, other),
        };
        let rate = |one: &SimulatedRate, other: &SimulatedRate| SimulatedRate {
            rate: Rate::from_f64(line(one.rate.as_f64(), other.rate.as_f64())),
            error: one.error.max(other.error),
            flows: one.flows.min(other.flows),
        };
        let delays = [low, high].map(|tried| tried.mean_delay.as_secs_f64());
        Some(SimulatedBuffer {
            buffer,
            flows: line(low.flows, high.flows),
            loss: power(low.loss, high.loss),
            mean_delay: Duration::from_secs_f64(power(delays[0], delays[1])),
            used: line(low.used, high.used),
            short: rate(&low.short, &high.short),
            bulk: rate(&low.bulk, &high.bulk),
            errors: low.errors.larger(&high.errors),
        })
    }

    /// The smallest buffer, interpolated, with which almost as much of the link is used as with `full`.
    pub(super) fn filling(&self, full: Packets) -> Option<Packets> {
        let wanted = FULL_LOAD_SHARE * self.at(full)?.used;
        let above = self.buffers.iter().position(|tried| tried.used >= wanted)?;
        let (low, high) = (&self.buffers[above.saturating_sub(1)], &self.buffers[above]);
        let fraction = if above == 0 { 1.0 } else { (wanted - low.used) / (high.used - low.used) };
        buffers::between(high.buffer, low.buffer, fraction).ok()
    }

    /// The buffers around the best one up to `most` that keep 90 % of its rate; the lower end is interpolated. `None` if too few
    /// transfers finished.
    pub(super) fn keeping(&self, favour: Favour, most: Packets) -> Option<BufferRange> {
        let best = self.best(favour, most)?;
        let enough = SHARE * self.rate(best, favour);
        let keeps = |i: &usize| self.counts(*i, favour) && self.rate(*i, favour) >= enough;
        let first = (0..=best).rev().take_while(keeps).last()?;
        let last = (best..self.buffers.len()).take_while(keeps).last()?;
        let below = first.checked_sub(1).filter(|i| self.counts(*i, favour));
        let low = match below {
            None => self.buffers[first].buffer,
            Some(below) => {
                let [less, more] = [below, first].map(|i| self.rate(i, favour));
                let fraction = (enough - less) / (more - less);
                buffers::between(self.buffers[first].buffer, self.buffers[below].buffer, fraction)
                    .ok()?
            }
        };
        let is_last = last + 1 == self.buffers.len();
        Some(BufferRange { low, high: (!is_last).then(|| self.buffers[last].buffer) })
    }

    /// The number of buffers that are no larger than `most`, up to rounding to whole packets of the simulated link.
    fn up_to(&self, most: Packets) -> usize {
        let most = most.get() + 0.5 / self.scale;
        self.buffers.partition_point(|tried| tried.buffer.get() <= most)
    }

    /// The index of the buffer with the best rate, among those up to `most`.
    fn best(&self, favour: Favour, most: Packets) -> Option<usize> {
        let counted = (0..self.up_to(most)).filter(|i| self.counts(*i, favour));
        counted.max_by(|a, b| self.rate(*a, favour).total_cmp(&self.rate(*b, favour)))
    }

    /// The buffer with the best rate, among those up to `most`.
    pub(super) fn fastest(&self, favour: Favour, most: Packets) -> Option<&SimulatedBuffer> {
        self.buffers.get(self.best(favour, most)?)
    }

    /// Whether the simulated link has enough of the real link's flows to represent it.
    pub fn decides(&self) -> bool {
        self.scale >= DECISIVE_SCALE
    }

    /// The loss with the rule's buffer, C T.
    pub(super) fn loss_with_rule(&self) -> Option<f64> {
        self.buffers.get(self.rule).map(|buffer| buffer.loss)
    }

    /// The buffers around `recommended` that keep 90 % of its rate; `None` if too few transfers finished.
    pub(super) fn range(&self, favour: Favour, recommended: Packets) -> Option<BufferRange> {
        let enough = SHARE * self.at(recommended)?.of(favour).known()?.as_f64();
        let keeps = |i: &usize| self.counts(*i, favour) && self.rate(*i, favour) >= enough;
        let above = self.buffers.partition_point(|tried| tried.buffer <= recommended);
        let first = (0..above).rev().take_while(keeps).last();
        let last = above + (above..self.buffers.len()).take_while(keeps).count();
        let is_last = last == self.buffers.len();
        // The end of the range is between the outermost buffer that keeps the rate and the next one tried.
        let edge = |kept: Option<usize>, lost: Option<usize>| {
            let kept = kept.map_or(recommended, |i| self.buffers[i].buffer);
            let Some(lost) = lost.filter(|i| self.counts(*i, favour)) else { return kept };
            let lost = self.buffers[lost].buffer;
            let [more, less] = [kept, lost]
                .map(|buffer| self.at(buffer).map_or(0.0, |at| at.of(favour).rate.as_f64()));
            let fraction = ((enough - less) / (more - less)).clamp(0.0, 1.0);
            buffers::between(kept, lost, fraction).unwrap_or(kept)
        };
        let low = edge(first, first.unwrap_or(above).checked_sub(1));
        let high = edge((last > above).then(|| last - 1), (!is_last).then_some(last));
        Some(BufferRange { low, high: (!is_last).then_some(high) })
    }

    /// The best buffer above C T, if it is significantly better than `chosen`.
    fn larger(&self, chosen: usize, favour: Favour) -> Option<&SimulatedBuffer> {
        let all = (self.rule + 1..self.buffers.len()).filter(|i| self.counts(*i, favour));
        let best = all.max_by(|a, b| self.rate(*a, favour).total_cmp(&self.rate(*b, favour)))?;
        self.is_better(best, chosen, favour).then(|| &self.buffers[best])
    }

    fn rate(&self, buffer: usize, favour: Favour) -> f64 {
        self.buffers[buffer].of(favour).rate.as_f64()
    }

    /// Half the width of a 95 % interval, in standard errors, by Student's t over the seeds; 0 with a single seed, which has no error.
    pub(super) fn interval(&self) -> f64 {
        match self.seeds.saturating_sub(1) {
            0 => 0.0,
            degrees => student_t::two_sided_quantile(SIGNIFICANCE, degrees as f64),
        }
    }

    /// Whether the 95 % interval of the rate with `buffer` is narrow enough to tell [`SHARE`] of that rate from all of it.
    pub(super) fn tells_share(&self, favour: Favour, buffer: Packets) -> bool {
        self.at(buffer).is_some_and(|at| {
            let SimulatedRate { rate, error, .. } = at.of(favour);
            error.as_f64() * self.interval() <= (1.0 - SHARE) * rate.as_f64()
        })
    }

    /// Whether `buffer` was simulated, apart from rounding to whole packets of the simulated link.
    pub(super) fn is_tried(&self, buffer: Packets) -> bool {
        let distance = |tried: &SimulatedBuffer| libm::fabs(tried.buffer.get() - buffer.get());
        self.buffers.iter().any(|tried| distance(tried) <= 0.5 / self.scale)
    }

    /// Whether enough transfers finished to compare buffers for `favour`.
    pub(super) fn compares(&self, favour: Favour, most: Packets) -> bool {
        match favour {
            Favour::Latency => self.best(favour, most).is_some(),
            _ => self.counts(self.first(favour), favour),
        }
    }

    /// The buffer that others are compared with: the rule's for bulk transfers, the formula's for short ones.
    fn first(&self, favour: Favour) -> usize {
        if favour == Favour::Throughput { self.rule } else { self.advised }
    }

    fn counts(&self, buffer: usize, favour: Favour) -> bool {
        self.buffers[buffer].of(favour).known().is_some()
    }

    /// Whether the rate with buffer `one` is significantly higher than with `other`, and by more than 5 %.
    fn is_better(&self, one: usize, other: usize, favour: Favour) -> bool {
        let error = |i: usize| self.buffers[i].of(favour).error.as_f64();
        let gain = self.rate(one, favour) - self.rate(other, favour);
        let degrees = self.seeds.saturating_sub(1) as f64;
        let t = gain / libm::hypot(error(one), error(other));
        let is_significant =
            degrees > 0.0 && gain > 0.0 && student_t::two_sided_tail(t, degrees) < SIGNIFICANCE;
        is_significant && self.rate(one, favour) > MIN_RATE_GAIN * self.rate(other, favour)
    }

    /// Sentences about buffers other than `recommended`. With `is_mentioned`, the advice already states that no buffer up to C T is
    /// better. `delay` gives the delay of a full buffer.
    pub(super) fn verdict(
        &self,
        recommended: Packets,
        favour: Favour,
        is_mentioned: bool,
        delay: impl Fn(Packets) -> Duration,
    ) -> Vec<String> {
        let mut words = match is_mentioned {
            true => Vec::new(),
            false => {
                vec!["No buffer up to C x T was significantly better in the simulator.".to_owned()]
            }
        };
        let larger = self.nearest(recommended).and_then(|chosen| self.larger(chosen, favour));
        if let Some(found) = larger {
            let SimulatedRate { rate, error, .. } = found.of(favour);
            let is_last = self.buffers.last().is_some_and(|last| last.buffer == found.buffer);
            let largest = if is_last { ", the largest buffer tried," } else { "" };
            words.push(format!(
                "{:.0} packets{largest} would give {}, but delay all traffic by {} when full.",
                found.buffer.get(),
                with_error(rate, error.scaled(self.interval())),
                delay(found.buffer)
            ));
        }
        words
    }

    /// The index of the buffer nearest to `to`.
    pub(super) fn nearest(&self, to: Packets) -> Option<usize> {
        let distance = |i: &usize| libm::fabs(self.buffers[*i].buffer.get() - to.get());
        (0..self.buffers.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// These results, with the buffer tried that is nearest to `buffer` as the formula's.
    pub(super) fn with_formula(&self, buffer: Packets) -> Simulated {
        Simulated { advised: self.nearest(buffer).unwrap_or(self.advised), ..self.clone() }
    }

    /// The table of the simulation's results.
    pub(super) fn text(&self, recommended: Packets, packet_time: f64, width: usize) -> String {
        let scaled = if self.scale < 1.0 {
            format!(
                "a link of {} in the place of the whole, with users and buffers in proportion ({:.2} %)",
                self.rate,
                self.scale * 100.0
            )
        } else {
            format!("{}", self.rate)
        };
        let words = format!(
            "By simulation: {scaled}; closed loop of {} users behind {} inputs, RTTs from a half to 1.8 of \
             the one given; {} s after {} s of warm-up for each buffer and each of {} seeds. short, bulk: the \
             Mbit/s that half of the transfers exceed; short ones have the median size, bulk ones more than eight times the \
             mean. +-: the 95 % interval (Student's t).{}",
            self.users,
            self.inputs,
            self.seconds,
            self.warmup,
            self.seeds,
            self.caution()
        );
        let head = ["packets", "full ms", "mean ms", "loss %", "used %", "short", "bulk"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let (all, index) = self.with_recommended(recommended);
        for (i, b) in all.iter().enumerate() {
            let mark = match b.buffer {
                buffer if buffer == self.buffers[self.advised].buffer => "*",
                buffer if buffer == self.buffers[self.rule].buffer => "'",
                _ if all.len() > self.buffers.len() && index == Some(i) => "~",
                _ => "",
            };
            rows.push(row([
                &format!("{:.0}{mark}", b.buffer.get()),
                &format!("{:.2}", b.buffer.get() * packet_time * 1e3),
                &format!("{:.2}", b.mean_delay.as_secs_f64() * 1e3),
                &format!("{:.3}", b.loss * 100.0),
                &format!("{:.1}", b.used * 100.0),
                &self.shown(b.short),
                &self.shown(b.bulk),
                &if index == Some(i) { "take" } else { "" },
            ]));
        }
        let between = if all.len() > self.buffers.len() { ", ~ interpolated" } else { "" };
        format!(
            "\n{}{}  * the formula's buffer, ' the rule C T{between}\n",
            wrap(&words, width, 0),
            table(0, &rows)
        )
    }

    /// The buffers tried, and the index of the recommended one if the simulation decides. The recommended buffer is added,
    /// interpolated, if it was not tried.
    fn with_recommended(&self, recommended: Packets) -> (Vec<SimulatedBuffer>, Option<usize>) {
        let mut all = self.buffers.clone();
        let nearest = self.nearest(recommended).filter(|_| self.decides());
        match (nearest, self.at(recommended)) {
            (Some(_), Some(between)) if !self.is_tried(recommended) => {
                let place = all.partition_point(|tried| tried.buffer < recommended);
                all.insert(place, between);
                (all, Some(place))
            }
            _ => (all, nearest),
        }
    }

    /// The reason why a simulation of a scaled-down link does not decide.
    fn caution(&self) -> String {
        if self.decides() {
            return String::new();
        }
        format!(
            " Fewer flows smooth each other less: this part needs up to {:.1} times the share of buffer that the whole \
             does (C T / sqrt(n)). The recommended buffer does not rest on this table.",
            1.0 / libm::sqrt(self.scale)
        )
    }

    /// A rate in Mbit/s with its 95 % interval.
    fn shown(&self, found: SimulatedRate) -> String {
        let Some(rate) = found.known() else { return "-".to_owned() };
        let [rate, error] = [rate, found.error].map(|rate| rate.as_f64() / 1e6);
        format!("{rate:.2} +- {:.2}", error * self.interval())
    }

    pub(super) fn json(&self) -> Value {
        let rate = |r: &SimulatedRate| json!({ "median_bps": r.rate.bits_per_second(), "error_bps": r.error.bits_per_second(), "flows": r.flows });
        let buffers = self.buffers.iter().map(|b| {
            json!({
                "buffer_packets": b.buffer.get(),
                "active_flows": b.flows,
                "loss": b.loss,
                "delay_s": b.mean_delay.as_secs_f64(),
                "utilisation": b.used,
                "short": rate(&b.short),
                "bulk": rate(&b.bulk),
                "loss_error": b.errors.loss,
                "delay_error_s": b.errors.mean_delay.as_secs_f64(),
                "utilisation_error": b.errors.used,
            })
        });
        json!({
            "rate_bps": self.rate.bits_per_second(),
            "scaled_by": self.scale,
            "decides": self.decides(),
            "users": self.users,
            "inputs": self.inputs,
            "warmup_s": self.warmup,
            "seconds": self.seconds,
            "seeds": self.seeds,
            "advised": self.advised,
            "rule": self.rule,
            "points": buffers.collect::<Vec<_>>(),
        })
    }
}
