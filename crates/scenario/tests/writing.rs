//! Writing a scenario and parsing the text gives the same scenario.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use sweetspot_scenario::Scenario;

fn reads_back(scenario: &Scenario) {
    let text = scenario.to_string();
    let again = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(&again, scenario, "{text}");
    assert_eq!(again.to_string(), text);
}

#[test]
fn every_bundled_scenario_survives_a_round_trip() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut directories = vec![root];
    let mut read = 0;
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("it can be listed") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = fs::read_to_string(&path).expect("it can be read");
                reads_back(&Scenario::parse(&text).expect("it is a scenario"));
                read += 1;
            }
        }
    }
    assert!(read > 5, "only {read} scenarios were found");
}

#[test]
fn linux_send_buffers_can_be_unlimited() {
    let text = "duration = '1s'\n[path]\nrate = '1Mbit/s'\nrtt = '10ms'\nbuffer = '10pkt'\n\
                [tcp]\nflavour = 'linux'\nsend_buffer = 'unlimited'\n[[transfer]]";
    let scenario = Scenario::parse(text).expect("it is a scenario");
    assert_eq!(scenario.transfers[0].tcp.send_buffer, None);
    reads_back(&scenario);
}

proptest! {
    #[test]
    fn quantities_round_trip_exactly(
        rate in 1_000_u64..1_000_000_000_000, rtt in 1_000_u64..10_000_000_000, buffer in 2_000_u64..1_000_000_000,
        loss in 0.0..0.5_f64, title in "\\PC{0,20}", opportunity in 1_u32..9, shape in 1.001..9.0_f64, at in 0_u64..1_000_000_000,
        sizing in prop::sample::select(vec!["sobas", "fixed:1234567B", "drs", "linux:6.15", "heffner:twice", "bdp3"]),
        window in prop::option::of(1_u64..10_000_000), queue in prop::sample::select(vec!["red", "codel", "fq-codel"]),
    ) {
        let window = window.map_or(String::new(), |bytes| format!("window = '{bytes}B'"));
        let text = format!(
            "duration = '1.5s'\nsend_pool = '{buffer}kB'\n[path]\nrate = '{rate}bit/s'\nrtt = '{rtt}ns'\nbuffer = '{buffer}B'\nloss = {loss}\n\
             queue = '{queue}'\npolicer = '{rate}bit/s'\npolicer_burst = '9kB'\n[[path.change]]\nat = '{at}ns'\nrate = '{rate}bit/s'\nway = 'backward'\n\
             [path.backward]\npolicer = 'none'\nbuffer = '{buffer}pkt'\n\
             [[path.trace]]\nway = 'backward'\ncontent = '1,{rate}bit/s'\n[[path.trace]]\nway = 'forward'\ncontent = '''1\n{opportunity}'''\n\
             [[cross]]\nkind = 'pareto'\ncount = 3\nrate = '{rate}bit/s'\nshape = {shape}\n\
             [[cross]]\nkind = 'mice'\ncount = 30\npackets = [10, 15]\nsleep = ['1s', '2s']\n{window}\n\
             [[cross]]\nkind = 'closed-loop'\nusers = 4\nsize_mean = '80kB'\nthink_mean = '1s'\n\
             [[cross]]\nkind = 'arrivals'\nrate = '{rate}bit/s'\nsize_mean = '80kB'\ninputs = 7\ninput_rate = '3Gbit/s'\n\
             [[transfer]]\nsizing = '{sizing}'\nsize = '{buffer}B'\nflavour = 'linux'\n[[transfer]]\ncount = 2\nreader = 'rate={rate}bit/s,pause={at}ns+1ms'\nwriter = 'pareto={rate}bit/s'"
        );
        let mut scenario = Scenario::parse(&text).expect("it is a scenario");
        scenario.title = title;
        reads_back(&scenario);
    }
}
