//! Advice checked by a simulation of the link, or of a slower one like it.

use serde_json::{Value, json};
use sweetspot_theory::Packets;
use sweetspot_units::{Duration, Rate};

use super::{Basis, BufferChoice, Favour, RouterAdvice};
use crate::text::{row, table, wrap};

/// What buffers did in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// The rate of the link that was simulated, with its users in proportion.
    pub rate: Rate,
    /// That rate over the link's own.
    pub scale: f64,
    /// Users of the closed loop.
    pub users: u64,
    /// Input links.
    pub inputs: u64,
    /// Seconds measured per buffer and seed.
    pub seconds: u64,
    /// Runs per buffer.
    pub seeds: u64,
    /// In rising order; packets of the link asked for, so many more than were simulated.
    pub buffers: Vec<SimulatedBuffer>,
    /// Which of them the formula asked for.
    pub advised: usize,
}

/// A buffer in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedBuffer {
    /// The buffer.
    pub buffer: Packets,
    /// Packets dropped over packets that arrived.
    pub loss: f64,
    /// Mean queueing delay.
    pub mean_delay: Duration,
    /// Share of the link that was used.
    pub used: f64,
    /// Median throughput of transfers of the median size.
    pub short: SimulatedRate,
    /// Median throughput of bulk transfers.
    pub bulk: SimulatedRate,
}

/// A median with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedRate {
    /// The median; 0 where no transfer finished.
    pub rate: Rate,
    /// Its standard error.
    pub error: Rate,
    /// How many transfers finished.
    pub flows: u64,
}

/// A median of fewer says nothing.
const ENOUGH_FLOWS: u64 = 30;
/// How much better than the formula's another buffer must be to be recommended in its place.
const BETTER: f64 = 1.05;

impl SimulatedBuffer {
    fn of(&self, favour: Favour) -> SimulatedRate {
        if favour == Favour::Throughput { self.bulk } else { self.short }
    }
}

impl Simulated {
    /// The buffer that is significantly better than the formula's for `favour`, among those up to
    /// `most`: the smallest that lacks no more than 5 % of the best.
    fn better(&self, favour: Favour, most: Packets) -> Option<&SimulatedBuffer> {
        let advised = self.buffers.get(self.advised)?.of(favour);
        let counted = |b: &&SimulatedBuffer| b.buffer <= most && b.of(favour).flows >= ENOUGH_FLOWS;
        let rate = |b: &SimulatedBuffer| b.of(favour).rate.as_f64();
        let all = || self.buffers.iter().filter(counted);
        let best = all().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let error = libm::hypot(best.of(favour).error.as_f64(), advised.error.as_f64());
        let gain = rate(best) - advised.rate.as_f64();
        let significant = gain > 2.0 * error && rate(best) > BETTER * advised.rate.as_f64();
        let enough = rate(best) / BETTER;
        (significant && advised.flows >= ENOUGH_FLOWS)
            .then(|| all().find(|b| rate(b) >= enough))
            .flatten()
    }

    /// The table of what was simulated.
    pub(super) fn text(&self, packet_time: f64) -> String {
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
             --rtt; {} s after 10 s of warm-up for each buffer and each of {} seeds. short, bulk: median \
             Mbit/s +- standard error of transfers of the median size and of more than eight times the mean.",
            self.users, self.inputs, self.seconds, self.seeds
        );
        let head = ["packets", "full ms", "mean ms", "loss %", "used %", "short", "bulk"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for (i, b) in self.buffers.iter().enumerate() {
            let mark = if i == self.advised { "*" } else { "" };
            rows.push(row([
                &format!("{:.0}{mark}", b.buffer.get()),
                &format!("{:.2}", b.buffer.get() * packet_time * 1e3),
                &format!("{:.2}", b.mean_delay.as_secs_f64() * 1e3),
                &format!("{:.3}", b.loss * 100.0),
                &format!("{:.1}", b.used * 100.0),
                &b.short,
                &b.bulk,
            ]));
        }
        format!("\n{}{}  * what the formula asks for\n", wrap(&words, 80, 0), table(0, &rows))
    }

    pub(super) fn json(&self) -> Value {
        let rate = |r: &SimulatedRate| json!({ "median_bps": r.rate.bits_per_second(), "error_bps": r.error.bits_per_second(), "flows": r.flows });
        let buffers = self.buffers.iter().map(|b| {
            json!({
                "buffer_packets": b.buffer.get(),
                "loss": b.loss,
                "delay_s": b.mean_delay.as_secs_f64(),
                "utilisation": b.used,
                "short": rate(&b.short),
                "bulk": rate(&b.bulk),
            })
        });
        json!({
            "rate_bps": self.rate.bits_per_second(),
            "scaled_by": self.scale,
            "users": self.users,
            "inputs": self.inputs,
            "seconds": self.seconds,
            "seeds": self.seeds,
            "advised": self.advised,
            "points": buffers.collect::<Vec<_>>(),
        })
    }
}

impl core::fmt::Display for SimulatedRate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.flows < ENOUGH_FLOWS {
            return f.pad("-");
        }
        let mbit = |rate: Rate| rate.as_f64() / 1e6;
        f.pad(&format!("{:.2} +- {:.2}", mbit(self.rate), mbit(self.error)))
    }
}

impl RouterAdvice {
    /// Whether there is a choice that a simulation could check.
    pub fn can_be_simulated(&self) -> bool {
        self.basis != Basis::NothingQueues
    }

    /// This advice checked by `simulated`: where another buffer is significantly better than the formula's,
    /// that one is recommended.
    #[must_use]
    pub fn decided_by(mut self, simulated: Simulated) -> RouterAdvice {
        let packet = self.question.packet;
        let bdp = Packets::of(self.question.rate * self.question.rtt, packet);
        // Whom latency is to serve wants less than the best, not more.
        let movable = self.question.favour != Favour::Latency;
        let better = bdp.ok().filter(|_| movable);
        let better = better.and_then(|bdp| simulated.better(self.question.favour, bdp).cloned());
        if let Some(found) = better {
            let bytes = found.buffer.in_bytes(packet);
            self.basis = Basis::Simulator;
            self.recommended = BufferChoice {
                name: "recommended",
                buffer: found.buffer,
                bytes,
                worst_delay: bytes / self.question.rate,
                mean_delay: Some(found.mean_delay),
                loss: Some(found.loss),
                used: Some(found.used),
                short: (found.short.flows > 0).then_some(found.short.rate),
                bulk: (found.bulk.flows > 0).then_some(found.bulk.rate),
            };
        }
        self.simulated = Some(simulated);
        self
    }
}
