//! The figures that the simulator draws: 9, 10 and 13 to 16, and throughput against buffer.

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_theory::Packets;
use sweetspot_theory::reno::l_model;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_units::{Duration, Probability};

use super::analysis::Fits;
use super::drawing::{FigureAxis, FigureData, logarithmic, straight};
use super::measure::{BufferMeasured, measure};
use super::setup::TESTBED;
use crate::{StudyError, Workers};

const BUFFER: FigureAxis = logarithmic("buffer, packets");

/// Loss against buffer with both forms: Figures 13 and 15.
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

/// Delay against buffer with the straight line: Figures 14 and 16.
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

/// Median per-flow throughput of S- and L-flows against buffer (section VII-C).
pub(super) fn throughput(
    name: &'static str,
    title: &'static str,
    all: &[BufferMeasured],
) -> FigureData {
    let mut figure = FigureData::new(name, title, BUFFER, logarithmic("throughput, kbit/s"));
    type Of = fn(&BufferMeasured) -> &super::MedianThroughput;
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

/// Throughput against flow size with the S- and the L-model, for the smallest and the largest
/// buffer of the testbed: Figures 9 and 10.
///
/// # Errors
/// If the engine cannot play the testbed.
pub fn by_size<E: Engine + Sync + ?Sized>(
    engine: &E,
    seconds: u64,
    workers: Workers,
) -> Result<Vec<FigureData>, StudyError> {
    let mut scenario = TESTBED.scenario()?;
    scenario.duration = Duration::from_secs(seconds);
    let measured = measure(engine, &scenario, &[20, 25_333], 1, workers, &|_, _| {})?;
    let names = [
        ("router-fig9", "Figure 9: throughput against flow size, B = 30 kB"),
        ("router-fig10", "Figure 10: throughput against flow size, B = 38 MB"),
    ];
    let figures = names.iter().zip(&measured);
    figures.map(|((name, title), m)| sizes(name, title, &scenario, m)).collect()
}

fn sizes(
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
    let bins = || measured.by_size.values().filter(|bin| bin.flows >= MIN_MEAN_FLOWS);
    figure.simulated("simulated", bins().map(|bin| (bin.packets, bin.mean_bps / 1e3)));
    let packet = scenario.path.packet;
    let (least, most) = scenario.cross[0].rtt;
    let rtt = (least + most) / 2 + Duration::from_secs_f64(measured.delay_s);
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

/// A mean of fewer flows says nothing.
const MIN_MEAN_FLOWS: usize = 5;
