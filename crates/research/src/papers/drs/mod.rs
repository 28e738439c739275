//! Weigle, Feng: "Dynamic Right-Sizing: a simulation study".

mod fair;
mod future;
mod kinds;
mod memory;
mod remarks;
mod single;
mod sweeps;

use super::figure::{Entry, Paper};

const ENTRY_2: Entry = Paper::Drs.entry("drs-fig2", "Figure 2: one static flow", single::figure_2);
const ENTRY_3: Entry =
    Paper::Drs.entry("drs-fig3", "Figure 3: one static flow, one dynamic", sweeps::figure_3);
const ENTRY_4: Entry =
    Paper::Drs.entry("drs-fig4", "Figure 4: the congestion window over time", single::figure_4);
const ENTRY_5: Entry =
    Paper::Drs.entry("drs-fig5", "Figure 5: ten static flows, one dynamic", sweeps::figure_5);
const ENTRY_6: Entry =
    Paper::Drs.entry("drs-fig6", "Figure 6: five static flows, five dynamic", sweeps::figure_6);
const ENTRY_7: Entry = Paper::Drs.entry(
    "drs-fig7",
    "Figure 7: five static flows, five dynamic at 1 Gbit/s",
    sweeps::figure_7,
);
const ENTRY_8: Entry =
    Paper::Drs.entry("drs-fig8", "Figure 8: ten dynamic flows", sweeps::figure_8);
const ENTRY_TABLE_1: Entry = Paper::Drs.entry(
    "drs-table1",
    "Table I: each flow's share when packets arrive together",
    single::table_1,
);

const ENTRY_REMARKS: Entry = Paper::Drs.entry(
    "drs-remarks",
    "Claims without a figure: RED, sources, Vegas, spacing",
    remarks::table,
);
const ENTRY_SOLUTIONS: Entry = Paper::Drs.entry(
    "drs-solutions",
    "Section IV-B: three solutions to bursts of losses",
    future::solutions,
);
const ENTRY_FUTURE: Entry = Paper::Drs.entry(
    "drs-future",
    "Section V: right-sizing with FACK, paced Reno, ECN and BLUE",
    future::plans,
);
const ENTRY_SPLIT: Entry =
    Paper::Drs.entry("drs-split", "Section II-A: a connection split at a firewall", future::split);
const ENTRY_MEMORY: Entry = Paper::Drs.entry(
    "drs-memory",
    "Section II-A: throughput per megabyte of socket buffer",
    memory::table,
);

/// The paper's figures and tables, in order. Figure 1 is a drawing of the topology.
pub(super) const ENTRIES: &[Entry] = &[
    ENTRY_2,
    ENTRY_3,
    ENTRY_4,
    ENTRY_5,
    ENTRY_6,
    ENTRY_7,
    ENTRY_8,
    ENTRY_TABLE_1,
    ENTRY_SOLUTIONS,
    ENTRY_REMARKS,
    ENTRY_FUTURE,
    ENTRY_SPLIT,
    ENTRY_MEMORY,
];
