//! A user's router link as a scenario: the paper's closed loop (Figure 12) with other parameters.

use sweetspot_scenario::Scenario;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::closed_loop::users_to_fill;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::StudyError;

/// A router's link and its users.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedLink {
    /// The output link's rate.
    pub rate: Rate,
    /// The harmonic mean of the flows' RTTs without the link's queueing delay.
    pub rtt: Duration,
    /// The rate of each input link.
    pub input_rate: Rate,
    /// Number of input links.
    pub inputs: u64,
    /// Packet size.
    pub packet: Bytes,
    /// Mean size of a transfer.
    pub size_mean: Bytes,
    /// Pareto tail index of the sizes.
    pub tail_index: f64,
    /// Number of users in the closed loop.
    pub users: u64,
}

/// Mean think time, as in the scenarios of Table I.
pub const THINK: Duration = Duration::from_millis(500);
/// RTTs relative to their mean: the paper's harmonic mean of 60 ms comes from RTTs between 30 and 110 ms.
const SPREAD: (f64, f64) = (0.5, 110.0 / 60.0);

impl SimulatedLink {
    /// C T_o, in packets.
    pub fn bdp(&self) -> f64 {
        self.rate.as_f64() * self.rtt.as_secs_f64() / (self.packet.as_f64() * 8.0)
    }

    /// Gamma = C_out / C_in.
    pub fn gamma(&self) -> f64 {
        self.rate.as_f64() / self.input_rate.as_f64()
    }

    /// Time of a mean transfer on a full link, by Little's law: each user completes one transfer per transfer time and think
    /// time.
    pub(super) fn transfer_time(&self) -> Duration {
        (self.size_mean.scaled(self.users as f64) / self.rate).saturating_sub(THINK)
    }

    /// The number of users that offer `load` of the link if their transfers are limited only by slow start and the input
    /// link.
    ///
    /// # Errors
    /// If the sizes are zero.
    pub fn users_for(&self, load: f64) -> Result<u64, StudyError> {
        let flow = ShortFlow::new(self.size_mean, self.packet)?;
        let rounds = self.rtt * flow.slow_start_rtts();
        let transfer = rounds + self.size_mean / self.input_rate;
        let fill = users_to_fill(self.rate, self.size_mean, THINK, transfer)?;
        Ok((fill as f64 * load) as u64 + 1)
    }

    /// A link `scale` times as fast, with the same RTT and all numbers in proportion.
    #[must_use]
    pub fn scaled(&self, scale: f64) -> SimulatedLink {
        let users = libm::round(self.users as f64 * scale).max(1.0) as u64;
        let (rate, input_rate) = (self.rate.scaled(scale), self.input_rate.scaled(scale));
        SimulatedLink { rate, input_rate, users, ..*self }
    }

    /// The link's scenario, measured for `seconds` after `warmup`.
    ///
    /// # Errors
    /// If the quantities do not form a valid scenario.
    pub fn scenario(&self, warmup: u64, seconds: u64) -> Result<Scenario, StudyError> {
        let nanos = |share: f64| format!("{}ns", self.rtt.scaled(share).as_nanos());
        let bits = |rate: Rate| format!("{}bit/s", rate.bits_per_second().max(1000));
        let text = format!(
            "title = \"a link of one's own\"\n\
             warmup = \"{warmup}s\"\nduration = \"{seconds}s\"\n\
             [path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\ndelay = \"{delay}\"\nbuffer = \"2pkt\"\n\
             packet = \"{packet}B\"\naccess_rate = \"{access}\"\nreverse = \"clean\"\n\
             [[cross]]\nkind = \"closed-loop\"\nusers = {users}\ninputs = {inputs}\n\
             input_rate = \"{input}\"\nsize_mean = \"{size}B\"\nsize_shape = {tail}\n\
             think_mean = \"{think}ms\"\nrtt = [\"{min}\", \"{max}\"]\ncongestion = \"sack\"\n",
            rate = bits(self.rate),
            rtt = nanos(1.0),
            // In both directions, a third of the shortest RTT.
            delay = nanos(SPREAD.0 / 3.0),
            packet = self.packet.get(),
            access = bits(self.input_rate.scaled(20.0)),
            users = self.users,
            inputs = self.inputs,
            input = bits(self.input_rate),
            size = self.size_mean.get(),
            tail = self.tail_index,
            think = THINK.as_nanos() / 1_000_000,
            min = nanos(SPREAD.0),
            max = nanos(SPREAD.1),
        );
        Ok(Scenario::parse(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: SimulatedLink = SimulatedLink {
        rate: Rate::from_mbit_per_second(50),
        rtt: Duration::from_millis(60),
        input_rate: Rate::from_mbit_per_second(500),
        inputs: 20,
        packet: Bytes::new(1500),
        size_mean: Bytes::new(80_000),
        tail_index: 1.5,
        users: 100,
    };

    #[test]
    fn the_papers_link_gets_about_the_papers_number_of_users() {
        // 54 packets take D = 1 + ceil(log2 27) = 6 RTTs, 0.36 s, and 1.3 ms at 500 Mbit/s: 50e6 x 0.86 / 640,000 = 67.3, and
        // half as many again are 102. The paper has 100.
        assert_eq!(LINK.users_for(1.5).unwrap(), 103);
    }

    #[test]
    fn every_link_gives_a_valid_scenario() {
        for (rate, rtt) in [(1, 1), (50, 60), (1000, 60), (100_000, 300)] {
            let rtt = Duration::from_millis(rtt);
            let link = SimulatedLink { rate: Rate::from_mbit_per_second(rate), rtt, ..LINK };
            assert_eq!(link.scaled(0.001).scenario(1, 1).unwrap().path.rtt, rtt);
        }
    }

    #[test]
    fn scaling_keeps_gamma_and_each_users_share() {
        let half = LINK.scaled(0.5);
        assert_eq!((half.gamma(), half.users, half.bdp()), (LINK.gamma(), 50, 125.0));
    }
}
