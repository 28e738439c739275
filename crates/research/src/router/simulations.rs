//! The figures drawn from simulations: 8 to 10, 13 to 16, and throughput against buffer.

use sweetspot_scenario::{Cross, Scenario};
use sweetspot_theory::Packets;
use sweetspot_theory::reno::l_model;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_units::{Duration, Probability};

use super::analysis::Fits;
use super::drawing::{FigureAxis, FigureData, logarithmic, straight};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::measure::BufferMeasured;
use sweetspot_experiment::router::run::{Class, Run, SizeBin};

const BUFFER: FigureAxis = logarithmic("buffer, packets");

/// Loss against buffer, with both fitted forms: Figures 13 and 15.
pub(super) fn loss(
    name: &'static str,
    title: &'static str,
    x: FigureAxis,
    measured: &[BufferMeasured],
    fits: &Fits,
) -> FigureData {
    let mut figure = FigureData::new(name, title, x, logarithmic("loss, %"));
    let lossy = measured.iter().filter(|m| m.loss > 0.0);
    figure.simulated("simulated", lossy.map(|m| (m.buffer as f64, m.loss * 100.0)));
    for (label, form) in [("PL-form", Form::PowerLaw), ("EX-form", Form::Exponential)] {
        let fitted = fits.loss(form).form;
        let within = measured.iter().filter(|m| m.buffer <= fits.cutoff);
        figure.formula(
            label,
            within.map(|m| {
                let loss = Packets::new(m.buffer as f64).and_then(|buffer| fitted.loss(buffer));
                (m.buffer as f64, loss.map_or(f64::NAN, |p| p.get() * 100.0))
            }),
        );
    }
    figure
}

/// Delay against buffer, with the fitted straight line: Figures 14 and 16.
pub(super) fn delay(
    name: &'static str,
    title: &'static str,
    measured: &[BufferMeasured],
    fits: &Fits,
) -> FigureData {
    let mut figure =
        FigureData::new(name, title, straight("buffer, packets"), straight("delay, ms"));
    figure.simulated("simulated", measured.iter().map(|m| (m.buffer as f64, m.delay_s * 1e3)));
    let service = fits.link.packet().as_f64() * 8.0 / fits.link.capacity().as_f64() * 1e3;
    let line = [0.0, fits.cutoff as f64].map(|b| (b, fits.delay.value * b * service));
    figure.formula("f B / C", line);
    figure
}

/// Median per-flow throughput of S-flows and L-flows against buffer (section VII-C).
pub(super) fn throughput(
    name: &'static str,
    title: &'static str,
    all: &[BufferMeasured],
) -> FigureData {
    let mut figure = FigureData::new(name, title, BUFFER, logarithmic("throughput, kbit/s"));
    type Of = fn(&BufferMeasured) -> &sweetspot_experiment::router::MedianThroughput;
    let kinds: [(&str, Of); 3] = [
        ("flows of 30 packets", |m| &m.short),
        ("flows with more than five congestion events", |m| &m.long),
        ("flows of more than 1000 kB", |m| &m.large),
    ];
    for (label, of) in kinds {
        let some = all.iter().filter(|m| of(m).flows > 0);
        figure.simulated(label, some.map(|m| (m.buffer as f64, of(m).median_bps / 1e3)));
    }
    figure
}

/// Selects a class of a run's flows.
pub(super) type ClassOf = fn(&Run) -> &Class;

/// The distribution of throughput over a class of flows, for each buffer: Figure 8.
pub(super) fn distributions(
    name: &'static str,
    title: &'static str,
    measured: &[&BufferMeasured],
    of: ClassOf,
) -> FigureData {
    let x = logarithmic("throughput, kbit/s");
    let mut figure = FigureData::new(name, title, x, straight("flows below, %"));
    for m in measured {
        let classes: Vec<&Class> = m.runs.iter().map(of).filter(|class| class.flows > 0).collect();
        let kilobytes = m.buffer as f64 * 1.5;
        let points = (0..19).map(|i| {
            let sum: f64 = classes.iter().map(|class| class.quantiles_bps[i]).sum();
            (sum / classes.len() as f64 / 1e3, 5.0 * (i + 1) as f64)
        });
        figure.simulated(&format!("B = {kilobytes:.0} kB"), points);
    }
    figure
}

/// Throughput against flow size, with the S-model and the L-model: Figures 9 and 10.
///
/// # Errors
/// If a model is not applicable.
pub(super) fn sizes(
    name: &'static str,
    title: &'static str,
    scenario: &Scenario,
    measured: &BufferMeasured,
) -> Result<FigureData, StudyError> {
    let mut figure = FigureData::new(
        name,
        title,
        logarithmic("flow size, packets"),
        logarithmic("mean throughput, kbit/s"),
    );
    let bins = SizeBin::merged(measured.runs.iter().map(|run| &run.by_size));
    let bins = || bins.iter().filter(|bin| bin.flows >= MIN_FLOWS);
    figure.simulated("simulated", bins().map(|bin| (bin.packets, bin.mean_bps / 1e3)));
    let packet = scenario.path.packet;
    let rtt = mean_rtt(scenario, measured.delay_s);
    let loss = Probability::new(measured.loss).unwrap_or(Probability::ZERO);
    let short = bins().map(|bin| {
        let flow = ShortFlow::new(packet.scaled(bin.packets), packet);
        let rate = flow.and_then(|flow| flow.throughput(rtt, loss));
        (bin.packets, rate.map_or(f64::NAN, |rate| rate.as_f64() / 1e3))
    });
    figure.formula("S-model", short.collect::<Vec<_>>());
    if let Ok(rate) = l_model::throughput(packet, rtt, loss) {
        figure.formula("L-model", bins().map(|bin| (bin.packets, rate.as_f64() / 1e3)));
    }
    Ok(figure)
}

/// The harmonic mean of the servers' RTTs plus `delay` seconds of queueing: rates average as 1 / T.
fn mean_rtt(scenario: &Scenario, delay: f64) -> Duration {
    let trips: Vec<f64> = scenario.cross.iter().flat_map(round_trips).collect();
    let inverse: f64 = trips.iter().map(|trip| 1.0 / (trip + delay)).sum();
    Duration::from_secs_f64(trips.len() as f64 / inverse)
}

/// RTTs of an entry's servers without queueing, seconds, evenly spaced.
fn round_trips(cross: &Cross) -> Vec<f64> {
    let servers = cross.inputs.map_or(1, |inputs| inputs.servers);
    let (min, max) = (cross.rtt.0.as_secs_f64(), cross.rtt.1.as_secs_f64());
    let share = |i: u64| if servers > 1 { i as f64 / (servers - 1) as f64 } else { 0.5 };
    (0..servers).map(|i| min + (max - min) * share(i)).collect()
}

/// Minimum number of flows for a meaningful mean.
const MIN_FLOWS: u64 = 15;

#[cfg(test)]
mod tests {
    use super::super::setup::TESTBED;
    use super::*;

    #[test]
    fn the_testbeds_mean_rtt_is_harmonic() {
        // 4 / (1/30 + 1/50 + 1/120 + 1/140) = 58.13 ms; with 60 ms more each, 4 / (1/90 + 1/110 +
        // 1/180 + 1/200) = 130.05.
        let scenario = TESTBED[2].scenario().unwrap();
        let ms = |delay| mean_rtt(&scenario, delay).as_secs_f64() * 1e3;
        assert!((ms(0.0) - 58.13).abs() < 0.01 && (ms(0.06) - 130.05).abs() < 0.01);
    }
}
