//! An option has an effect, or it is a usage error.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

const SWEETSPOT: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Command lines, each with its option that would have no effect.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("serve --dir . --state .", "--state"),
    ("serve --dir . --quiet --verbose", "--verbose"),
    ("send x --listen 127.0.0.1:0 --code host/1-crisp-lemon-orbit", "--listen"),
    ("send x --advertise host --ticket-file -", "--advertise"),
    ("send x sweetspot1:abc --spoken-code", "--spoken-code"),
    ("send x --code host/1-crisp-lemon-orbit --identity key", "--identity"),
    ("receive --code host/1-crisp-lemon-orbit --identity key", "--identity"),
    ("receive sweetspot1:abc --verbose --quiet", "--verbose"),
    ("copy x y --port 9000", "--port"),
    ("copy x y --ssh ssh", "--ssh"),
    ("copy x y --via ssh", "--via"),
    ("copy x y -J gate", "--jump"),
    ("copy x y --remote-program sweetspot", "--remote-program"),
    ("copy x host: --via reverse --port 9000", "--port"),
    ("copy x host: --via ssh --streams 2", "--streams"),
    ("copy x host: --via ssh --sizing max", "--sizing"),
    ("emulate --self-test --trace-up x", "--trace-up"),
    ("emulate --list --trace-down x", "--trace-down"),
    ("emulate --self-test --certificate x", "--certificate"),
    ("measure sweetspot1:abc --series x --json", "--series"),
    ("measure host:443 --gentle", "--gentle"),
    ("measure host:443 --budget 1MB", "--budget"),
    ("measure host:443 --quick", "--quick"),
    ("measure host:443 --scenario path.toml", "--scenario"),
    ("top --rows 5", "--rows"),
];

#[test]
fn an_option_without_an_effect_is_a_usage_error_that_names_it() {
    for (line, option) in WITHOUT_EFFECT {
        let output = Command::new(SWEETSPOT)
            .args(line.split(' '))
            .env_remove("SWEETSPOT_TICKET")
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {words}");
        assert!(words.contains(option) && output.stdout.is_empty(), "{line}: {words}");
    }
}

/// Wrong values on the command line, each with a part of its error.
const WRONG: &[(&str, &str)] = &[
    ("emulate --path nonsense -- true", "is not key=value"),
    ("emulate --path rate=9,rtt=1ms -- true", "is not a rate"),
    ("demo --path nonsense", "is not key=value"),
    ("send x nonsense", "this is not a ticket"),
    ("receive", "there is no ticket"),
    ("receive nonsense", "nonsense: this is not a ticket"),
    ("receive there sweetspot1:abc", "the ticket comes first"),
    ("send sweetspot1:abc f", "the ticket comes last"),
    ("copy -avP x host:", "copy has no -a"),
    ("copy sftp://host/x .", "sftp://host/x: expected HOST:PATH"),
    ("receive ", "the ticket is empty"),
    ("receive --ticket-file /dev/null", "--ticket-file /dev/null: it is empty"),
    ("copy x ", "an argument is empty"),
    ("copy x host: --ssh ", "--ssh"),
    ("measure", "there is no ticket"),
    ("measure nonsense", "nonsense: expected HOST:PORT or a ticket; write nonsense:443"),
    ("measure http://h.example/x", "write h.example:80"),
    ("measure weetspot1:abc", "this is not a ticket"),
    ("advise window --rate 9 --rtt 10ms", "is not a rate"),
    ("run @elephants --set path.rate=fast", "path.rate"),
    ("run @elephants --set nonsense", "nonsense"),
    ("sweep @elephants --over nonsense", "nonsense"),
    ("run @nonsense", "@elephants"),
    ("sweep @nonsense --over path.buffer=1pkt,2pkt", "@elephants"),
    ("run @elephants --series x.txt", "FILE.csv or FILE.parquet"),
    ("sweep @elephants --over path.buffer=1pkt,2pkt --workers 0", "--workers"),
    ("copy a:b c:d", "source and destination are both remote"),
    ("copy x host: --sizing bdp", "needs the path's rate and RTT"),
    ("send x --offer --sizing bdp", "give them with --path-rate and --path-rtt"),
    ("serve --stdout --sizing max --path-rate 1Gbit/s --path-rtt 1ms", "only affect --sizing bdp"),
    ("serve --stdout --sizing bdp", "give them with --path-rate and --path-rtt"),
    ("serve --stdout --sizing bdp2", "needs the capacity C"),
    ("receive host/1-crisp-lemon-orbit", "this is a spoken code: give it with --code"),
    ("receive --code host/1-crisp-lemon", "codes look like"),
    ("serve keys", "`serve key`"),
    ("serve invite --clients /dev/null --dir /dev/null --to h ann", "that is a file"),
    ("serve invite --clients /dev/null --dir / --to [::]:99 ann", "other hosts can reach"),
    ("sweep @elephants --over path.rtt=10ms,20ms --set path.buffer=5", "path.buffer = 5"),
    ("demo --sizing bdp3", "needs measurements"),
    ("report x --out -", "the page goes to a file"),
    ("report x --out x.pdf", "--out x.pdf: expected FILE.html"),
    ("run @elephants --out x.csv", "--out x.csv: expected FILE.json"),
    ("measure h:1 --html x.pdf", "--html x.pdf: expected FILE.html"),
    ("ui --watch /", "--watch /: that is a directory"),
    ("ui --watch /proc/version", "/proc/version: expected a file of --series"),
    ("copy a:b e:f c", "hosts"),
    ("copy x :", "expected HOST:PATH"),
    ("serve --listen nonsense", "expected ADDRESS:PORT"),
    ("diagnose nonsense", "expected HOST:PORT"),
    ("tune attach nonsense", "expected a process ID"),
    ("tune run --events - -- true", "expected a file"),
    ("advise window --path nonsense", "is not key=value"),
    ("serve invite --clients c --dir d --to host:0 ann", "--to \"host:0\": expected a host"),
    ("serve invite --clients c --dir d --to host:99999 ann", "a port from 1 to 65535, not 99999"),
    ("serve --listen 127.0.0.1:70000", "a port from 0 to 65535, not 70000"),
    ("measure x --watch 1min --series s.jsonl --times 0", "expected a whole number, 1 or more"),
    ("serve --lifetime 0s", "expected 1 s or more"),
    ("serve invite --clients c --dir d --to host --lifetime 10ms ann", "expected 1 s or more"),
    ("serve invite --clients c --dir d --to host an/n", "\"an/n\" is not a name: expected 1 to"),
    ("serve invite --clients c --dir d --to host ", "\"\" is not a name"),
    ("top --once --rows many", "expected a whole number"),
    ("ui --port 99999999999", "--port"),
    ("sweep @elephants --over path.buffer=1pkt --workers 0", "expected 1 or more"),
    ("sweep @elephants --over path.buffer=1pkt --seeds 0", "expected a whole number from 1"),
    ("run @elephants --engine theory --series x.csv", "--series: closed forms"),
    ("top --once --interval 1ms", "--interval 1 ms is too short; the minimum is 100 ms"),
    ("diagnose 1 --for 1ms", "--for 1 ms is too short; the minimum is 200 ms"),
    ("diagnose 1 --html x", "--html and --scenario need a capture"),
    ("diagnose --file a --file b --file c", "--file: no more than two captures"),
    ("measure sweetspot1:abc --scenario day.txt", "--scenario day.txt: expected FILE.toml"),
    ("measure sweetspot1:abc --watch 1ms --series x", "--watch 1 ms is too short"),
    ("advise window --rate 1Mbit/s --rtt 0ms", "--rtt 0 s is impossible"),
    ("advise window --rate 0bit/s --rtt 1ms", "--rate 0 bit/s is impossible"),
    ("advise window --rate 1Mbit/s --rtt 9ms --loss 100%", "--loss 100 % is impossible"),
    ("advise window --rate 1Mbit/s --rtt 9ms --mtu 10B", "--mtu 10 B is impossible"),
    ("advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --flows 0", "--flows 0"),
    ("advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --inputs 0", "--inputs 0"),
    ("advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --load 0%", "--load 0"),
    (
        "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --load 150%",
        "--load 1.5 (150 %)",
    ),
    ("advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --delay-f 2", "--delay-f 2"),
    (
        "advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --tail-index 0.5",
        "--tail-index 0.5 is impossible",
    ),
    ("sweep @elephants", "--over KEY=VALUES or --find-best"),
    ("demo --size 0B", "--size 0B: nothing to move"),
    ("demo --sizing sobas,sobas", "sobas+cubic is listed twice"),
];

/// Very short and very long paths also get an answer: the BDP is below ten packets, or above the largest TCP
/// window.
#[test]
fn extreme_paths_get_an_answer_as_text_and_as_json() {
    let advise = |rate: &str, rtt: &str, json: &[&str]| {
        let line = [&["advise", "window", "--rate", rate, "--rtt", rtt][..], json].concat();
        let output = Command::new(SWEETSPOT).args(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    assert!(advise("1kbit/s", "2s", &[]).starts_with("Leave the window to the kernel"));
    let short = json(advise("1kbit/s", "2s", &["--json"]));
    assert!(short["recommended_bytes"].is_null() && short["why"].is_string());
    assert!(advise("100Gbit/s", "100ms", &[]).starts_with("window    603.3 MB for each of 2"));
    assert_eq!(json(advise("100Gbit/s", "100ms", &["--json"]))["connections"], 2);
}

#[test]
fn an_invalid_value_is_a_usage_error_in_every_verb() {
    let scratch = tempfile::tempdir().unwrap();
    for (line, part) in WRONG {
        let output = Command::new(SWEETSPOT)
            .args(line.split(' '))
            .env_remove("SWEETSPOT_TICKET")
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {words}");
        assert!(words.contains(part) && words.trim_end().lines().count() == 1, "{line}: {words}");
    }
}

/// Command lines that would write to one of their inputs, also through a link or by another name, each with a part
/// of its error.
const OVERWRITING: &[(&str, &str)] = &[
    ("run m.toml --out m.toml", "--out m.toml: this would overwrite the input m.toml"),
    ("run m.toml --out link.json", "--out link.json: this would overwrite the input m.toml"),
    ("run m.toml --series ./rates.csv", "the input rates.csv"),
    ("sweep m.toml --over path.buffer=9kB,99kB --out link.json", "the input m.toml"),
    ("sweep m.toml --over path.buffer=9kB,99kB --out sweep.json", "--out sweep.json.journal: "),
    ("report run.json --out run.json", "--out run.json: this would overwrite the input run.json"),
    ("report run.json slow.json --out ./run.json", "the input run.json"),
    ("report series-1.svg --svg .", "the input series-1.svg"),
    ("diagnose slow.pcap --html slow.pcap", "--html slow.pcap: this would overwrite the input"),
    ("diagnose --file slow.pcap --scenario ./slow.pcap", "the input slow.pcap"),
    ("emulate --path m.toml --certificate m.toml -- true", "the input m.toml"),
    ("emulate --path @lte --trace-up rates.csv --certificate rates.csv -- true", "input rates.csv"),
];

#[cfg(target_os = "linux")]
#[test]
fn no_verb_overwrites_its_input() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let scenario = "duration = \"1s\"\n[path]\nrate = \"9Mbit/s\"\nrtt = \"9ms\"\nbuffer = \"9kB\"\n\
                    [[path.trace]]\nfile = \"rates.csv\"\n[[transfer]]\nsizing = \"drs\"\n";
    fs::write(at("m.toml"), scenario).unwrap();
    fs::write(at("rates.csv"), "0,9000000\n1,8000000\n").unwrap();
    fs::write(at("slow.pcap"), sweetspot_testing::capture::window_limited(1200)).unwrap();
    std::os::unix::fs::symlink("m.toml", at("link.json")).unwrap();
    std::os::unix::fs::symlink("m.toml", at("sweep.json.journal")).unwrap();
    let sweetspot = |line: &str| {
        let mut command = Command::new(SWEETSPOT);
        command.args(line.split(' ')).current_dir(scratch.path()).output().unwrap()
    };
    let made = sweetspot("run m.toml --out run.json");
    assert!(made.status.success(), "{made:?}");
    fs::copy(at("run.json"), at("slow.json")).unwrap();
    fs::copy(at("run.json"), at("series-1.svg")).unwrap();
    let inputs = ["m.toml", "rates.csv", "slow.pcap", "run.json", "series-1.svg"];
    let contents = || inputs.map(|name| fs::read(at(name)).unwrap());
    let before = contents();
    for (line, part) in OVERWRITING {
        let output = sweetspot(line);
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {words}");
        assert!(words.contains(part) && words.trim_end().lines().count() == 1, "{line}: {words}");
        assert!(contents() == before, "{line}");
    }
}

/// Files that cannot be used, each with its name and the next step in the error.
const UNUSABLE: &[(&str, &str)] = &[
    ("serve --clients .", ".: Is a directory; name a file that can be read"),
    ("serve invite --clients . --dir d --to host ann", ".: Is a directory; name a file"),
    ("diagnose --tcpinfo .", "cannot read .: Is a directory; name a file"),
    ("diagnose --tcpinfo empty", "empty: it is empty; was anything logged?"),
    ("diagnose .", "there is no capture in .; name a directory"),
    ("advise host --peer-sysctl empty", "--peer-sysctl empty: "),
    ("advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --mix empty", "--mix empty: "),
];

#[test]
fn an_unusable_file_is_reported_with_the_next_step() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("empty"), "").unwrap();
    for (line, part) in UNUSABLE {
        let mut command = Command::new(SWEETSPOT);
        let output = command.args(line.split(' ')).current_dir(scratch.path()).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {words}");
        assert!(words.contains(part) && words.trim_end().lines().count() == 1, "{line}: {words}");
    }
}

#[test]
fn a_built_in_scenario_is_found_by_its_name() {
    let scratch = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let mut command = Command::new(SWEETSPOT);
        command.args(["run", name, "--engine", "theory"]).current_dir(scratch.path());
        command.output().unwrap()
    };
    assert!(run("@standing/window-limited").status.success());
    // One line with the title for each file below `scenarios`.
    let list = run("@");
    let lines = String::from_utf8(list.stdout).unwrap();
    assert!(list.status.success() && list.stderr.is_empty(), "{lines}");
    let is_elephants = |line: &str| {
        line.split_once(' ').is_some_and(|(name, title)| {
            name == "@elephants" && title.trim() == "Elephants use 70 % of the link"
        })
    };
    assert!(lines.lines().any(is_elephants), "{lines}");
    assert!(lines.lines().count() > 30 && lines.lines().all(|line| line.starts_with('@')));
    let unknown = run("@nonsense");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("@elephants"), "{unknown:?}");
}

/// A missing file is a usage error wherever its name appears, and is reported before any other error.
#[test]
fn a_missing_file_or_scenario_is_a_usage_error() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("empty.toml"), "\n").unwrap();
    for (line, words) in [
        ("run nosuch.toml", "nosuch.toml: No such file or directory; name a scenario file"),
        ("run @nosuch", "@nosuch: no scenario of that name"),
        ("run -", "standard input: it is empty; write a scenario"),
        ("run empty.toml", "empty.toml: it is empty; write a scenario"),
        ("sweep nosuch.toml", "nosuch.toml: No such file"),
        ("sweep @nosuch --over path.bufer=1pkt", "@nosuch: no scenario"),
        ("sweep nosuch.toml --find-best --engine lab", "nosuch.toml: No such file"),
        ("advise window --path nosuch.toml", "nosuch.toml: No such file"),
        ("emulate --path nosuch.toml -- true", "nosuch.toml: No such file"),
        ("emulate --path @lte --trace-up nosuch -- true", "nosuch: No such file"),
        ("report nosuch.json", "nosuch.json: No such file or directory; name a file of results"),
    ] {
        let mut command = Command::new(SWEETSPOT);
        command.args(line.split(' ')).current_dir(scratch.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{line}: {message}");
    }
}

/// Paths and scenarios both have names. A name of the wrong kind is a usage error that says where it can be used.
#[test]
fn a_name_of_the_wrong_kind_is_explained_with_the_right_verb() {
    for (line, words) in [
        ("run @lte", "@lte: a path has this name"),
        ("sweep @lte --over path.rtt=1ms,2ms", "give it to `sweetspot emulate --path`"),
        ("demo --path @elephants", "`sweetspot emulate --path @elephants`"),
        ("advise window --path @nosuch", "`sweetspot run @` lists them"),
    ] {
        let output = Command::new(SWEETSPOT).args(line.split(' ')).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{line}: {message}");
    }
}

/// The printed file, and the name with its options, have the same outcome except for the time taken.
#[test]
fn a_printed_scenario_has_the_outcome_of_its_name_and_options() {
    let scratch = tempfile::tempdir().unwrap();
    let sweetspot = |line: &str| {
        let mut command = Command::new(SWEETSPOT);
        let output = command.args(line.split(' ')).current_dir(scratch.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let outcome = |line: &str| {
        let mut outcome: serde_json::Value = serde_json::from_str(&sweetspot(line)).unwrap();
        outcome.as_object_mut().unwrap().remove("wall_s");
        outcome
    };
    for options in ["", " --seed 3 --set path.buffer=1bdp"] {
        let printed = sweetspot(&format!("run @standing/sweet-spot --print{options}"));
        fs::write(scratch.path().join("mine.toml"), &printed).unwrap();
        let here = outcome(&format!("run @standing/sweet-spot --json{options}"));
        assert_eq!(outcome("run mine.toml --json"), here, "{printed}");
    }
    // Without options, it prints the file's own text.
    let own = include_str!("../../../scenarios/elephants.toml");
    assert_eq!(sweetspot("run @elephants --print"), own);
    // Lines are never wrapped, whatever the terminal's width: 1 BDP is 50 Mbit/s x 100 ms = 625 kB.
    let set = sweetspot("run @elephants --print --set path.buffer=1bdp");
    assert!(set.contains("buffer = \"625kB\""), "{set}");
}

#[test]
fn a_server_with_one_ticket_keeps_an_audit_log_and_metrics() {
    let scratch = tempfile::tempdir().unwrap();
    let (audit, file) = (scratch.path().join("audit"), scratch.path().join("file"));
    fs::write(&file, vec![7; 5000]).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut server = Command::new(SWEETSPOT)
        .args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--metrics", &free, "--audit"])
        .arg(&audit)
        .arg("--dir")
        .arg(scratch.path().join("in"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ticket = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut ticket).unwrap();
    let sent = Command::new(SWEETSPOT).arg("send").arg(&file).arg(ticket.trim()).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let mut metrics = String::new();
    // The server updates its counters after its last message to the sender.
    while !metrics.contains("sweetspot_transfers_total{result=\"done\"} 1") {
        metrics.clear();
        let mut client = TcpStream::connect(&free).unwrap();
        write!(client, "GET /metrics HTTP/1.1\r\nHost: {free}\r\n\r\n").unwrap();
        client.read_to_string(&mut metrics).unwrap();
        assert!(server.try_wait().unwrap().is_none(), "{metrics}");
    }
    for counted in
        ["bytes_total{direction=\"received\"} 5000", "files_total{direction=\"received\"} 1"]
    {
        assert!(metrics.contains(counted), "{metrics}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let log = fs::read_to_string(audit).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["transfer begins", "file", "transfer ends"]);
    assert_eq!(lines[1]["blake3"], blake3::hash(&[7; 5000]).to_string());
    assert!(lines[0]["client"].is_null());
}

/// The exit codes are a shell's (POSIX, 2.8.2).
#[test]
fn tune_run_exits_as_a_shell_and_reports_that_nothing_was_tuned() {
    for (command, code, words, lines) in [
        // It follows the line that names the watched process.
        ("true", 0, "no TCP connection of true was seen", 2),
        ("/etc/passwd", 126, "cannot run /etc/passwd", 1),
        ("no-such-program", 127, "is it installed and in PATH?", 1),
    ] {
        let line = ["tune", "run", "-v", "--via", "pidfd", "--", command];
        let output = Command::new(SWEETSPOT).args(line).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.lines().count() == lines && message.contains(words), "{message}");
    }
}
