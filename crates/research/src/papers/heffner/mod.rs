//! Heffner: "High Bandwidth TCP Queuing".

use sweetspot_scenario::{Engine, Outcome, Sample, Scenario};
use sweetspot_sizing::{Announced, Sizing};
use sweetspot_theory::path::window;
use sweetspot_units::{Bytes, Duration, Volume};

use super::catalogue::{Entry, Figure, Paper, Stage};
use super::comparison::Comparisons;
use super::scenarios::{HEFFNER_1, HEFFNER_2, HEFFNER_4};
use super::time::TransferSeries;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::play::{goodput, play_all};
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};

const fn entry(
    name: &'static str,
    title: &'static str,
    play: fn(&Stage<'_>) -> Result<Figure, StudyError>,
) -> Entry {
    Entry { name, aliases: &[], paper: Paper::Heffner, title, play }
}

const ENTRY_1: Entry =
    entry("heffner-fig1", "Figure 1: time-sequence graph of the modified receiver", figure_1);
const ENTRY_2: Entry =
    entry("heffner-fig2", "Figure 2: the application stops receiving, then resumes", figure_2);
const ENTRY_4: Entry = entry("heffner-fig4", "Figure 4: send buffer and round-trip time", figure_4);
const ENTRY_5: Entry =
    entry("heffner-fig5", "Figure 5: receive buffer and round-trip time", figure_5);
const ENTRY_TABLE_1: Entry = entry("heffner-table1", "Table 1: Pittsburgh and Washington", table_1);

/// In the order of the paper. Figure 3 is a drawing of the testbed.
pub(super) const ENTRIES: &[Entry] = &[ENTRY_1, ENTRY_2, ENTRY_4, ENTRY_5, ENTRY_TABLE_1];

/// The buffers of Figures 4 and 5. The text does not print the sizes; these are Linux 2.4's
/// 64 kB and one megabyte, which is enough for 80 ms.
const DEFAULT: Bytes = Bytes::new(64_000);
const TUNED: Bytes = Bytes::new(1_000_000);

/// Round-trip times, ms: "from < 1 ms to 200 ms".
const RTTS: [u64; 12] = [1, 2, 5, 10, 20, 40, 70, 100, 125, 150, 175, 200];

/// Sequence acknowledged and the edge of the announced window over time.
fn figure_1(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("heffner", "fig1")?;
    let mut plot =
        Plot::new("", Axis::new("time, s").between(0.0, 2.0), Axis::new("sequence number, MB"));
    let scenario = HEFFNER_1.with(&[])?;
    let bdp = scenario.path.bdp().as_f64();
    for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
        let Some(engine) = engine else { continue };
        let (outcome, _) = draw_sequence(engine, origin, &scenario, &mut plot)?;
        if let Some(transfer) = outcome.transfers.first() {
            let ratio = transfer.window_final_bytes as f64 / bdp;
            published.put(origin, &["window over BDP"], ratio);
        }
    }
    let mut figure = ENTRY_1.figure(format!(
        "`{}`: 100 Mbit/s, 70 ms. In the paper's picture the announced window doubles every round \
         trip until the link limits the sender, and then stays at twice the BDP: twice the receive \
         space is announced, as section 4.2.1 has it (`heffner:twice`, played here). Section 6.6 \
         words it as once (`heffner`), which adds four segments per round trip.",
        HEFFNER_1.file
    ));
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

/// Draws the sequence acknowledged and the edge of the announced window.
fn draw_sequence(
    engine: &(dyn Engine + Sync),
    origin: Origin,
    scenario: &Scenario,
    plot: &mut Plot,
) -> Result<(Outcome, TransferSeries), StudyError> {
    let (outcome, watch) = TransferSeries::run(engine, scenario, 0, Duration::from_millis(10))?;
    let edge = |s: &Sample| (s.at_s, (s.acked_bytes + s.window_bytes) as f64 / 1e6);
    let acked = |s: &Sample| (s.at_s, s.acked_bytes as f64 / 1e6);
    plot.curve("announced edge", origin, 0, watch.samples.iter().map(edge).collect());
    plot.curve("acknowledged", origin, 1, watch.samples.iter().map(acked).collect());
    Ok((outcome, watch))
}

/// The pause of Figure 2's reader, seconds.
const PAUSE: (f64, f64) = (2.0, 3.0);

/// Figure 1's picture, with a receiving application that stops for a second.
fn figure_2(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut plot =
        Plot::new("", Axis::new("time, s").between(0.0, 5.0), Axis::new("sequence number, MB"));
    let scenario = HEFFNER_2.with(&[])?;
    let mut figure = ENTRY_2.figure(format!(
        "`{}`. The paper's text: the window shrinks to zero while the application does not read; when it \
         resumes, rcv_space has shrunk, and grows again until it is of an appropriate size. It prints no number.",
        HEFFNER_2.file
    ));
    for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
        let Some(engine) = engine else { continue };
        let (_, watch) = draw_sequence(engine, origin, &scenario, &mut plot)?;
        figure.tables.push(stop_and_go(origin, &watch.samples));
    }
    figure.plots.push(plot);
    Ok(figure)
}

/// The window before, during and after the pause.
fn stop_and_go(origin: Origin, samples: &[Sample]) -> Table {
    let between =
        |from: f64, until: f64| samples.iter().filter(move |s| s.at_s >= from && s.at_s < until);
    let most = |from, until| between(from, until).map(|s| s.window_bytes).max().unwrap_or_default();
    let least =
        |from, until| between(from, until).map(|s| s.window_bytes).min().unwrap_or_default();
    let (stop, go) = PAUSE;
    let before = most(stop - 0.5, stop);
    let back = samples.iter().find(|s| s.at_s > go && 10 * s.window_bytes >= 9 * before);
    let mut table = Table::new(origin.name(), &["announced window", "kB"]);
    let mut row = |what: &str, bytes: u64| {
        table.rows.push(vec![what.to_owned(), format!("{:.0}", bytes as f64 / 1e3)]);
    };
    row("before the pause", before);
    row("at the end of the pause", least(go - 0.2, go));
    row("within 200 ms of its end, at least", least(go + 0.01, go + 0.2));
    table.rows.push(vec![
        "nine tenths of what it was, after".to_owned(),
        back.map_or("-".to_owned(), |s| format!("{:.0} ms", (s.at_s - go) * 1e3)),
    ]);
    table
}

/// Which of the two buffers is varied.
#[derive(Clone, Copy)]
enum Buffer {
    Send,
    Receive,
    Both,
}

fn figure_4(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    against_rtt(stage, &ENTRY_4, Buffer::Send)
}

fn figure_5(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    against_rtt(stage, &ENTRY_5, Buffer::Receive)
}

fn against_rtt(stage: &Stage<'_>, entry: &Entry, buffer: Buffer) -> Result<Figure, StudyError> {
    let mut plot = Plot::new(
        "",
        Axis::new("round-trip time, ms").between(0.0, 200.0),
        Axis::new("throughput over 30 s, Mbit/s").between(0.0, 100.0),
    );
    let side = match buffer {
        Buffer::Send => "send",
        Buffer::Receive => "receive",
        Buffer::Both => "equal",
    };
    let cases = [
        (format!("{side} buffer 64 kB"), buffer, Some(DEFAULT)),
        (format!("{side} buffer 1 MB"), buffer, Some(TUNED)),
        ("both buffers 64 kB".to_owned(), Buffer::Both, Some(DEFAULT)),
        ("both buffers 1 MB".to_owned(), Buffer::Both, Some(TUNED)),
        ("modified".to_owned(), buffer, None),
    ];
    for (group, (name, buffer, size)) in cases.iter().enumerate() {
        let scenarios: Vec<Scenario> =
            RTTS.iter().map(|rtt| configured(*rtt, *buffer, *size)).collect::<Result<_, _>>()?;
        if let (true, Some(size)) = (stage.theory, size) {
            plot.curve(name, Origin::Theory, group, closed_form(*size, &scenarios)?);
        }
        let mut draw = |origin, engine: Option<&(dyn Engine + Sync)>| {
            let Some(engine) = engine else { return Ok::<_, StudyError>(()) };
            let outcomes = play_all(engine, &scenarios, stage.workers_of(origin))?;
            let points = RTTS.iter().zip(&outcomes).map(|(rtt, o)| (*rtt as f64, goodput(o) / 1e6));
            plot.curve(name, origin, group, points.collect());
            Ok(())
        };
        draw(Origin::Sim, stage.sim)?;
        draw(Origin::Lab, stage.lab)?;
    }
    let mut figure = entry.figure(format!(
        "`{}`: 100 Mbit/s Ethernet, a queue of 2000 packets at the sender, 30 s. The paper prints \
         neither the buffers' sizes nor the throughputs; it says that the modified receiver did \
         well everywhere, its throughput falling with the RTT because the ramp (a doubling) takes \
         longer, and that the standard falls off where the BDP exceeds the buffer. Modified here: \
         `heffner:twice`, the reading that Figure 1 shows. Theory: a window per round trip, or the \
         link's payload.",
        HEFFNER_4.file
    ));
    let named: Vec<_> = plot.curves.iter().filter(|c| c.origin == Origin::Sim).cloned().collect();
    figure.tables.push(Table::of_curves("RTT, ms", &named, 1));
    figure.plots.push(plot);
    Ok(figure)
}

/// The scenario at one RTT with one buffer; without a size the modified host.
fn configured(rtt: u64, buffer: Buffer, size: Option<Bytes>) -> Result<Scenario, StudyError> {
    let mut scenario = HEFFNER_4.with(&[format!("path.rtt={rtt}ms")])?;
    for transfer in &mut scenario.transfers {
        match (buffer, size) {
            (_, None) => transfer.sizing = Sizing::Heffner(Announced::Twice),
            (Buffer::Send, Some(size)) => {
                transfer.sizing = Sizing::Max;
                transfer.tcp.send_buffer = Some(Volume::Bytes(size));
            }
            (Buffer::Receive, Some(size)) => transfer.sizing = Sizing::Fixed(Volume::Bytes(size)),
            (Buffer::Both, Some(size)) => {
                transfer.sizing = Sizing::Fixed(Volume::Bytes(size));
                transfer.tcp.send_buffer = Some(Volume::Bytes(size));
            }
        }
    }
    Ok(scenario)
}

fn closed_form(size: Bytes, scenarios: &[Scenario]) -> Result<Vec<(f64, f64)>, StudyError> {
    let point = |scenario: &Scenario| {
        let path = &scenario.path;
        let header = scenario.transfers.first().map_or(Bytes::ZERO, |t| t.tcp.header);
        let share = 1.0 - header.as_f64() / path.packet.as_f64();
        let link = path.narrow().rate.scaled(share);
        let rate = window::throughput(size, path.rtt)?.min(link);
        Ok((path.rtt.as_secs_f64() * 1e3, rate.as_f64() / 1e6))
    };
    scenarios.iter().map(point).collect()
}

/// A table measured on a real path, which cannot be reproduced.
fn table_1(_stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_TABLE_1.figure(
        "Measured over a real path of 2002 between Pittsburgh and Washington whose parallel \
         routers reordered packets. The author himself puts the differences down to chance, and \
         the path is gone: the numbers stand here for completeness.",
    );
    let published = Comparisons::of("heffner", "table1")?;
    let mut plot = Plot::new(
        "",
        Axis::new("1: Pittsburgh sends, 2: Washington sends").between(0.0, 3.0),
        Axis::new("throughput, MB/s").between(0.0, 50.0),
    );
    for (group, kind) in ["standard", "modified"].into_iter().enumerate() {
        for (x, sender) in [(1.0, "Pittsburgh"), (2.0, "Washington")] {
            if let Some(rate) = published.published(&[kind, sender]) {
                plot.mark(
                    format!("published, {kind}, {sender}"),
                    group,
                    MarkPosition::Point(x, rate),
                );
            }
        }
    }
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}
