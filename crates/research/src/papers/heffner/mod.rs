//! Heffner: "High Bandwidth TCP Queuing".

mod buffers;
mod round_trip;
mod sequence;
mod slow_reader;

use super::comparison::Comparisons;
use super::figure::{Entry, Figure, Paper, Stage};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Plot};

const ENTRY_1: Entry = Paper::Heffner.entry(
    "heffner-fig1",
    "Figure 1: time-sequence graph of the modified receiver",
    sequence::figure_1,
);
const ENTRY_2: Entry = Paper::Heffner.entry(
    "heffner-fig2",
    "Figure 2: the application stops receiving, then resumes",
    sequence::figure_2,
);
const ENTRY_4: Entry = Paper::Heffner.entry(
    "heffner-fig4",
    "Figure 4: send buffer and round-trip time",
    buffers::figure_4,
);
const ENTRY_5: Entry = Paper::Heffner.entry(
    "heffner-fig5",
    "Figure 5: receive buffer and round-trip time",
    buffers::figure_5,
);
const ENTRY_SLOW: Entry = Paper::Heffner.entry(
    "heffner-slow",
    "Section 4.2.1: a reader slower than the path",
    slow_reader::figure,
);
const ENTRY_RTT: Entry = Paper::Heffner.entry(
    "heffner-rtt",
    "Sections 4.2.2 and 6.4: the receiver's round trip, and an attack on it",
    round_trip::figure,
);
const ENTRY_TABLE_1: Entry =
    Paper::Heffner.entry("heffner-table1", "Table 1: Pittsburgh and Washington", table_1);

/// The paper's figures and tables, in order. Figure 3 is a drawing of the testbed.
pub(super) const ENTRIES: &[Entry] =
    &[ENTRY_SLOW, ENTRY_RTT, ENTRY_1, ENTRY_2, ENTRY_4, ENTRY_5, ENTRY_TABLE_1];

/// A table measured on a real path, which cannot be reproduced.
fn table_1(_stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_TABLE_1.figure(
        "Measured over a real path of 2002 between Pittsburgh and Washington whose parallel \
         routers reordered packets. The author himself attributes the differences to chance, and the path no \
         longer exists; the numbers are here for completeness.",
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
