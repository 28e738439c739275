//! The laws of the contract, for any behaviour of sender, path and kernel: proptest drives the fuzz
//! target's entry point.

#[path = "../../../fuzz/driver.rs"]
mod entry;

use entry::{MEANS, SIZINGS, WINDOWS, simulate};
use proptest::prelude::*;
use sweetspot_sizing::InputSource;

/// A script, and the receiver that it drives.
fn script() -> impl Strategy<Value = (InputSource, u64, Vec<u8>)> {
    let means = prop::sample::select(&MEANS[..]);
    let window = prop::sample::select(&WINDOWS[..]);
    (means, window, prop::collection::vec(any::<u8>(), 0..400))
}

macro_rules! keeps_its_contract {
    ($($law:ident: $at:expr,)*) => {
        proptest! {
            $(
                #[test]
                fn $law((means, window, script) in script()) {
                    let sizing = SIZINGS[$at];
                    let done = simulate(sizing, means, window, &script);
                    prop_assert_eq!(done, simulate(sizing, means, window, &script), "{}", sizing);
                }
            )*
        }
    };
}

keeps_its_contract! {
    kernel_keeps_its_contract: 0,
    fixed_keeps_its_contract: 1,
    max_keeps_its_contract: 2,
    drs_keeps_its_contract: 3,
    heffner_keeps_its_contract: 4,
    heffner_twice_keeps_its_contract: 5,
    old_linux_keeps_its_contract: 6,
    linux_keeps_its_contract: 7,
    sobas_keeps_its_contract: 8,
    sobas_paper_keeps_its_contract: 9,
    sobas_live_keeps_its_contract: 10,
    rledbat_keeps_its_contract: 11,
    upload_keeps_its_contract: 12,
    resumed_upload_keeps_its_contract: 13,
    heffner_by_reads_keeps_its_contract: 14,
    heffner_without_timestamps_keeps_its_contract: 15,
    drs_with_its_heuristic_keeps_its_contract: 16,
    wad_keeps_its_contract: 17,
    nlanr_keeps_its_contract: 18,
    background_keeps_its_contract: 19,
}

#[test]
fn kernel_requests_nothing() {
    // A connection with data, elapsed time and an end.
    let script = [1, 20, 200, 0, 0, 0, 20, 100, 7];
    for means in MEANS {
        assert_eq!(simulate("kernel", means, 6_000_000, &script), []);
    }
}
