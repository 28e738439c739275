//! Climbs on scripted measurements.

use sweetspot_sizing::{CongestionChoice, Reason, Sizing, SizingPhase};

use crate::fluid::MSS;
use crate::script::{BDP, C, Q, Script, T, assert_pace};

/// A path on which congestion control keeps a sender far below the capacity and packet trains disagree.
pub(crate) struct Unused {
    pub(crate) script: Script,
    /// The share of the capacity under the sender's own congestion control.
    pub(crate) own: f64,
    /// The share of segments that the path loses, and the number of segments retransmitted so far.
    pub(crate) loss: f64,
    pub(crate) retransmitted: f64,
    /// Requested pacing rates, as shares of the capacity.
    pub(crate) paces: Vec<f64>,
}

impl Unused {
    pub(crate) fn new(own: f64) -> Unused {
        let mut script = Script::new(Sizing::Sobas);
        script.train_spread = 0.5;
        Unused { script, own, loss: 0.0, retransmitted: 0.0, paces: Vec::new() }
    }

    /// Lets sent data arrive until `done`, for at most ten seconds. `path` maps the sent share of the capacity to the arriving
    /// share and the queueing delay.
    pub(crate) fn run(
        &mut self,
        done: impl Fn(&Script) -> bool,
        mut path: impl FnMut(f64, &Script) -> (f64, f64),
    ) {
        let ends = self.script.seconds() + 10.0;
        while !done(&self.script) && self.script.seconds() < ends {
            let pace = self.script.pacing.map(|pace| pace.as_f64() / 8.0 / C);
            let is_switched = self.script.congestion == CongestionChoice::Bbr;
            let sent = pace.filter(|_| is_switched).unwrap_or(self.own);
            self.paces.extend(pace.filter(|pace| self.paces.last() != Some(pace)));
            let (share, delay) = path(sent, &self.script);
            self.script.report(self.retransmitted as u64, self.own * BDP);
            self.script.run(0.02, share, delay, 0);
            self.retransmitted += self.loss * share * C * 0.02 / MSS;
        }
    }
}

pub(crate) fn holds(script: &Script) -> bool {
    script.phase() == Some(SizingPhase::Holding)
}

/// The reason why a climb ended without a hold, if it did.
pub(crate) fn abort_reason(script: &Script) -> Option<Reason> {
    let tried = script.entered.iter().position(|entered| entered.1 == SizingPhase::Trying)?;
    let opens = |entered: &&(f64, SizingPhase, Reason)| entered.1 == SizingPhase::Open;
    script.entered[tried..].iter().find(opens).map(|(_, _, reason)| *reason)
}

/// The delivered share and queueing delay of an unshared path for this sending rate: above the capacity a queue of 20 ms, more
/// than an eighth of T.
pub(crate) fn alone(sent: f64) -> (f64, f64) {
    (sent.min(1.0), if sent > 1.0 { 0.02 } else { 0.0 })
}

#[test]
fn a_climb_starts_with_a_quarter_and_doubles_up_to_the_capacity() {
    let mut unused = Unused::new(0.09);
    unused.run(holds, |sent, _| alone(sent));
    assert!(holds(&unused.script), "{:?}", unused.script.entered);
    // The rate follows up to the capacity and no further, so the capacity is held.
    for (found, expected) in unused.paces.iter().zip([0.1125, 0.225, 0.45, 0.9, 1.8]) {
        assert!((found / expected - 1.0).abs() < 0.02, "{:?}", unused.paces);
    }
    assert_eq!(unused.script.congestion, CongestionChoice::Bbr);
    assert_pace(&unused.script, 0.99);
}

#[test]
fn a_growing_queue_during_a_climb_reveals_cross_traffic_and_ends_it() {
    let mut unused = Unused::new(0.09);
    unused.run(|script| abort_reason(script).is_some(), |sent, _| (sent, 0.2 * (sent - 0.09)));
    assert_eq!(abort_reason(&unused.script), Some(Reason::CrossTrafficQueue));
    // The last pacing rate is the one at which 0.2 s x (0.225 - 0.09) exceeds an eighth of T.
    assert!(unused.paces.iter().all(|pace| *pace < 0.23), "{:?}", unused.paces);
    let (congestion, pacing) = (unused.script.congestion, unused.script.pacing);
    assert_eq!((congestion, pacing), (CongestionChoice::Own, None));
    // The controller does not climb again.
    let tried = unused.script.entered.len();
    unused.run(|_| false, |sent, _| (sent, 0.0));
    assert_eq!(unused.script.entered.len(), tried);
}

/// Probes: the share of them that wait equals the link's utilisation.
#[derive(Default)]
struct Probes {
    due: f64,
}

impl Probes {
    /// The next probe's wait in seconds, on a link that is busy for `used` of the time.
    fn wait(&mut self, used: f64) -> f64 {
        self.due += 1.0 - used.min(1.0);
        let is_idle = self.due >= 1.0;
        self.due -= f64::from(u8::from(is_idle));
        if is_idle { 0.0 } else { 0.9 * Q }
    }
}

/// Climbs beside cross traffic with the share `others(sent)` while we send `sent`. Returns the script and the largest pacing
/// rate.
fn climb_beside(own: f64, others: impl Fn(f64) -> f64) -> (Script, f64) {
    let (mut unused, mut probes) = (Unused::new(own), Probes::default());
    unused.run(
        |script| holds(script) || abort_reason(script).is_some(),
        |sent, _| (alone(sent).0, alone(sent).1 + probes.wait(sent + others(sent))),
    );
    let largest = unused.paces.iter().copied().fold(0.0, f64::max);
    (unused.script, largest)
}

#[test]
fn a_climb_without_cross_traffic_ends_at_the_capacity() {
    // 0.3 x 1.25, twice that, and 0.75 / (1 - 0.25). With few probes, the measured 0.25 is rough.
    let (script, largest) = climb_beside(0.3, |_| 0.0);
    assert!(holds(&script), "{:?}", script.entered);
    assert!((0.82..1.05).contains(&largest), "{largest}");
    let held = script.pacing.map_or(0.0, |pace| pace.as_f64() / 8.0 / C);
    assert!((held / 0.99 - 1.0).abs() < 0.03, "{held}");
}

#[test]
fn a_climb_ends_when_the_rate_exceeds_the_lone_path_capacity() {
    // Cross traffic yields as much as we take, so the path stays idle for 0.3 of the time. Alone, that means a capacity of 0.3
    // / 0.7 = 0.43. With two standard errors of 40 probes it is at most 0.3 / (0.7 - 0.15) = 0.55.
    let (script, largest) = climb_beside(0.3, |sent| 0.7 - sent);
    assert_eq!(abort_reason(&script), Some(Reason::CrossTrafficQueue));
    // The step above it starts from 0.55 at most, and takes the idle part.
    assert!((0.55..0.55 / 0.7).contains(&largest), "{largest}");
}

#[test]
fn no_climb_starts_if_trains_exceed_the_lone_path_capacity() {
    // Alone, the capacity is 0.1 / 0.6 = 0.17, at most 0.1 / (0.6 - 0.16). The trains show 0.75, with an error of 0.25.
    let (script, largest) = climb_beside(0.1, |_| 0.5);
    assert_eq!(abort_reason(&script), Some(Reason::CrossTrafficQueue));
    assert!(largest == 0.0, "{largest}");
}

#[test]
fn fewer_than_18_percent_idle_probes_start_no_climb() {
    // A probe counts as waiting if its RTT exceeds the base by more than q / 2, 1.5 ms.
    for (one_in, wait, climbs) in
        [(5, 2e-3, true), (6, 2e-3, false), (6, 1.6e-3, false), (6, 1.4e-3, true)]
    {
        // At 0.8 of the capacity, 0.2 of the path is idle.
        let mut unused = Unused::new(0.8);
        let mut probes = 0;
        unused.run(
            |script| holds(script) || abort_reason(script).is_some(),
            |sent, _| {
                probes += 1;
                let waits = if probes % one_in == 0 { 0.0 } else { wait };
                (alone(sent).0, alone(sent).1 + waits)
            },
        );
        assert_eq!(holds(&unused.script), climbs, "{:?}", unused.script.entered);
        assert_eq!(abort_reason(&unused.script), (!climbs).then_some(Reason::NoMore));
    }
}

#[test]
fn rising_loss_lowers_the_pace_in_nine_percent_steps_until_release() {
    let mut unused = Unused::new(0.09);
    unused.run(holds, |sent, _| alone(sent));
    let since = unused.paces.len();
    // Cross traffic fills a buffer that is too small for a visible queue: one segment in twenty is lost.
    unused.loss = 0.05;
    unused.run(|script| abort_reason(script).is_some(), |sent, _| (sent, 0.0));
    // Without the reduced pacing rates of a test.
    let is_full = |pace: &f64| *pace > 0.71;
    let mut paces: Vec<f64> = unused.paces[since..].iter().copied().filter(is_full).collect();
    paces.dedup();
    let expected = [0, 1, 2, 3].map(|times| 0.99 * 0.91_f64.powi(times));
    assert_eq!(paces.len(), expected.len(), "{paces:?}");
    for (found, expected) in paces.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 0.002, "{paces:?}");
    }
    assert_eq!(abort_reason(&unused.script), Some(Reason::CrossTrafficQueue));
}

#[test]
fn a_climbed_path_yields_to_twice_the_queue_within_two_epochs() {
    let mut unused = Unused::new(0.09);
    unused.run(holds, |sent, _| alone(sent));
    let since = unused.script.seconds();
    unused.run(|script| abort_reason(script).is_some(), |sent, _| (sent, 2.1 * Q));
    assert_eq!(abort_reason(&unused.script), Some(Reason::CrossTrafficQueue));
    // Two epochs until the pacing rate takes effect, two of observation, and the current epoch.
    assert!(unused.script.seconds() - since < 5.5 * (T + 2.1 * Q));
}
