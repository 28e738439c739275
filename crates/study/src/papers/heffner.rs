//! Heffner: "High Bandwidth TCP Queuing".

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_sizing::{Announced, Sizing};
use sweetspot_theory::path::window;
use sweetspot_units::{Bytes, Duration, Volume};

use super::catalogue::{Entry, Figure, Paper, Stage};
use super::comparison::Comparisons;
use super::scenarios::{HEFFNER_1, HEFFNER_4};
use super::time::TransferSeries;
use crate::StudyError;
use crate::play::{goodput, play_all};
use crate::plot::{Axis, MarkPosition, Origin, Plot, Table};

const fn entry(
    name: &'static str,
    title: &'static str,
    play: fn(&Stage<'_>) -> Result<Figure, StudyError>,
) -> Entry {
    Entry { name, aliases: &[], paper: Paper::Heffner, title, play }
}

const ENTRY_1: Entry =
    entry("heffner-fig1", "Figure 1: time-sequence graph of the modified receiver", figure_1);
const ENTRY_4: Entry = entry("heffner-fig4", "Figure 4: send buffer and round-trip time", figure_4);
const ENTRY_5: Entry =
    entry("heffner-fig5", "Figure 5: receive buffer and round-trip time", figure_5);
const ENTRY_TABLE_1: Entry = entry("heffner-table1", "Table 1: Pittsburgh and Washington", table_1);

/// In the order of the paper. Figure 2 needs an application that stops reading, which no
/// scenario describes; Figure 3 is a drawing of the testbed.
pub(super) const ENTRIES: &[Entry] = &[ENTRY_1, ENTRY_4, ENTRY_5, ENTRY_TABLE_1];

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
    let engines = [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)];
    for (origin, engine) in engines {
        let Some(engine) = engine else { continue };
        let (outcome, watch) =
            TransferSeries::run(engine, &scenario, 0, Duration::from_millis(10))?;
        let edge = |s: &sweetspot_scenario::Sample| {
            (s.at_s, (s.acked_bytes + s.window_bytes) as f64 / 1e6)
        };
        let acked = |s: &sweetspot_scenario::Sample| (s.at_s, s.acked_bytes as f64 / 1e6);
        plot.curve("announced edge", origin, 0, watch.samples.iter().map(edge).collect());
        plot.curve("acknowledged", origin, 1, watch.samples.iter().map(acked).collect());
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

/// Which of the two buffers is varied.
#[derive(Clone, Copy)]
enum Buffer {
    Send,
    Receive,
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
    };
    let cases = [
        (format!("{side} buffer 64 kB"), Some(DEFAULT)),
        (format!("{side} buffer 1 MB"), Some(TUNED)),
        ("modified".to_owned(), None),
    ];
    for (group, (name, size)) in cases.iter().enumerate() {
        let scenarios: Vec<Scenario> =
            RTTS.iter().map(|rtt| configured(*rtt, buffer, *size)).collect::<Result<_, _>>()?;
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
