//! The text form of a path that changes.

use sweetspot_path::DirectionSpec;
use sweetspot_scenario::{Scenario, with_files};
use sweetspot_units::{Duration, Rate};

fn read(changes: &str) -> Result<Scenario, String> {
    let text = format!(
        "duration = \"10s\"\n[path]\nrate = \"40Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"9pkt\"\n{changes}"
    );
    Scenario::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn mean_rates_and_rtts_are_time_averages() {
    let changes = "[[path.change]]\nat = \"8s\"\nrate = \"20Mbit/s\"\ndelay = \"18ms\"\n\
                   [[path.change]]\nat = \"4s\"\nrate = \"10Mbit/s\"\n";
    let path = read(changes).expect("it is a scenario").path;
    // In chronological order, regardless of the file's order.
    assert!(path.changes[0].at < path.changes[1].at);
    let seconds = Duration::from_secs;
    // 2 s at 40, 4 s at 10, 2 s at 20 Mbit/s.
    assert_eq!(path.mean_rate(seconds(2), seconds(10)).as_f64(), 20e6);
    assert_eq!(path.mean_rate(seconds(9), seconds(10)).as_f64(), 20e6);
    // 8 ms each way became 18 ms for a quarter of the time.
    assert!((path.mean_rtt(seconds(2), seconds(10)) - 0.045).abs() < 1e-9);
}

#[test]
fn an_invalid_change_is_rejected_with_its_key() {
    let refused = |change: &str| read(&format!("[[path.change]]\n{change}")).expect_err("wrong");
    assert!(refused("rate = \"1Mbit/s\"").contains("path.change.0.at is missing"));
    assert!(refused("at = \"1s\"").contains("path.change.0.rate is missing"));
    assert!(refused("at = \"1s\"\nrate = \"1bit/s\"").contains("between 1kbit/s and 1Tbit/s"));
    assert!(refused("at = \"1s\"\nhop = 1\ndelay = \"1ms\"").contains("between 0 and 0"));
}

#[test]
fn the_reverse_path_inherits_unset_keys_from_the_forward_path() {
    let text = "loss = 0.01\nqueue = \"codel\"\npolicer = \"30Mbit/s\"\npolicer_burst = \"50kB\"\n\
                [path.backward]\nrate = \"2Mbit/s\"\npolicer = \"none\"";
    let path = read(text).expect("it is a scenario").path;
    let (forward, reverse) = (path.hops[0], path.backward[0]);
    assert_eq!(reverse.rate, Rate::from_mbit_per_second(2));
    assert_eq!(DirectionSpec { rate: forward.rate, policer: forward.policer, ..reverse }, forward);
    assert_eq!(reverse.policer, None);
    // Each hop of a chain has its own reverse direction, and the override applies to one hop only.
    let chain = "duration = \"1s\"\n[path]\nrtt = \"40ms\"\n[[path.hop]]\nrate = \"9Mbit/s\"\nbuffer = \"9pkt\"\n\
                 backward = { rate = \"1Mbit/s\" }\n[[path.hop]]\nrate = \"5Mbit/s\"\nbuffer = \"9pkt\"";
    let set = ["path.hop.1.backward.loss=0.5".to_owned()];
    let path = Scenario::parse_with(chain, &set).expect("it is a scenario").path;
    assert_eq!(path.bottleneck(), 1);
    assert_eq!(path.backward[0].rate, Rate::from_mbit_per_second(1));
    assert_eq!((path.backward[1].loss.get(), path.hops[1].loss.get()), (0.5, 0.0));
}

#[test]
fn a_hop_takes_its_rate_from_its_trace() {
    let text = "duration = \"1s\"\n[path]\nrtt = \"40ms\"\nbuffer = \"9pkt\"\n\
                [[path.trace]]\ncontent = \"0,8Mbit/s\\n1,4Mbit/s\\n\"";
    let path = Scenario::parse(text).expect("it is a scenario").path;
    assert_eq!(
        (path.hops[0].rate, path.backward[0].rate),
        (Rate::from_mbit_per_second(6), path.hops[0].rate)
    );
    let seconds = Duration::from_secs;
    assert_eq!(path.mean_rate(seconds(10), seconds(11)), Rate::from_mbit_per_second(8));
    assert_eq!(path.mean_rate(seconds(10), seconds(12)), Rate::from_mbit_per_second(6));
}

#[test]
fn trace_files_are_inlined_without_changing_line_numbers() {
    let text = "duration = \"1s\"\n[path]\nrtt = \"40ms\"\nbuffer = \"9pkt\"\n# both\ntrace = [{ way = \"forward\", file = \"a\\\\b.csv\" }, { way='backward', file='c' }]\n[[transfer]]\nsizing = \"x\"";
    let read = |name: &str| match name {
        "a\\b.csv" => Ok("time,\"rate\"\r\n0,8Mbit/s\r\n".to_owned()),
        "c" => Ok("1\n2\n".to_owned()),
        _ => Err(format!("{name}: no such file")),
    };
    let whole = with_files(text, read).unwrap();
    assert_eq!(whole.lines().count(), text.lines().count());
    let error = Scenario::parse(&whole).expect_err("no sizing is called x").to_string();
    assert!(error.starts_with("line 8: "), "{error}");
    let path = Scenario::parse(&whole.replace("\"x\"", "\"max\"")).expect("it is a scenario").path;
    assert_eq!(path.hops[0].rate, Rate::from_mbit_per_second(8));
    // 1504 bytes per millisecond.
    assert_eq!(path.backward[0].rate, Rate::from_bits_per_second(12_032_000));
    let unread = with_files(text, |name| Err(format!("no {name}"))).unwrap_err().to_string();
    assert_eq!(unread, "line 6: path.trace.file = \"a\\b.csv\": no a\\b.csv");
}

#[test]
fn an_invalid_trace_is_rejected_with_its_key() {
    let refused = |trace: &str| read(&format!("[[path.trace]]\n{trace}")).expect_err("wrong");
    assert!(
        refused("file = \"x\"").contains("path.trace.0.file = \"x\": no files can be read here")
    );
    assert!(refused("content = \"0,0\"").contains("mean rate is below 1 bit/s"));
    assert!(refused("way = \"up\"\ncontent = \"1\"").contains("must be one of forward, backward"));
    assert!(
        refused("hop = 1\ncontent = \"1\"").contains("path.trace.0.hop = 1: there is no such hop")
    );
    assert!(refused("").contains("path.trace.0.content is missing"));
    let twice = "content = \"1\"\n[[path.trace]]\nway = \"forward\"\ncontent = \"2\"";
    assert!(refused(twice).contains("path.trace.1.hop"), "{}", refused(twice));
}
