//! Simulates TCP's throughput on the measured path.

use serde::Serialize;
use sweetspot_experiment::Workers;
use sweetspot_measure::DelayUnderLoad;
use sweetspot_scenario::{Congestion, Engine, NoRecorder, Scenario, TransferOutcome};
use sweetspot_sim::Simulator;
use sweetspot_sizing::Sizing;
use sweetspot_statistics::mean_interval;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::path_file::PathFile;
use super::words::short;

/// The number of simulations of each transfer, with different seeds.
const RUNS: u64 = 5;
/// The simulated time; together with the limit on packets, it keeps each simulation to a few seconds.
const DURATION: Duration = Duration::from_secs(15);
const WARMUP: Duration = Duration::from_secs(5);
const MAX_PACKETS: f64 = 2e6;
/// The window as a multiple of the bandwidth-delay product, so that it fills the path with a short queue.
pub const WINDOW_RATIO: f64 = 1.05;

/// The factor by which a simulation may fall below the measurement, as in the diagnosis of a capture.
const REFUTED_RATIO: f64 = 1.5;

/// A remedy is worthwhile if the RTT under load falls by more than this.
pub const WORTH: Duration = Duration::from_millis(5);
/// A window costs rate if the rate falls below this share of the measured one. Measured and simulated rates differ by less.
pub const SLOWER: f64 = 0.9;

/// The simulated throughput of each congestion control, and of a window of the right size.
#[derive(Debug, Clone, Serialize)]
pub struct Outlook {
    /// The result of each congestion control with the kernel's window.
    pub congestion: Vec<Expected>,
    /// The result of CUBIC with a window of [`Outlook::window_bytes`].
    pub window: Option<Expected>,
    /// A window slightly above the bandwidth-delay product.
    pub window_bytes: Option<u64>,
    /// The number of simulations behind each rate.
    pub runs: u64,
    /// Properties of the path that were not measured, with the values assumed for them.
    pub assumed: Vec<String>,
    /// Whether random loss was not measured, so that every rate is an upper bound.
    pub is_upper_bound: bool,
    /// The differences between the simulated and the measured transfer, if they contradict each other.
    pub contradiction: Option<String>,
    /// The reason why there is no result.
    pub unknown: Option<String>,
}

/// The mean result of [`RUNS`] simulated transfers.
#[derive(Debug, Clone, Serialize)]
pub struct Expected {
    pub congestion: &'static str,
    /// The payload rate, in bits per second.
    pub goodput_bps: f64,
    /// The lower end of its 95 % interval, at the highest loss consistent with the measurement.
    pub goodput_low_bps: f64,
    /// The upper end, at the lowest loss.
    pub goodput_high_bps: f64,
    /// The mean RTT, in seconds.
    pub rtt_s: f64,
    /// The share of packets lost.
    pub loss_rate: f64,
}

impl Expected {
    /// Whether random loss makes the interval of a simulated rate wide.
    pub fn is_wide(&self) -> bool {
        self.goodput_low_bps < SLOWER * self.goodput_bps
    }
}

impl Outlook {
    /// Simulates the path in `file`.
    pub fn of(file: &Result<PathFile, String>) -> Outlook {
        match file {
            Err(why) => Outlook::unavailable(why.clone()),
            Ok(file) => Outlook::simulated(file).unwrap_or_else(Outlook::unavailable),
        }
    }

    /// Discards the result if the simulated path carries less than TCP was measured to carry, because the path must have
    /// been different.
    pub fn unless_refuted(self, carried: Option<Rate>) -> Outlook {
        let rates = self.congestion.iter().map(|expected| expected.goodput_bps);
        let (Some(most), Some(carried)) = (rates.reduce(f64::max), carried) else { return self };
        if most * REFUTED_RATIO >= carried.as_f64() {
            return self;
        }
        let most = Rate::from_f64(most);
        Outlook::unavailable(format!(
            "the measured path carries {most}, but TCP got {carried}; measure again when this \
             host and the path are quiet"
        ))
    }

    /// Adds a sentence if the transfer under `load`, which had the kernel's window, contradicts its simulation. The measured
    /// RTT is another flow's, so it is not compared if each flow `has_own_queue`.
    pub fn compared_with(self, load: &DelayUnderLoad, has_own_queue: bool) -> Outlook {
        let alike = self.congestion.iter().find(|each| each.congestion == load.congestion);
        let rate = alike.and_then(|each| self.rate_difference(each, load));
        let rtt = alike.filter(|_| !has_own_queue).and_then(|each| rtt_difference(each, load));
        let differences: Vec<String> = rate.into_iter().chain(rtt).collect();
        let contradiction = (!differences.is_empty()).then(|| {
            format!(
                "The simulation of {} contradicts the measurement: {}. Measure again before you rely on the scenario.",
                load.congestion,
                differences.join("; ")
            )
        });
        Outlook { contradiction, ..self }
    }

    /// Apart from its interval, a simulated rate may differ from the measured one by the ratio [`SLOWER`]. An upper bound
    /// may be higher.
    fn rate_difference(&self, simulated: &Expected, load: &DelayUnderLoad) -> Option<String> {
        let measured = load.goodput.value()?.as_f64();
        let is_below = simulated.goodput_high_bps < SLOWER * measured;
        let is_above = SLOWER * simulated.goodput_low_bps > measured && !self.is_upper_bound;
        let mbit = |bps: f64| short(Rate::from_f64(bps));
        let now = simulated.goodput_bps;
        (is_below || is_above).then(|| {
            let change = change(now, measured);
            format!("simulated goodput {}, measured {}{change}", mbit(now), mbit(measured))
        })
    }

    fn unavailable(why: String) -> Outlook {
        Outlook {
            congestion: Vec::new(),
            window: None,
            window_bytes: None,
            runs: 0,
            assumed: Vec::new(),
            is_upper_bound: false,
            contradiction: None,
            unknown: Some(why),
        }
    }

    fn simulated(file: &PathFile) -> Result<Outlook, String> {
        let packets =
            (file.rate * (DURATION + WARMUP)).as_f64() / file.scenario.path.packet.as_f64();
        if packets > MAX_PACKETS {
            return Err(format!(
                "{} would take too long to simulate here; run the scenario",
                file.rate
            ));
        }
        let names =
            [("cubic", Congestion::Cubic), ("reno", Congestion::NewReno), ("bbr", Congestion::Bbr)];
        let congestion = names
            .into_iter()
            .map(|(name, congestion)| expected(file, name, congestion, None))
            .collect::<Result<Vec<_>, _>>()?;
        let window = (file.rate * file.rtt).scaled(WINDOW_RATIO).max(file.scenario.path.packet * 4);
        let held = expected(file, "cubic", Congestion::Cubic, Some(window))?;
        Ok(Outlook {
            congestion,
            window: Some(held),
            window_bytes: Some(window.get()),
            runs: RUNS,
            assumed: file.assumed.clone(),
            is_upper_bound: file.loss.is_none(),
            contradiction: None,
            unknown: None,
        })
    }
}

/// The difference between the RTTs, if they differ by [`REFUTED_RATIO`] and by more than [`WORTH`]; a mean and a median
/// always differ somewhat.
fn rtt_difference(simulated: &Expected, load: &DelayUnderLoad) -> Option<String> {
    let measured = load.round_trip.value()?.as_secs_f64();
    let now = simulated.rtt_s;
    let (low, high) = (now.min(measured), now.max(measured));
    (high > REFUTED_RATIO * low && high - low > WORTH.as_secs_f64()).then(|| {
        let show = |seconds: f64| short(Duration::from_secs_f64(seconds));
        format!("simulated RTT {}, measured {}{}", show(now), show(measured), change(now, measured))
    })
}

/// The relative change from one value to another, in brackets.
fn change(to: f64, from: f64) -> String {
    format!(" ({:+.0} %)", (to / from - 1.0) * 100.0)
}

/// The mean of [`RUNS`] simulations at the measured loss. Its interval is Student's, widened by the same simulations at both
/// ends of the loss interval.
fn expected(
    file: &PathFile,
    name: &'static str,
    congestion: Congestion,
    window: Option<Bytes>,
) -> Result<Expected, String> {
    let mut scenario: Scenario = file.scenario.clone();
    (scenario.warmup, scenario.duration) = (WARMUP, DURATION);
    for transfer in &mut scenario.transfers {
        (transfer.congestion, transfer.start) = (congestion, Duration::ZERO);
        if let Some(window) = window {
            transfer.sizing = format!("fixed:{}B", window.get())
                .parse::<Sizing>()
                .map_err(|error| error.to_string())?;
        }
    }
    let found = simulated(&scenario)?;
    let rates = |found: &[TransferOutcome]| found.iter().map(|t| t.goodput_bps).collect::<Vec<_>>();
    let mean = |value: fn(&TransferOutcome) -> f64| {
        found.iter().map(value).sum::<f64>() / found.len() as f64
    };
    let goodput = mean(|t| t.goodput_bps);
    let (mut low, mut high) = interval(&rates(&found));
    let as_measured = scenario.path.hops.first().map(|hop| hop.loss);
    let mut at = |loss: Probability| {
        scenario.path.hops.iter_mut().for_each(|hop| hop.loss = loss);
        simulated(&scenario).map(|found| interval(&rates(&found)))
    };
    if let Some([least, most]) = file.loss {
        // Less loss only raises the upper end, and more loss only lowers the lower end.
        if Some(least) != as_measured {
            high = high.max(at(least)?.1);
        }
        if Some(most) != as_measured {
            low = low.min(at(most)?.0);
        }
    }
    Ok(Expected {
        congestion: name,
        goodput_bps: goodput,
        goodput_low_bps: low,
        goodput_high_bps: high,
        rtt_s: mean(|t| t.rtt_mean_s),
        loss_rate: mean(|t| t.loss_rate),
    })
}

/// The results of the first transfer of `scenario` with [`RUNS`] seeds.
fn simulated(scenario: &Scenario) -> Result<Vec<TransferOutcome>, String> {
    let seeds: Vec<u64> = (0..RUNS).map(|run| scenario.seed + run).collect();
    let runs = Workers::per_core().map(&seeds, |seed| {
        let scenario = Scenario { seed: *seed, ..scenario.clone() };
        let outcome =
            Simulator.run(&scenario, &mut NoRecorder).map_err(|error| error.to_string())?;
        outcome.transfers.into_iter().next().ok_or("nothing was simulated".to_owned())
    });
    runs.into_iter().collect()
}

/// The 95 % interval of the mean of `values`; its lower end is at least zero.
fn interval(values: &[f64]) -> (f64, f64) {
    mean_interval(values)
        .map_or((0.0, f64::INFINITY), |(mean, half)| ((mean - half).max(0.0), mean + half))
}

#[cfg(test)]
pub(super) mod tests {
    use sweetspot_measure::Finding;

    use super::*;

    pub fn outlook(mbit: [f64; 3]) -> Outlook {
        let expected = |mbit: f64| Expected {
            congestion: "cubic",
            goodput_bps: mbit * 1e6,
            goodput_low_bps: mbit * 1e6,
            goodput_high_bps: mbit * 1e6,
            rtt_s: 0.02,
            loss_rate: 0.0,
        };
        Outlook {
            congestion: mbit.map(expected).into(),
            window: Some(expected(90.0)),
            window_bytes: Some(250_000),
            runs: RUNS,
            assumed: Vec::new(),
            is_upper_bound: false,
            contradiction: None,
            unknown: None,
        }
    }

    /// A measured transfer with this congestion control, rate and median RTT.
    pub fn load(congestion: &str, mbit: f64, rtt_ms: u64) -> DelayUnderLoad {
        let (rate, rtt) = (Rate::from_f64(mbit * 1e6), Duration::from_millis(rtt_ms));
        DelayUnderLoad {
            goodput: Finding::known(rate, rate, rate, ""),
            round_trip: Finding::known(rtt, rtt, rtt, ""),
            responsiveness: Finding::unknown(""),
            grade: None,
            increase: None,
            congestion: congestion.to_owned(),
            retransmitted: 0,
        }
    }

    /// CUBIC is simulated at 20 Mbit/s and 20 ms: 22 Mbit/s is within a tenth, and 30 ms is a factor of 1.5.
    #[test]
    fn a_simulation_that_contradicts_the_measured_transfer_is_reported() {
        let contradiction_of =
            |outlook: Outlook, load| outlook.compared_with(&load, false).contradiction;
        let cubic = || outlook([20.0; 3]);
        for (mbit, rtt_ms) in [(20.0, 20), (22.0, 30), (18.5, 14)] {
            assert_eq!(contradiction_of(cubic(), load("cubic", mbit, rtt_ms)), None);
        }
        assert_eq!(
            contradiction_of(cubic(), load("cubic", 25.0, 80)).unwrap(),
            "The simulation of cubic contradicts the measurement: simulated goodput 20.0 Mbit/s, measured 25.0 Mbit/s \
             (-20 %); simulated RTT 20.0 ms, measured 80.0 ms (-75 %). Measure again before you rely on the scenario."
        );
        assert!(contradiction_of(cubic(), load("cubic", 10.0, 20)).unwrap().contains("(+100 %)"));
        // Random loss that was not measured may explain a lower rate. A congestion control that was not simulated allows no
        // conclusion.
        let bound = Outlook { is_upper_bound: true, ..cubic() };
        assert_eq!(contradiction_of(bound, load("cubic", 10.0, 20)), None);
        assert_eq!(contradiction_of(cubic(), load("dctcp", 10.0, 20)), None);
        // If each flow has its own queue, the RTT of another flow differs.
        assert_eq!(cubic().compared_with(&load("cubic", 20.0, 80), true).contradiction, None);
    }

    /// A path of 20 Mbit/s and 20 ms with this random loss; `loss` has the ends of its interval in percent.
    fn path(percent: f64, loss: Option<[f64; 2]>) -> PathFile {
        let text = format!(
            "duration = '10s'\n[path]\nrate = '20Mbit/s'\nrtt = '20ms'\nbuffer = '50kB'\nloss = '{percent}%'\n\
             [[transfer]]\ncongestion = 'cubic'\nsizing = 'kernel'"
        );
        let share = |percent: f64| Probability::new(percent / 100.0).unwrap();
        PathFile {
            scenario: Scenario::parse(&text).unwrap(),
            text,
            rate: Rate::from_mbit_per_second(20),
            rtt: Duration::from_millis(20),
            loss: loss.map(|ends| ends.map(share)),
            assumed: vec!["no random loss".to_owned()],
        }
    }

    #[test]
    fn random_loss_gives_the_rate_an_interval_around_its_mean() {
        let found = Outlook::of(&Ok(path(1.0, Some([1.0, 1.0]))));
        let cubic = &found.congestion[0];
        assert!(cubic.goodput_low_bps < cubic.goodput_bps, "{cubic:?}");
        assert!(cubic.goodput_bps < cubic.goodput_high_bps, "{cubic:?}");
        assert_eq!(found.runs, RUNS);
    }

    /// Without a loss in 300 packets, a loss of 1 % is still possible (rule of three: 3 / 300). It would slow CUBIC down.
    #[test]
    fn possible_undetected_loss_lowers_only_the_lower_bound() {
        let sure = Outlook::of(&Ok(path(0.0, Some([0.0, 0.0]))));
        let unsure = Outlook::of(&Ok(path(0.0, Some([0.0, 1.0]))));
        let (sure, unsure) = (&sure.congestion[0], &unsure.congestion[0]);
        assert_eq!(sure.goodput_bps, unsure.goodput_bps);
        assert_eq!(sure.goodput_high_bps, unsure.goodput_high_bps);
        assert!(unsure.goodput_low_bps < 0.9 * sure.goodput_low_bps, "{unsure:?}");
    }

    #[test]
    fn a_rate_without_measured_loss_is_an_upper_bound_with_its_assumption() {
        let found = Outlook::of(&Ok(path(0.0, None)));
        assert!(found.is_upper_bound);
        assert_eq!(found.assumed, ["no random loss"]);
        assert!(!Outlook::of(&Ok(path(0.0, Some([0.0, 0.0])))).is_upper_bound);
    }

    #[test]
    fn a_path_slower_than_the_measured_tcp_goodput_is_refuted() {
        let judged =
            outlook([20.0, 10.0, 40.0]).unless_refuted(Some(Rate::from_mbit_per_second(61)));
        assert!(judged.congestion.is_empty() && judged.window.is_none());
        let why = judged.unknown.unwrap_or_default();
        assert!(why.starts_with("the measured path carries 40 Mbit/s, but TCP got 61 Mbit/s"));
    }

    #[test]
    fn a_transfer_slower_than_its_path_refutes_nothing() {
        for carried in
            [Some(Rate::from_mbit_per_second(60)), Some(Rate::from_mbit_per_second(1)), None]
        {
            assert!(outlook([20.0, 10.0, 40.0]).unless_refuted(carried).unknown.is_none());
        }
    }
}
