//! TCP's throughput on the measured path, by simulation.

use serde::Serialize;
use sweetspot_scenario::{Congestion, Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration};

use super::path_file::PathFile;

/// The simulated time, and the most packets that are simulated: so that it takes a few seconds at most.
const DURATION: Duration = Duration::from_secs(15);
const WARMUP: Duration = Duration::from_secs(5);
const MAX_PACKETS: f64 = 2e6;
/// The window that fills the path with a short queue, over the bandwidth-delay product.
const WINDOW_RATIO: f64 = 1.05;

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
    /// The congestion control.
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
