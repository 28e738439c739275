//! The qualitative results of the third paper, in seconds instead of minutes.

use std::sync::OnceLock;

use sweetspot_experiment::router::{BufferMeasured, Runner, measure};
use sweetspot_experiment::{NoStore, Workers};
use sweetspot_research::router::{Fits, Objective, RunRow, TABLE_1, gamma, inputs, simulated};
use sweetspot_sim::Simulator;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::optimum::Best;
use sweetspot_units::Duration;

fn runner() -> Runner<'static> {
    Runner { engine: &Simulator, store: &NoStore, workers: Workers::new(2), watch: &|_, _| {} }
}

/// Row `row` of Table I with `buffers`, each run for `seconds`.
fn run(row: usize, buffers: &[u64], seconds: u64) -> RunRow {
    let setup = TABLE_1[row];
    let mut scenario = setup.scenario().expect("the rows are scenarios");
    scenario.duration = Duration::from_secs(seconds);
    let measured = measure(&runner(), &scenario, buffers, 1).expect("the simulator runs every row");
    RunRow::of(setup, scenario, measured)
}

/// The row N_in = 20, U = 100, Gamma = 0.1.
fn power_law() -> &'static RunRow {
    static PLAYED: OnceLock<RunRow> = OnceLock::new();
    PLAYED.get_or_init(|| run(3, &[5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 300], 150))
}

/// The row N_in = 1000, U = 25, Gamma = 10.
fn exponential() -> &'static RunRow {
    static PLAYED: OnceLock<RunRow> = OnceLock::new();
    PLAYED.get_or_init(|| run(4, &[3, 5, 10, 20, 30, 45, 65, 90, 120], 240))
}

fn fits(finished: &RunRow) -> &Fits {
    finished.fits.as_ref().expect("loss falls with the buffer")
}

#[test]
fn the_setups_match_table_1() {
    // N_in, U, Gamma, C_out in Mbit/s.
    let printed = [
        (2, 5, 0.1, 2.5),
        (20, 5, 0.1, 2.5),
        (2, 100, 0.1, 50.0),
        (20, 100, 0.1, 50.0),
        (1000, 25, 10.0, 10.0),
        (20, 25, 10.0, 10.0),
        (1000, 500, 10.0, 100.0),
        (20, 500, 10.0, 100.0),
    ];
    for (setup, (links, users, ratio, mbps)) in TABLE_1.iter().zip(printed) {
        let scenario = setup.scenario().expect("the rows are scenarios");
        let sweetspot_scenario::TrafficKind::ClosedLoop { users: found, .. } =
            scenario.cross[0].kind
        else {
            panic!("{} has no closed-loop users", setup.file)
        };
        let inputs = inputs(&scenario).expect("every row has input links");
        let rate = scenario.path.narrow().rate.as_f64() / 1e6;
        assert_eq!((inputs.count, found, rate), (links, users, mbps), "{}", setup.file);
        assert_eq!(gamma(&scenario).expect("rates are above zero").gamma(), ratio);
        // Section VI-A: max(20, N_in) servers, 30 to 110 ms.
        assert_eq!(inputs.servers, links.max(20));
    }
}

#[test]
fn loss_follows_a_power_law_of_the_buffer_at_gamma_0_1() {
    let fits = fits(power_law());
    assert_eq!(fits.comparison.better, Some(Form::PowerLaw), "{:?}", fits.comparison);
    // "Typical values for b and f are around 0.5 and 0.4."
    let (b, f) = (fits.power_law.b.value, fits.delay.value);
    assert!((0.25..0.75).contains(&b), "b = {b}");
    assert!((0.2..0.6).contains(&f), "f = {f}");
}

#[test]
fn loss_falls_exponentially_with_the_buffer_at_gamma_10() {
    let fits = fits(exponential());
    assert_eq!(fits.comparison.better, Some(Form::Exponential), "{:?}", fits.comparison);
    assert!(fits.comparison.exponential_r2 > 0.97, "{:?}", fits.comparison);
}

#[test]
fn delay_stays_below_a_full_buffer_and_loss_falls_with_its_size() {
    for finished in [power_law(), exponential()] {
        let rate = finished.scenario.path.narrow().rate.as_f64();
        for m in &finished.measured {
            let full = m.buffer as f64 * 12_000.0 / rate;
            assert!(m.delay_s < full, "{} packets: {} s", m.buffer, m.delay_s);
        }
        let falls = |pair: &[BufferMeasured]| pair[1].loss < pair[0].loss;
        assert!(finished.measured.windows(2).all(falls));
    }
}

#[test]
fn long_flows_need_more_buffer_than_short_ones_and_slow_inputs_least() {
    let (pl, ex) = (power_law(), exponential());
    let at = |best: Best| match best {
        Best::Zero => 0.0,
        Best::At(buffer) => buffer.get(),
        Best::Unbounded => f64::INFINITY,
    };
    let formula = |finished: &RunRow, form, objective| {
        at(fits(finished).best(form, objective).expect("the form holds at its optimum"))
    };
    let long = formula(pl, Form::PowerLaw, Objective::Long);
    let short = formula(pl, Form::PowerLaw, Objective::Short);
    let slow = formula(ex, Form::Exponential, Objective::Short);
    assert!(long > short && short > slow, "{long} {short} {slow}");
    let best = |finished: &RunRow, long: bool| {
        let found = simulated(&finished.measured, |m| if long { &m.large } else { &m.short });
        found.expect("enough flows finish").best
    };
    let (long, short, slow) = (best(pl, true), best(pl, false), best(ex, false));
    assert!(long > short && short > slow, "{long} {short} {slow}");
}
