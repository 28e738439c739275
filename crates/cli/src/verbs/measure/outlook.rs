//! TCP's throughput on the measured path, by simulation.

use serde::Serialize;
use sweetspot_scenario::{Congestion, Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Rate};

use super::path_file::PathFile;

/// The simulated time, and the most packets that are simulated: so that it takes a few seconds at most.
const DURATION: Duration = Duration::from_secs(15);
const WARMUP: Duration = Duration::from_secs(5);
const MAX_PACKETS: f64 = 2e6;
/// The window that fills the path with a short queue, over the bandwidth-delay product.
const WINDOW_RATIO: f64 = 1.05;

/// A simulation may be below the measurement by this factor, as in the diagnosis of a capture.
const REFUTED_RATIO: f64 = 1.5;

/// The throughput of each congestion control, and of a window of the right size.
#[derive(Debug, Clone, Serialize)]
pub struct Outlook {
    /// Each with the kernel's window.
    pub congestion: Vec<Expected>,
    /// Cubic with a window of [`Outlook::window_bytes`].
    pub window: Option<Expected>,
    /// A little more than the bandwidth-delay product.
    pub window_bytes: Option<u64>,
    /// Why there is nothing, if there is not.
    pub unknown: Option<String>,
}

/// The result of one simulated transfer.
#[derive(Debug, Clone, Serialize)]
pub struct Expected {
    pub congestion: &'static str,
    /// Payload, bits per second.
    pub goodput_bps: f64,
    /// Mean round trip, seconds.
    pub rtt_s: f64,
    /// Share of packets lost.
    pub loss_rate: f64,
}

impl Outlook {
    /// By simulation of the path in `file`.
    pub fn of(file: &Result<PathFile, String>) -> Outlook {
        match file {
            Err(why) => Outlook::nothing(why.clone()),
            Ok(file) => Outlook::simulated(file).unwrap_or_else(Outlook::nothing),
        }
    }

    /// Nothing, if the simulated path carries less than TCP was measured to carry: then the path is another one.
    pub fn unless_refuted(self, carried: Option<Rate>) -> Outlook {
        let rates = self.congestion.iter().map(|expected| expected.goodput_bps);
        let (Some(most), Some(carried)) = (rates.reduce(f64::max), carried) else { return self };
        if most * REFUTED_RATIO >= carried.as_f64() {
            return self;
        }
        let most = Rate::from_f64(most);
        Outlook::nothing(format!(
            "the measured path carries {most}, but TCP got {carried}; measure again when this \
             host and the path are quiet"
        ))
    }

    fn nothing(why: String) -> Outlook {
        Outlook { congestion: Vec::new(), window: None, window_bytes: None, unknown: Some(why) }
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
            unknown: None,
        })
    }
}

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
    let outcome = Simulator.run(&scenario, &mut NoRecorder).map_err(|error| error.to_string())?;
    let transfer = outcome.transfers.first().ok_or("nothing was simulated")?;
    Ok(Expected {
        congestion: name,
        goodput_bps: transfer.goodput_bps,
        rtt_s: transfer.rtt_mean_s,
        loss_rate: transfer.loss_rate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(mbit: [f64; 3]) -> Outlook {
        let expected = |mbit: f64| Expected {
            congestion: "cubic",
            goodput_bps: mbit * 1e6,
            rtt_s: 0.02,
            loss_rate: 0.0,
        };
        Outlook {
            congestion: mbit.map(expected).into(),
            window: Some(expected(90.0)),
            window_bytes: Some(250_000),
            unknown: None,
        }
    }

    #[test]
    fn a_path_that_carries_less_than_tcp_got_is_not_the_one_measured() {
        let judged =
            outlook([20.0, 10.0, 40.0]).unless_refuted(Some(Rate::from_mbit_per_second(61)));
        assert!(judged.congestion.is_empty() && judged.window.is_none());
        let why = judged.unknown.unwrap_or_default();
        assert!(why.starts_with("the measured path carries 40 Mbit/s, but TCP got 61 Mbit/s"));
    }

    #[test]
    fn a_transfer_that_was_slower_than_its_path_refutes_nothing() {
        for carried in
            [Some(Rate::from_mbit_per_second(60)), Some(Rate::from_mbit_per_second(1)), None]
        {
            assert!(outlook([20.0, 10.0, 40.0]).unless_refuted(carried).unknown.is_none());
        }
    }
}
