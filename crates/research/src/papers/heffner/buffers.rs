//! Figures 4 and 5: throughput against RTT, with buffers that count kernel memory.

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_sizing::{HeffnerVariant, Sizing};
use sweetspot_theory::host::advertised_window::Era;
use sweetspot_theory::path::window;
use sweetspot_units::{Bytes, Duration, Rate, Volume};

use super::super::comparison::Comparisons;
use super::super::figure::{Entry, Figure, Stage, curve_table};
use super::super::scenarios::HEFFNER_4;
use super::{ENTRY_4, ENTRY_5};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, Origin, Plot, Table};
use sweetspot_experiment::run::{goodput, run_all};

/// The memory of a socket buffer. The paper prints no sizes: the first is Linux 2.4's default limit of a send buffer
/// (tcp_wmem\[2\]), the second is enough for 80 ms.
const SMALL: Bytes = Bytes::new(128 << 10);
const LARGE: Bytes = Bytes::new(1 << 20);

/// Kernel memory of a segment in Linux 2.4's send buffer beyond its payload (`tcp_new_space`: MAX_TCP_HEADER 160, 16, and 160
/// for `struct sk_buff` on a 32-bit machine).
const SEGMENT_OVERHEAD: Bytes = Bytes::new(336);

/// In Linux 2.4, three quarters of a receive buffer are usable as window.
const ERA: Era = Era::ThreeQuarters;

/// RTTs, ms: "from < 1 ms to 200 ms".
const RTTS: [u64; 18] = [1, 2, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 100, 125, 150, 200];

/// A buffer counts as the limit if it reduces throughput by a tenth.
const LIMITED: f64 = 0.9;

/// The buffer that is varied.
#[derive(Clone, Copy, PartialEq)]
enum Buffer {
    Send,
    Receive,
}

impl Buffer {
    fn name(self) -> &'static str {
        match self {
            Buffer::Send => "send",
            Buffer::Receive => "receive",
        }
    }

    fn remark(self) -> &'static str {
        match self {
            Buffer::Send => "",
            Buffer::Receive => {
                " The overheads and the application that writes by thirds make a ratio of 1.4, not two. The text also names \
                 congestion control, whose recoveries need a second window in the send buffer; these transfers lose nothing."
            }
        }
    }
}

pub(super) fn figure_4(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    against_rtt(stage, &ENTRY_4, Buffer::Send)
}

pub(super) fn figure_5(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = against_rtt(stage, &ENTRY_5, Buffer::Receive)?;
    let mut published = Comparisons::of("heffner", "fig5")?;
    let mut table = Table::new(
        "The BDP at which a buffer costs a tenth of the throughput (simulated)",
        &["memory of the buffer, kB", "send buffer: BDP, kB", "receive buffer: BDP, kB", "ratio"],
    );
    if let Some(engine) = stage.sim {
        for size in [SMALL, LARGE] {
            let knee = |buffer| knee(stage, engine, buffer, size);
            if let (Some(send), Some(receive)) = (knee(Buffer::Send)?, knee(Buffer::Receive)?) {
                let row = [size.as_f64() / 1e3, send / 1e3, receive / 1e3];
                let mut row: Vec<String> = row.iter().map(|kb| format!("{kb:.0}")).collect();
                row.push(format!("{:.2}", receive / send));
                table.rows.push(row);
                if size == LARGE {
                    published.put(Origin::Sim, &["similarly sized"], receive / send);
                }
            }
        }
    }
    figure.tables.push(table);
    figure.comparisons = published.finish();
    Ok(figure)
}

fn against_rtt(stage: &Stage<'_>, entry: &Entry, buffer: Buffer) -> Result<Figure, StudyError> {
    let mut plot = Plot::new(
        "",
        Axis::new("round-trip time, ms").between(0.0, 200.0),
        Axis::new("throughput over 30 s, Mbit/s").between(0.0, 100.0),
    );
    let cases = [
        (format!("{} buffer 128 KiB", buffer.name()), Some(SMALL)),
        (format!("{} buffer 1 MiB", buffer.name()), Some(LARGE)),
        ("modified".to_owned(), None),
    ];
    for (group, (name, size)) in cases.iter().enumerate() {
        if let (true, Some(size)) = (stage.theory, size) {
            plot.curve(name, Origin::Theory, group, closed_form(buffer, *size)?);
        }
        for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
            let Some(engine) = engine else { continue };
            plot.curve(name, origin, group, curve(stage, (origin, engine), buffer, *size)?);
        }
    }
    let mut figure = entry.figure(format!(
        "`{}`: 100 Mbit/s Ethernet, a queue of 2000 packets at the sender, 30 s. The paper prints neither the buffers' sizes nor \
         the throughputs; it says that the modified receiver did well everywhere, its throughput falling with the RTT because \
         the ramp (a doubling) takes longer, that the standard falls off where the BDP exceeds the buffer, and that send and \
         receive buffers of similar size do so at BDPs about a factor of two apart. A buffer here is the kernel's memory, as in \
         Linux 2.4: three quarters of a receive buffer are window; a segment of 1448 bytes takes 1784 of a send buffer, and an \
         application that filled it sleeps until a third is free. Modified: `heffner:twice`, the reading that Figure 1 shows, \
         with the Alpha's clock of 1024 ticks a second, on which the sink ran. Theory: a window per round trip, or the link's \
         payload; of a send buffer two thirds.{}",
        HEFFNER_4.file,
        buffer.remark()
    ));
    let named: Vec<_> = plot.curves.iter().filter(|c| c.origin == Origin::Sim).cloned().collect();
    figure.tables.push(curve_table("RTT, ms", &named, 1));
    figure.plots.push(plot);
    Ok(figure)
}

/// Throughput in Mbit/s as a function of RTT.
fn curve(
    stage: &Stage<'_>,
    (origin, engine): (Origin, &(dyn Engine + Sync)),
    buffer: Buffer,
    size: Option<Bytes>,
) -> Result<Vec<(f64, f64)>, StudyError> {
    let scenarios: Vec<Scenario> =
        RTTS.iter().map(|rtt| configured(*rtt, buffer, size)).collect::<Result<_, _>>()?;
    let outcomes = run_all(engine, &scenarios, stage.workers_of(origin))?;
    Ok(RTTS.iter().zip(&outcomes).map(|(rtt, o)| (*rtt as f64, goodput(o) / 1e6)).collect())
}

/// The BDP at which this buffer becomes the limit, bytes, interpolated between two RTTs.
fn knee(
    stage: &Stage<'_>,
    engine: &(dyn Engine + Sync),
    buffer: Buffer,
    size: Bytes,
) -> Result<Option<f64>, StudyError> {
    let limited = curve(stage, (Origin::Sim, engine), buffer, Some(size))?;
    let open = curve(stage, (Origin::Sim, engine), buffer, None)?;
    let share = |i: usize| limited[i].1 / open[i].1;
    let Some(after) = (1..RTTS.len()).find(|i| share(*i) < LIMITED) else { return Ok(None) };
    let (above, below) = (share(after - 1), share(after));
    let step = limited[after].0 - limited[after - 1].0;
    let rtt = limited[after - 1].0 + step * (above - LIMITED) / (above - below);
    let link = link_payload(&configured(1, buffer, None)?);
    Ok(Some((link * Duration::from_secs_f64(rtt / 1e3)).as_f64()))
}

/// The scenario with one RTT and one buffer; without a size, the modified host.
fn configured(rtt: u64, buffer: Buffer, size: Option<Bytes>) -> Result<Scenario, StudyError> {
    let mut scenario = HEFFNER_4.with(&[format!("path.rtt={rtt}ms")])?;
    for transfer in &mut scenario.transfers {
        match (buffer, size) {
            (_, None) => transfer.sizing = Sizing::Heffner(HeffnerVariant::Twice),
            (Buffer::Send, Some(size)) => {
                transfer.sizing = Sizing::Max;
                transfer.tcp.send_buffer = Some(Volume::Bytes(size));
                transfer.tcp.segment_overhead = SEGMENT_OVERHEAD;
            }
            (Buffer::Receive, Some(size)) => {
                transfer.sizing = Sizing::Fixed(Volume::Bytes(ERA.window(size, None)));
            }
        }
    }
    Ok(scenario)
}

/// The link's rate minus framing and headers.
fn link_payload(scenario: &Scenario) -> Rate {
    let header = scenario.transfers.first().map_or(Bytes::ZERO, |t| t.tcp.header);
    let share = 1.0 - header.as_f64() / scenario.path.packet.as_f64();
    scenario.path.narrow().rate.scaled(share)
}

fn closed_form(buffer: Buffer, size: Bytes) -> Result<Vec<(f64, f64)>, StudyError> {
    let point = |rtt: &u64| {
        let scenario = configured(*rtt, buffer, Some(size))?;
        let link = link_payload(&scenario);
        let round_trip = scenario.path.rtt;
        let rate = match buffer {
            Buffer::Receive => window::throughput(ERA.window(size, None), round_trip)?,
            Buffer::Send => {
                let header = scenario.transfers.first().map_or(Bytes::ZERO, |t| t.tcp.header);
                let payload = scenario.path.packet.saturating_sub(header);
                let window = payload * (size.get() / (payload + SEGMENT_OVERHEAD).get());
                // The sender writes at least a third of the buffer at a time: two such writes per RTT, because the third lacks
                // a packet.
                window::throughput(window.scaled(2.0 / 3.0), round_trip)?
            }
        };
        Ok((*rtt as f64, rate.min(link).as_f64() / 1e6))
    };
    RTTS.iter().map(point).collect()
}
