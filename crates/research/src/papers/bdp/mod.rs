//! Jain, Prasad, Dovrolis: "The TCP Bandwidth-Delay Product revisited" (SOBAS).

mod beyond;
mod curves;
mod fluid;
mod table_one;
mod transfers;

use super::figure::{Entry, Paper};

/// B_t = C T_m / 2, C T_m, 2 C T_m, packets.
const BUFFERS: [u64; 3] = [313, 625, 1250];

const ENTRY_1: Entry = Paper::Bdp
    .entry("bdp-fig1", "Figure 1: a gigabyte with two socket buffer sizes", transfers::figure_1)
    .also(&["fig1"]);
const ENTRY_3: Entry = Paper::Bdp
    .entry("bdp-fig3", "Figure 3: R(S) against rate-controlled UDP", curves::figure_3)
    .also(&["fig3"]);
const ENTRY_4: Entry = Paper::Bdp
    .entry("bdp-fig4", "Figure 4: R(S) against window-limited elephants", curves::figure_4)
    .also(&["fig4"]);
const ENTRY_5: Entry =
    Paper::Bdp.entry("bdp-fig5", "Figure 5: R(S) against mice", curves::figure_5).also(&["fig5"]);
const ENTRY_6: Entry = Paper::Bdp
    .entry("bdp-fig6", "Figure 6: R(S) against elephants that congest the path", curves::figure_6)
    .also(&["fig6"]);
const ENTRY_7: Entry = Paper::Bdp
    .entry("bdp-fig7", "Figure 7: R(S) against mice that congest the path", curves::figure_7)
    .also(&["fig7"]);
const ENTRY_8: Entry = Paper::Bdp
    .entry("bdp-fig8", "Figure 8: receive throughput with SOBAS over time", transfers::figure_8)
    .also(&["fig8"]);
const ENTRY_10: Entry = Paper::Bdp
    .entry(
        "bdp-fig10",
        "Figure 10: 800 MB with SOBAS and with two static sizes",
        transfers::figure_10,
    )
    .also(&["fig10"]);
const ENTRY_TABLE_1: Entry = Paper::Bdp
    .entry(
        "bdp-table1",
        "Table I: six static schemes, SOBAS, and the Maximum Feasible Throughput",
        table_one::table,
    )
    .also(&["table1"]);

const ENTRY_BEYOND: Entry = Paper::Bdp.entry(
    "bdp-beyond",
    "Section VIII: what the paper left to future work",
    beyond::table,
);

/// The paper's figures and tables, in order. Figures 2 and 9 are drawings of topologies without
/// numbers; the scenario files contain them.
pub(super) const ENTRIES: &[Entry] = &[
    ENTRY_1,
    ENTRY_3,
    ENTRY_4,
    ENTRY_5,
    ENTRY_6,
    ENTRY_7,
    ENTRY_8,
    ENTRY_10,
    ENTRY_TABLE_1,
    ENTRY_BEYOND,
];
