//! Laws of the benchmark's document.

#[path = "../../report/tests/synthetic/mod.rs"]
mod synthetic;

use sweetspot_research::lab::{Cell, LabBench, markdown};
use sweetspot_research::notes;

fn bench() -> LabBench {
    let cell = |name: &str| Cell {
        name: name.into(),
        outcome: synthetic::outcome(),
        reference: None,
        not_measured: Vec::new(),
    };
    LabBench {
        command: "make bench-lab".into(),
        build: "sweetspot 0.1.0, build 1234abcd".into(),
        demo: Some(cell("demo")),
        matrix: vec![cell("100Mbit/s-100ms-0.1BDP")],
        matrix_size: 12,
        self_test: Some("highest truthful rate 1.4 Gbit/s".into()),
        notes: notes::section("Why: because."),
    }
}

#[test]
fn a_missed_target_is_reported_with_its_number() {
    let mut bench = bench();
    bench.matrix[0].outcome.variants[4].share_of_capacity = Some(0.871);
    let text = markdown(&bench);
    let line = "- 100Mbit/s-100ms-0.1BDP: sobas >= 90 % of the payload capacity: **87.1 %**";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_failed_transfer_is_reported_as_not_measured() {
    let mut bench = bench();
    bench.matrix[0].outcome.variants[4] = sweetspot_report::VariantOutcome::new("sobas", "cubic");
    assert!(markdown(&bench).contains("payload capacity: **not measured**"));
}

#[test]
fn unmeasured_cells_are_counted_and_listed() {
    let mut bench = bench();
    bench.matrix[0].not_measured.push("kernel+bbr".into());
    let text = markdown(&bench);
    assert!(text.contains("1 of 12 cells of the matrix were measured"));
    assert!(text.contains("Not measured: 100Mbit/s-100ms-0.1BDP: kernel+bbr"));
}

#[test]
fn handwritten_notes_survive() {
    let text = markdown(&bench());
    assert_eq!(notes::kept(&text), bench().notes);
}

#[test]
fn an_untrusted_run_is_marked_everywhere() {
    let text = markdown(&bench());
    // The demonstration's table, the matrix, a note that CPU times are missing here, and the
    // certificates.
    assert!(text.contains("| bdp+cubic (!) |"));
    assert!(text.contains("% (0.045 %) (!)"));
    assert!(text.contains("| demo | bdp+cubic | **do not trust**"));
}
