//! The figures computed from closed forms: 11, 17, 18 and 19.

use sweetspot_theory::Packets;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::mm1b::heavy_load;
use sweetspot_theory::router::optimum::{Best, optimum};
use sweetspot_theory::router::per_flow::{Favoured, Router, RouterLink};
use sweetspot_theory::router::rules::{self, Constrained, Constraints};
use sweetspot_theory::router::sensitivity::{long_power_law, relative_error};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::analysis::{Fits, Objective, SHORT_PACKETS};
use super::drawing::{FigureData, logarithmic, straight};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::Table;

const PACKET: Bytes = Bytes::new(1500);
const T_O: Duration = Duration::from_millis(60);

/// Throughput with M/M/1/B loss and delay under heavy load.
///
/// # Errors
/// If a formula is not applicable, which a test rules out.
pub fn figure_11() -> Result<FigureData, StudyError> {
    let (loss, link) = heavy_load(Rate::from_mbit_per_second(1000), T_O, PACKET)?;
    let mut figure = FigureData::new(
        "router-fig11",
        "Figure 11: throughput under M/M/1/B, 1 Gbit/s, 60 ms",
        logarithmic("buffer, kB"),
        logarithmic("throughput, Mbit/s"),
    );
    for (label, favoured) in [("S-model, 30 packets", short()?), ("L-model", Favoured::Long)] {
        let router = Router { link, loss, favoured };
        let points = (2..=40).map(|step| {
            // From 4 packets to 2^20.
            let buffer = libm::exp2(f64::from(step) / 2.0 + 1.0);
            (buffer * PACKET.as_f64() / 1e3, throughput(&router, buffer) / 1e6)
        });
        figure.formula(label, points);
    }
    figure.mark("best for the L-model: 2 C T_o", Some(15_000.0), None);
    Ok(figure)
}

/// Section V's best buffers under M/M/1/B, with the case of each.
pub fn section_5() -> Result<Vec<(&'static str, Bytes)>, StudyError> {
    let (loss, link) = heavy_load(Rate::from_mbit_per_second(1000), T_O, PACKET)?;
    let short = |bytes| -> Result<Favoured, StudyError> {
        Ok(Favoured::Short(ShortFlow::new(Bytes::new(bytes), PACKET)?))
    };
    let cases = [
        ("s=10 kB", short(10_000)?),
        ("s=100 kB", short(100_000)?),
        ("s=1 MB", short(1_000_000)?),
        ("L-model", Favoured::Long),
    ];
    let mut best = Vec::new();
    for (case, favoured) in cases {
        if let Best::At(buffer) = optimum(&Router { link, loss, favoured })?.best {
            best.push((case, PACKET.scaled(buffer.get())));
        }
    }
    Ok(best)
}

/// The rules named in section II, by number of flows.
pub fn rules_table() -> Result<Table, StudyError> {
    let (rate, rtt) = (Rate::from_mbit_per_second(1000), Duration::from_millis(85));
    let loss = Probability::new(0.01).unwrap_or(Probability::ZERO);
    let constraints = Constraints { loss, delay: Duration::from_millis(100) };
    let heads = [
        "flows",
        "BDP, kB",
        "BDP / sqrt(n), kB",
        "tiny, kB",
        "flow-proportional, kB",
        "constrained, kB",
    ];
    let mut table = Table::new("", &heads);
    for flows in [10, 100, 1000, 2000, 3000] {
        let kilobytes = |bytes: Bytes| format!("{:.0}", bytes.as_f64() / 1e3);
        let constrained = match rules::constrained(rate, rtt, flows, PACKET, &constraints)? {
            Constrained::Buffer(buffer) => kilobytes(buffer),
            Constrained::DelayInfeasible { needed, allowed } => {
                format!("none: {} needed, {} allowed", kilobytes(needed), kilobytes(allowed))
            }
        };
        table.rows.push(vec![
            flows.to_string(),
            kilobytes(rules::bandwidth_delay(rate, rtt)?),
            kilobytes(rules::square_root(rate, rtt, flows)?),
            kilobytes(PACKET * rules::TINY),
            kilobytes(rules::flow_proportional(rate, rtt, flows, PACKET, loss)?),
            constrained,
        ]);
    }
    Ok(table)
}

/// Throughput under the power law with the measured parameters.
pub(super) fn figure_17(fits: &Fits) -> Result<FigureData, StudyError> {
    let mut figure = FigureData::new(
        "router-fig17",
        "Figure 17: throughput under the PL-form, C T_o = 250 packets",
        straight("buffer, packets"),
        straight("throughput, Mbit/s"),
    );
    models(&mut figure, fits, Form::PowerLaw, 600)?;
    figure.mark("best for the S-model, about", Some(100.0), None);
    figure.mark("best for the L-model, about", Some(400.0), None);
    Ok(figure)
}

/// Throughput under the exponential form with the measured parameters.
pub(super) fn figure_18(fits: &Fits) -> Result<FigureData, StudyError> {
    let mut figure = FigureData::new(
        "router-fig18",
        "Figure 18: throughput under the EX-form, C T_o = 500 packets",
        straight("buffer, packets"),
        straight("throughput, Mbit/s"),
    );
    models(&mut figure, fits, Form::Exponential, 500)?;
    figure.mark("best for both", Some(0.0), None);
    Ok(figure)
}

fn models(figure: &mut FigureData, fits: &Fits, form: Form, max: u32) -> Result<(), StudyError> {
    for (label, objective) in
        [("S-model, 30 packets", Objective::Short), ("L-model", Objective::Long)]
    {
        let router = fits.router(form, objective)?;
        let buffers = (0..=60).map(|step| f64::from(step * max) / 60.0);
        figure.formula(label, buffers.map(|b| (b, throughput(&router, b) / 1e6)));
    }
    Ok(())
}

/// The cost of a wrong buffer size.
///
/// # Errors
/// If a formula is not applicable, which a test rules out.
pub fn figure_19() -> Result<FigureData, StudyError> {
    let mut figure = FigureData::new(
        "router-fig19",
        "Figure 19: what a buffer off by a factor costs",
        straight("buffer over the best one"),
        straight("throughput lost, %"),
    );
    let link = RouterLink::new(Rate::from_mbit_per_second(50), T_O, PACKET, TYPICAL_F)?;
    for b in [0.35, 0.5, 1.0] {
        let omegas = || (0..=30).map(|step| 0.25 + f64::from(step) * 0.05);
        let long: Result<Vec<_>, _> =
            omegas().map(|omega| Ok((omega, long_power_law(b, omega)? * 100.0))).collect();
        figure.formula(&format!("L-model, b = {b}"), long.map_err(StudyError::Theory)?);
        let router = Router { link, loss: LossForm::power_law(A, b)?, favoured: short()? };
        let short: Result<Vec<_>, _> =
            omegas().map(|omega| Ok((omega, relative_error(&router, omega)? * 100.0))).collect();
        figure.formula(&format!("S-model, b = {b}"), short.map_err(StudyError::Theory)?);
    }
    figure.mark("below 10-15 % at 40 % of the best", Some(0.4), Some(15.0));
    Ok(figure)
}

/// A typical f (section VII-A).
const TYPICAL_F: f64 = 0.4;
/// The paper does not give a for Figure 19's S-model; this value makes the loss a few per cent near
/// the best buffer.
const A: f64 = 0.2;

fn short() -> Result<Favoured, StudyError> {
    Ok(Favoured::Short(ShortFlow::new(PACKET * SHORT_PACKETS, PACKET)?))
}

/// Throughput in bit/s; NaN where the loss form does not apply.
fn throughput(router: &Router, buffer: f64) -> f64 {
    let rate = Packets::new(buffer).and_then(|buffer| router.throughput(buffer));
    rate.map_or(f64::NAN, Rate::as_f64)
}
