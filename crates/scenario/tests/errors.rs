//! The message for every mistake in a scenario gives its key, its line, and the allowed values.

use proptest::prelude::*;
use sweetspot_scenario::{Scenario, TrafficKind};
use sweetspot_units::{Duration, Volume};

const VALID: &str = r#"title = "t"
seed = 7
warmup = "65s"
duration = "150s"
[path]
rate = "50Mbit/s"
rtt = "100ms"
buffer = "625pkt"
[tcp]
initial_window = "1pkt"
[[cross]]
kind = "elephants"
count = 20
window = "22pkt"
rtt = ["80ms", "120ms"]
[[transfer]]
start = "15s"
sizing = "fixed:450pkt"
"#;

fn message(from: &str, to: &str) -> String {
    let text = VALID.replacen(from, to, 1);
    assert_ne!(text, VALID, "nothing was replaced");
    Scenario::parse(&text).expect_err("the scenario is wrong").to_string()
}

#[test]
fn a_scenario_parses_to_the_values_it_states() {
    let scenario = Scenario::parse(VALID).unwrap();
    assert_eq!((scenario.title.as_str(), scenario.seed), ("t", 7));
    assert_eq!(scenario.path.narrow().buffer, Volume::Packets(625));
    assert_eq!(scenario.cross[0].rtt.0, Duration::from_millis(80));
    let window = Some(Volume::Packets(22));
    assert_eq!(scenario.cross[0].kind, TrafficKind::Elephants { count: 20, window });
    assert_eq!(scenario.transfers[0].tcp.initial_window, 1);
}

#[test]
fn an_unknown_key_error_names_its_line_and_the_known_keys() {
    let message = message("rtt = \"100ms\"", "rrt = \"100ms\"");
    // rtt is then missing, which is reported first; the path's table begins on line 5.
    assert_eq!(
        message,
        "line 5: path.rtt is missing (did you mean rrt in line 7?); write it like rtt = \"100ms\""
    );
    let message = self::message("count = 20", "cuont = 20");
    assert!(
        message.starts_with("line 11: cross.0.count is missing (did you mean cuont in line 13?)")
    );
    let message = self::message("rtt = \"100ms\"\n", "");
    assert!(message.starts_with("line 5: path.rtt is missing; write it like"), "rate is no slip");
    let message = self::message("buffer =", "colour = \"red\"\nbuffer =");
    assert!(message.starts_with("line 8: unknown key path.colour; path knows rtt, packet"));
    let message = self::message("window = \"22pkt\"", "windw = \"22pkt\"");
    assert!(message.starts_with(
        "line 14: unknown key cross.0.windw (did you mean cross.0.window?); cross.0 knows kind"
    ));
}

/// The duration is missing as well, but the other fault has a line.
#[test]
fn empty_and_unknown_keys_are_reported_before_missing_ones() {
    let message = |text: &str| Scenario::parse(text).unwrap_err().to_string();
    let empty = "line 2: foo has no value; write one after =, or remove the line";
    for text in ["seed = 1\nfoo = \n", "seed = 1\nfoo =", "seed = 1\nfoo =\n[path]\n"] {
        assert_eq!(message(text), empty);
    }
    let unknown = message("foo = 3\n[path]\nrate = \"1Mbit/s\"");
    assert!(
        unknown.starts_with("line 1: unknown key foo; a scenario knows title, seed"),
        "{unknown}"
    );
    assert!(unknown.ends_with("transfer, send_pool"), "{unknown}");
}

/// A key of no table is in no line, and must stand above the first table.
#[test]
fn a_missing_top_level_key_is_named_without_a_line() {
    let missing = |text: &str| Scenario::parse(text).unwrap_err().to_string();
    let duration = "the scenario's duration is missing; write it like duration = \"150s\", above its first table";
    for text in ["", "[path]\nrate = \"1Mbit/s\""] {
        assert_eq!(missing(text), duration);
    }
    let slip = missing("seed = 2\ndurationn = \"1s\"");
    assert!(slip.contains("duration is missing (did you mean durationn in line 2?)"), "{slip}");
    assert_eq!(
        missing("duration = \"1s\""),
        "the scenario's table [path] is missing; write it like [path] with rate, rtt and buffer"
    );
}

#[test]
fn the_error_for_an_impossible_value_names_what_is_allowed() {
    for (from, to, expected) in [
        (
            "\"50Mbit/s\"",
            "\"50 horses\"",
            "line 6: path.rate = \"50 horses\": \"50 horses\" is not a rate: unknown unit \"horses\"; \
             write it like 20Mbit/s, 1.5Gbit/s, 12.5MB/s",
        ),
        (
            "\"elephants\"",
            "\"whales\"",
            "line 12: cross.0.kind = \"whales\": it must be one of pareto, poisson, elephants, \
             mice, closed-loop, arrivals",
        ),
        (
            "count = 20",
            "count = 0",
            "line 13: cross.0.count = 0: it must be a whole number between 1 and 10000000",
        ),
        (
            "[\"80ms\", \"120ms\"]",
            "[\"8ms\", \"120ms\"]",
            "line 15: cross.0.rtt = [\"8ms\", \"120ms\"]: it must be 40 ms or more, the \
             propagation of the hops it crosses",
        ),
        (
            "\"625pkt\"",
            "\"0pkt\"",
            "line 8: path.buffer = \"0pkt\": it is below one packet, so nothing would pass; use 1 kB or more",
        ),
        (
            "\"150s\"",
            "\"0s\"",
            "line 4: duration = \"0s\": nothing would be measured; use more than 0 s",
        ),
        (
            "\"fixed:450pkt\"",
            "\"fixed:0pkt\"",
            "line 18: transfer.0.sizing = \"fixed:0pkt\": sizing fixed: a window of zero moves \
             nothing; give at least one packet",
        ),
    ] {
        assert_eq!(message(from, to), expected);
    }
}

#[test]
fn invalid_toml_is_an_error_with_a_line_number() {
    assert!(message("seed = 7", "seed = = 7").starts_with("line 2: "));
}

#[test]
fn an_override_applies_where_its_path_points() {
    let set = |assignment: &str| Scenario::parse_with(VALID, &[assignment.to_owned()]);
    assert_eq!(set("path.buffer=100pkt").unwrap().path.narrow().buffer, Volume::Packets(100));
    assert_eq!(set("transfer.0.sizing=max").unwrap().transfers[0].sizing.to_string(), "max");
    // Without a number, all entries are set.
    assert_eq!(set("transfer.sizing=max").unwrap().transfers[0].sizing.to_string(), "max");
    assert!(set("tcp.delayed_ack=true").unwrap().cross[0].tcp.delayed_ack);
    assert_eq!(
        set("path.bufer=100pkt").unwrap_err().to_string().split(';').next(),
        Some("unknown key path.bufer (did you mean path.buffer?)")
    );
    let refused = |assignment: &str| set(assignment).unwrap_err().to_string();
    assert_eq!(
        refused("transfer.1.sizing=max"),
        "transfer.1.sizing: there is no such entry; the scenario has 1 of them, numbered from 0"
    );
    assert!(refused("nonsense").contains("write it like path.buffer=625pkt"));
}

#[test]
fn a_misspelt_name_gets_a_did_you_mean_hint() {
    let refused = |assignment: &str| {
        Scenario::parse_with(VALID, &[assignment.to_owned()]).unwrap_err().to_string()
    };
    assert!(refused("transfer.sizing=sobsa").ends_with("(did you mean sobas?)"));
    assert!(refused("transfer.congestion=cubik").ends_with("(did you mean cubic?)"));
    assert!(refused("cross.0.kind=elephant").ends_with("(did you mean elephants?)"));
    assert!(refused("path.queue=drptail").ends_with("(did you mean drop-tail?)"));
    // The name is valid, but the value is not.
    assert!(!refused("transfer.sizing=fixed:many").contains("did you mean"));
}

proptest! {
    #[test]
    fn parsing_never_panics(text in ".{0,200}", at in 0usize..300) {
        let _ = Scenario::parse(&text);
        let mut broken = VALID.to_owned();
        if broken.is_char_boundary(at.min(broken.len())) {
            broken.insert_str(at.min(VALID.len()), &text);
        }
        let _ = Scenario::parse(&broken);
    }
}

#[test]
fn input_links_need_a_rate_and_tcp() {
    let with = |cross: &str| {
        let text = format!(
            "duration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"60ms\"\nbuffer = \"50pkt\"\n\
             [[cross]]\n{cross}"
        );
        sweetspot_scenario::Scenario::parse(&text).map_err(|error| error.to_string())
    };
    let elephants = "kind = \"elephants\"\ncount = 2\n";
    let missing = with(&format!("{elephants}inputs = 2")).unwrap_err();
    assert!(missing.contains("cross.0.input_rate is missing"), "{missing}");
    let missing = with(&format!("{elephants}input_rate = \"1Mbit/s\"")).unwrap_err();
    assert!(missing.contains("cross.0.inputs is missing"), "{missing}");
    let few = format!("{elephants}inputs = 30\ninput_rate = \"1Mbit/s\"\nservers = 20");
    assert!(with(&few).unwrap_err().contains("between 30 and"), "{few}");
    let udp = "kind = \"poisson\"\ncount = 2\nrate = \"1Mbit/s\"\n";
    let udp = with(&format!("{udp}inputs = 2\ninput_rate = \"1Mbit/s\"")).unwrap_err();
    assert!(udp.contains("only TCP"), "{udp}");
    let some = with(&format!("{elephants}inputs = 30\ninput_rate = \"1Mbit/s\"")).unwrap();
    assert_eq!(some.cross[0].inputs.map(|inputs| inputs.servers), Some(30));
    let few = with(&format!("{elephants}inputs = 2\ninput_rate = \"1Mbit/s\"")).unwrap();
    assert_eq!(few.cross[0].inputs.map(|inputs| inputs.servers), Some(20));
}

#[test]
fn a_duplicate_key_is_named() {
    // The error is in the second one: GOOD has seed in line 2, buffer in line 8.
    let twice = message("seed = 7\n", "seed = 7\nseed = 8\n");
    assert_eq!(twice, "line 3: seed is given twice; keep one");
    let twice = message("buffer = \"625pkt\"\n", "buffer = \"625pkt\"\nrate = \"1Mbit/s\"\n");
    assert_eq!(twice, "line 9: rate is given twice; keep one");
}

#[test]
fn a_hop_key_outside_a_hop_gets_a_hint_where_it_belongs() {
    // GOOD: path.rate is in line 6.
    let hop = "[[path.hop]]\nrate = \"1Mbit/s\"\nbuffer = \"9pkt\"\n[tcp]";
    let message = message("[tcp]", hop);
    assert!(message.ends_with("it belongs in each [[path.hop]]"), "{message}");
    assert!(message.starts_with("line 6: path.rate"), "{message}");
}

#[test]
fn sizes_that_move_no_data_are_rejected_in_every_table() {
    // GOOD: [tcp] is in line 9, a window in line 14, a transfer's start in line 17.
    for (from, to, expected) in [
        ("initial_window = \"1pkt\"", "header = \"1000B\"", "line 10: tcp.header = \"1000B\""),
        ("count = 20", "count = 20\nheader = \"1kB\"", "line 14: cross.0.header = \"1kB\""),
        ("start = \"15s\"", "header = \"2kB\"", "line 17: transfer.0.header = \"2kB\""),
        ("\"22pkt\"", "\"0pkt\"", "line 14: cross.0.window = \"0pkt\""),
        ("initial_window = \"1pkt\"", "send_buffer = \"0B\"", "line 10: tcp.send_buffer = \"0B\""),
        ("start = \"15s\"", "max_window = \"0B\"", "line 17: transfer.0.max_window = \"0B\""),
        ("start = \"15s\"", "size = \"0B\"", "line 17: transfer.0.size = \"0B\""),
    ] {
        let message = message(from, to);
        assert!(message.starts_with(expected), "{message}");
    }
    let users = "kind = \"closed-loop\"\nusers = 2\nthink_mean = \"1s\"\nsize_mean = \"0B\"";
    let message = message("kind = \"elephants\"\ncount = 20\nwindow = \"22pkt\"", users);
    assert_eq!(message, "line 15: cross.0.size_mean = \"0B\": it must be above zero");
}

#[test]
fn the_example_for_a_missing_number_uses_its_key() {
    let message = message("kind = \"elephants\"", "kind = \"closed-loop\"");
    assert!(message.starts_with("line 11: cross.0.users is missing"), "{message}");
    assert!(message.ends_with("; write it like users = 20"), "{message}");
}

#[test]
fn the_error_for_an_invalid_number_shows_valid_examples() {
    assert_eq!(
        message("\"625pkt\"", "\"625pkt\"\nloss = 1.5"),
        "line 9: path.loss = 1.5: \"1.5\" is not a probability: it must be between 0 and 1; \
         write it like 0, 1e-5, 0.02, 2%, in quotes"
    );
    let set = |assignment: &str| Scenario::parse_with(VALID, &[assignment.to_owned()]);
    assert_eq!(
        set("warmup=5").unwrap_err().to_string(),
        "warmup = 5: \"5\" is not a duration: it has no unit; write it like 250us, 37ms, 1.5s, 2min"
    );
}

#[test]
fn integers_are_parsed_exactly_or_rejected() {
    let seed = |text: &str| Scenario::parse(&VALID.replace("seed = 7", text)).map(|read| read.seed);
    assert_eq!(seed("seed = 0x1F"), Ok(31));
    assert_eq!(seed("seed = 0b1_01"), Ok(5));
    // 2^53 - 1 is the last integer up to which floating-point numbers represent every integer.
    assert_eq!(seed("seed = 9007199254740991"), Ok((1 << 53) - 1));
    for text in ["seed = 9007199254740992", "seed = 9007199254740993", "seed = -1"] {
        assert!(seed(text).unwrap_err().to_string().ends_with("between 0 and 9007199254740991"));
    }
}

#[test]
fn overrides_of_nonexistent_entries_are_rejected_at_any_depth() {
    let refused = |assignment: &str| {
        Scenario::parse_with(VALID, &[assignment.to_owned()]).unwrap_err().to_string()
    };
    assert_eq!(
        refused("path.hop.0.rate=1Mbit/s"),
        "path.hop.0.rate: there is no such entry; the scenario has 0 of them, numbered from 0"
    );
    assert!(refused(&format!("{}a=1", "a.".repeat(1_000_000))).contains("write it like"));
}

#[test]
fn congestion_fixed_defaults_to_false_and_is_rejected_for_cross_traffic() {
    let fixed = |text: &str| Scenario::parse(text).unwrap().transfers[0].congestion_fixed;
    assert!(!fixed(VALID));
    for value in [true, false] {
        let key = format!("start = \"15s\"\ncongestion_fixed = {value}");
        assert_eq!(fixed(&VALID.replace("start = \"15s\"", &key)), value);
    }
    let set = ["transfer.congestion_fixed=true".to_owned()];
    assert!(Scenario::parse_with(VALID, &set).unwrap().transfers[0].congestion_fixed);
    // A transfer's start is in line 17 of GOOD.
    assert_eq!(
        message("start = \"15s\"", "congestion_fixed = \"yes\""),
        "line 17: transfer.0.congestion_fixed = \"yes\": it must be true or false"
    );
    // Cross traffic always keeps its own congestion control.
    let cross = message("count = 20", "count = 20\ncongestion_fixed = true");
    assert!(cross.starts_with("line 14: unknown key cross.0.congestion_fixed"), "{cross}");
}

#[test]
fn follows_needs_a_previous_transfer_with_a_size() {
    let with = |first: &str, second: &str| {
        let tail = format!("\nsize = \"1MB\"\n{first}\n[[transfer]]\nfollows = true\n{second}");
        Scenario::parse(&VALID.replace("start = \"15s\"", &format!("start = \"15s\"{tail}")))
    };
    let transfers = with("", "start = \"1s\"").unwrap().transfers;
    assert_eq!(transfers.iter().map(|t| t.follows).collect::<Vec<_>>(), [false, true]);
    let refused = |reason: &str| reason.contains("give the previous one a size");
    let first = message("start = \"15s\"", "follows = true");
    assert!(refused(&first), "{first}");
    // Of several equal transfers, each follows the previous one.
    assert!(with("", "size = \"1MB\"\ncount = 3").is_ok());
    assert!(refused(&with("", "count = 3").unwrap_err().to_string()));
    let slow = with("", "reader = \"rate=1Mbit/s\"").unwrap_err().to_string();
    assert!(slow.contains("leave out reader and writer"), "{slow}");
}
