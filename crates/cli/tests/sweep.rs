//! Sweeps survive a kill, and report errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

type TestResult = Result<(), Box<dyn std::error::Error>>;

const SCENARIO: &str = r#"
title = "small"
duration = "4s"
[path]
rate = "50Mbit/s"
rtt = "20ms"
buffer = "50pkt"
[[transfer]]
sizing = "fixed:200pkt"
"#;

fn sweetspot(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command
}

fn scenario() -> Result<(tempfile::TempDir, PathBuf), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("small.toml");
    fs::write(&file, SCENARIO)?;
    Ok((directory, file))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rejected inputs, each with a part of its error.
const REFUSED: [(&[&str], &str); 6] = [
    (&["--over", "path.bufer=1pkt,2pkt"], "did you mean path.buffer?"),
    (&["--over", "path.buffer=9pkt..2pkt:log:3"], "first end must be below its last"),
    (&["--over", "path.buffer=1pkt", "--over", "path.buffer=2pkt"], "path.buffer is swept twice"),
    (
        &["--over", "path.buffer=1pkt", "--set", "path.buffer=2pkt"],
        "sweetspot: path.buffer is given to both --over and --set",
    ),
    (&["--over", "path.buffer=much"], "path.buffer"),
    (&["--over", "path.buffer=1pkt", "--out", "points.xls"], "FILE.csv"),
];

#[test]
fn an_invalid_sweep_is_rejected_in_one_line_before_any_run() -> TestResult {
    let (directory, _) = scenario()?;
    for (arguments, words) in REFUSED {
        let all = [&["sweep", "small.toml"], arguments].concat();
        let output = sweetspot(directory.path(), &all).output()?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
    Ok(())
}

const SWEEP: [&str; 8] = [
    "sweep",
    "small.toml",
    "--over",
    "transfer.sizing=fixed:50pkt..fixed:400pkt:log:6",
    "--seeds",
    "4",
    "--out",
    "points.csv",
];

#[test]
fn a_resumed_sweep_writes_the_same_bytes_as_an_uninterrupted_one() -> TestResult {
    let (directory, _) = scenario()?;
    let here = directory.path();
    assert!(sweetspot(here, &SWEEP).output()?.status.success());
    let whole = fs::read(here.join("points.csv"))?;
    let journal = fs::read(here.join("points.csv.journal"))?;
    // The head, 6 combinations and 24 runs.
    assert_eq!(journal.iter().filter(|byte| **byte == b'\n').count(), 31);

    // The state after a SIGKILL: no results, and a journal that ends in the middle of a line.
    fs::remove_file(here.join("points.csv"))?;
    fs::write(here.join("points.csv.journal"), &journal[..journal.len() / 2])?;
    assert!(sweetspot(here, &SWEEP).output()?.status.success());
    assert_eq!(fs::read(here.join("points.csv"))?, whole);
    // It announces the combinations again.
    let again = fs::read(here.join("points.csv.journal"))?;
    assert_eq!(again.iter().filter(|byte| **byte == b'\n').count(), 37);

    let third = sweetspot(here, &SWEEP).output()?;
    let words = stderr(&third);
    assert!(words.contains("24 of 24 runs taken from points.csv.journal"), "{words}");
    // Half of the seeds are other ones.
    let shifted = sweetspot(here, &[&SWEEP[..], &["--set", "seed=3"]].concat()).output()?;
    let words = stderr(&shifted);
    assert!(words.contains("12 of 24 runs taken from points.csv.journal"), "{words}");
    Ok(())
}

#[test]
fn a_journal_of_another_version_is_rejected_with_a_remedy() -> TestResult {
    let (directory, _) = scenario()?;
    let journal = directory.path().join("points.csv.journal");
    fs::write(&journal, "{\"sweetspot_journal\":1,\"version\":\"0.0.1\"}\n")?;
    let output = sweetspot(directory.path(), &SWEEP).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("sweetspot 0.0.1"), "{}", stderr(&output));
    assert!(stderr(&output).contains("remove it"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn a_full_disk_is_reported_and_the_table_is_still_complete() -> TestResult {
    if !Path::new("/dev/full").exists() {
        sweetspot_testing::skipped("there is no /dev/full here");
        return Ok(());
    }
    let (directory, _) = scenario()?;
    std::os::unix::fs::symlink("/dev/full", directory.path().join("points.csv"))?;
    let output = sweetspot(directory.path(), &SWEEP).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("every run is kept"), "{}", stderr(&output));
    // The heading, six rows, an empty line, and the verdict, which is wrapped.
    let shown = String::from_utf8_lossy(&output.stdout);
    let (table, verdict) = shown.split_once("\n\n").ok_or("no verdict")?;
    assert_eq!(table.lines().count(), 7, "{shown}");
    assert_eq!(verdict.trim_end().replace("\n  ", " ").lines().count(), 1, "{shown}");
    Ok(())
}

#[test]
fn an_interrupted_sweep_says_where_it_will_resume() -> TestResult {
    let (directory, _) = scenario()?;
    let here = directory.path();
    // The head, 6 combinations and 5 runs are written. Long enough that it cannot be done before it is interrupted: a thousand seeds.
    let long = [&SWEEP[..5], &["1000", "--out", "points.csv"]].concat();
    let mut child = sweetspot(here, &long).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let journal = here.join("points.csv.journal");
    let lines =
        || fs::read(&journal).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count());
    while lines() < 12 && child.try_wait()?.is_none() {
        std::thread::yield_now();
    }
    // The shell's built-in: a minimal system has no program kill.
    let interrupt = format!("kill -s INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status()?.success());
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("resumes from there"), "{}", stderr(&output));
    assert!(lines() >= 12);
    Ok(())
}

#[test]
fn report_combines_a_sweep_and_a_run_into_one_page() -> TestResult {
    let (directory, _) = scenario()?;
    let here = directory.path();
    let over = ["--over", "transfer.sizing=fixed:50pkt..fixed:400pkt:log:4"];
    let sweep =
        [&["sweep", "small.toml"], &over[..], &["--seeds", "3", "--out", "s.json"]].concat();
    assert!(sweetspot(here, &sweep).output()?.status.success());
    let run = sweetspot(here, &["run", "small.toml", "--json"]).output()?;
    fs::write(here.join("run.json"), &run.stdout)?;
    let report = [
        "report",
        "s.json",
        "run.json",
        "--out",
        "page.html",
        "--svg",
        "pictures",
        "--png",
        "pictures",
    ];
    let output = sweetspot(here, &report).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(here.join("page.html"))?;
    for words in ["sweet spot", "goodput, Mbit/s", "Every run", "s.json"] {
        assert!(page.contains(words), "{words} is missing");
    }
    let svg = here.join("pictures/sweep-0-1.svg");
    assert!(svg.exists() && svg.with_extension("png").exists());
    Ok(())
}

#[test]
fn report_describes_an_unusable_file() -> TestResult {
    let (directory, _) = scenario()?;
    let here = directory.path();
    let files = [
        ("empty.json", "", "it is empty"),
        ("other.json", "{\"name\": 1}", "JSON that no report shows"),
        ("words.txt", "nothing\nat all\n", "neither JSON"),
        (
            "best.json",
            "{\"mft_bps\": 1e6, \"trials\": []}",
            "it is a search of sweetspot of unknown",
        ),
        ("torn.json", "{\"name\": ", "it begins like JSON"),
        ("table.toml", "[path]\nrate = 1\n", "neither JSON"),
        ("path.json", "{\"round_trip\": {}, \"directions\": []}", "measure --html FILE"),
        ("tune.jsonl", "{\"t_s\": 1.5, \"event\": \"taken\", \"pid\": 63}\n", "ui --watch FILE"),
        (
            "new.json",
            "{\"sweetspot_sweep\": 9, \"version\": \"7.0.0\"}",
            "sweep of sweetspot 7.0.0",
        ),
    ];
    for (name, content, words) in files {
        fs::write(here.join(name), content)?;
        let output = sweetspot(here, &["report", name]).output()?;
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(
            stderr(&output).contains(name) && stderr(&output).contains(words),
            "{}",
            stderr(&output)
        );
    }
    Ok(())
}

/// The cells of a Parquet file as CSV, for comparison.
fn as_csv(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
    Ok(sweetspot_report::csv(&sweetspot_report::from_parquet(fs::read(path)?)?))
}

#[test]
fn the_parquet_and_csv_files_of_a_sweep_have_the_same_rows() -> TestResult {
    let (directory, _) = scenario()?;
    let here = directory.path();
    let over = ["--over", "transfer.sizing=fixed:50pkt,sobas", "--over", "path.buffer=20pkt,40pkt"];
    for out in ["points.csv", "points.parquet"] {
        let sweep = [&["sweep", "small.toml"], &over[..], &["--seeds", "3", "--out", out]].concat();
        let output = sweetspot(here, &sweep).output()?;
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let parquet = as_csv(&here.join("points.parquet"))?;
    assert_eq!(parquet, fs::read_to_string(here.join("points.csv"))?);
    // 2 x 2 variants, 3 seeds and 1 transfer, plus the names.
    assert_eq!(parquet.lines().count(), 13);
    let names = parquet.lines().next().unwrap_or_default();
    assert!(names.starts_with("transfer_sizing,path_buffer,seed,transfer,"), "{names}");
    assert_eq!(names.split(',').count(), 2 + 2 + 4 + 3 + 2 + 1 + 8 + 3);
    Ok(())
}

#[test]
fn report_reads_parquet_files() -> TestResult {
    let (directory, _) = scenario()?;
    let here = directory.path();
    let over = ["--over", "transfer.sizing=fixed:50pkt..fixed:400pkt:log:4"];
    let tail = ["--seeds", "3", "--out"];
    for out in ["s.parquet", "s.json"] {
        let sweep = [&["sweep", "small.toml"], &over[..], &tail, &[out]].concat();
        assert!(sweetspot(here, &sweep).output()?.status.success());
    }
    let set = ["--set", "transfer.0.sizing=sobas", "--set", "transfer.0.count=2"];
    let run = [&["run", "small.toml", "--series", "run.parquet"], &set[..]].concat();
    assert!(sweetspot(here, &run).output()?.status.success());
    let page = |files: &[&str]| -> Result<String, Box<dyn std::error::Error>> {
        let report = [&["report", "--out", "page.html"], files].concat();
        let output = sweetspot(here, &report).output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        Ok(fs::read_to_string(here.join("page.html"))?)
    };
    let series = page(&["run.parquet"])?;
    for words in ["Over time", "bottleneck queue, packets", "transfer 1", ": limited"] {
        assert!(series.contains(words), "{words} is missing");
    }
    // The pictures and tables are the same for all formats of the sweep.
    let section = |page: &str| page.split("</header>").nth(1).unwrap_or_default().to_owned();
    let (columns, json) = (section(&page(&["s.parquet"])?), section(&page(&["s.json"])?));
    assert!(columns.contains("sweet spot"));
    assert_eq!(columns.replace("s.parquet", "s.json"), json);
    Ok(())
}

#[test]
fn report_describes_an_unusable_parquet_file() -> TestResult {
    use sweetspot_report::{Column, Columns, parquet};
    let (directory, _) = scenario()?;
    let here = directory.path();
    let mut alien = Columns::default();
    alien.push("shoe_size", Column::Real(vec![Some(43.0)]));
    let mut newer = alien.clone();
    newer.note("sweetspot_sweep", "9");
    newer.note("version", "7.0.0");
    let torn = parquet(&alien)?[..40].to_vec();
    let files = [
        ("alien.parquet", parquet(&alien)?, "not a result of sweetspot"),
        ("newer.parquet", parquet(&newer)?, "sweep of sweetspot 7.0.0"),
        ("torn.parquet", torn, "cannot be read"),
    ];
    for (name, content, words) in files {
        fs::write(here.join(name), content)?;
        let output = sweetspot(here, &["report", name]).output()?;
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(
            stderr(&output).contains(name) && stderr(&output).contains(words),
            "{}",
            stderr(&output)
        );
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
    Ok(())
}

#[test]
fn a_sweep_ends_with_a_verdict_that_names_ties() -> TestResult {
    let (directory, _) = scenario()?;
    let windows = "transfer.0.sizing=fixed:5pkt,fixed:140pkt,fixed:160pkt";
    let printed = |engine: &str| -> Result<String, Box<dyn std::error::Error>> {
        let line = ["sweep", "small.toml", "--over", windows, "--engine", engine];
        let output = sweetspot(directory.path(), &line).output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        Ok(String::from_utf8(output.stdout)?.replace("\n  ", " "))
    };
    // C T is 125 packets of 1000 bytes, and the buffer holds 50: 140 and 160 fill the path, 5 does not.
    let theory = printed("theory")?;
    let last = theory.lines().last().unwrap_or_default();
    assert!(last.starts_with("Fastest: transfer.0.sizing=fixed:140pkt, "), "{theory}");
    // The RTT is 140 / 125 of 20 ms.
    let end = " Mbit/s, RTT 22.4 ms; as fast: transfer.0.sizing=fixed:160pkt.";
    assert!(last.ends_with(end), "{theory}");
    let line = ["sweep", "small.toml", "--set", "transfer.0.count=2", "--over", windows];
    let several = sweetspot(directory.path(), &line).output()?;
    let several = String::from_utf8(several.stdout)?;
    assert!(several.contains(" (first transfer): "), "{several}");
    let sim = printed("sim")?;
    let last = sim.lines().last().unwrap_or_default();
    assert_eq!(last, "One seed: --seeds 8 separates differences from chance.", "{sim}");
    Ok(())
}

#[test]
fn a_queue_length_has_a_named_unit() -> TestResult {
    let directory = tempfile::tempdir()?;
    let printed = |engine: &str| -> Result<String, Box<dyn std::error::Error>> {
        let line = ["run", "@elephants", "--engine", engine, "--set", "duration=5s"];
        let output = sweetspot(directory.path(), &line).output()?;
        Ok(String::from_utf8(output.stdout)?.replace("\n  ", " "))
    };
    // Closed forms divide bytes by path.packet; the simulator also counts ACKs.
    let (theory, sim) = (printed("theory")?, printed("sim")?);
    assert!(theory.contains(" packets of 1 kB (max "), "{theory}");
    assert!(sim.contains(" packets, ACKs included (max "), "{sim}");
    Ok(())
}

#[test]
fn theory_rejects_uncovered_sweeps_and_runs_alike() -> TestResult {
    let directory = tempfile::tempdir()?;
    // A window larger than path and buffer overflows the buffer.
    let large = "transfer.0.sizing=fixed:100000pkt";
    let run = ["run", "@elephants", "--engine", "theory", "--set", large];
    let sweep = ["sweep", "@elephants", "--engine", "theory", "--over", large];
    for line in [&run[..], &sweep[..]] {
        let output = sweetspot(directory.path(), line).output()?;
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).ends_with("; --engine sim runs it\n"), "{}", stderr(&output));
    }
    let none = format!("{large},fixed:200000pkt");
    let sweep = ["sweep", "@elephants", "--engine", "theory", "--over", &none];
    let words = stderr(&sweetspot(directory.path(), &sweep).output()?);
    assert!(words.starts_with("sweetspot: none of the 2 combinations is covered; "), "{words}");
    // The message begins with the combination at fault, and the others have their rows.
    let over = "transfer.0.sizing=fixed:50pkt,fixed:100000pkt";
    let sweep = ["sweep", "@elephants", "--engine", "theory", "--over", over];
    let output = sweetspot(directory.path(), &sweep).output()?;
    assert_eq!(output.status.code(), Some(3));
    let rows = String::from_utf8(output.stdout.clone())?;
    assert!(rows.contains("fixed:50pkt") && !rows.contains("fixed:100000pkt"), "{rows}");
    let words = stderr(&output);
    assert!(
        words.starts_with("sweetspot: transfer.0.sizing=fixed:100000pkt: not covered"),
        "{words}"
    );
    Ok(())
}

/// The transfer of @elephants begins after 15 seconds.
#[test]
fn a_search_over_runs_without_a_transfer_finds_no_best_window() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        ["--find-best", "--seeds", "1", "--set", "warmup=5s", "--set", "duration=5s", "-q"];
    let arguments = [&["sweep", "@elephants"][..], &options].concat();
    let output = sweetspot(directory.path(), &arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("no window moved data"), "{words}");
}

/// C T_m is 125 packets of 1000 bytes, and the buffer holds 50 more. 130 packets fill the path with an RTT of 130 / 125 of 20
/// ms, 20.8 ms; 170 packets have 27.2 ms at the same rate.
#[test]
fn the_verdict_names_the_smallest_of_equally_fast_windows_with_its_rtt() -> TestResult {
    let (directory, _) = scenario()?;
    let windows = "transfer.0.sizing=fixed:170pkt,fixed:130pkt,fixed:60pkt";
    let printed = |options: &[&str]| -> Result<String, Box<dyn std::error::Error>> {
        // By then, slow start is over.
        let options = [&["sweep", "small.toml", "--set", "warmup=30s"][..], options].concat();
        let output = sweetspot(directory.path(), &options).output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        Ok(String::from_utf8(output.stdout)?)
    };
    let table = printed(&["--over", windows])?.replace("\n  ", " ");
    let verdict = table.lines().find(|line| line.starts_with("Best: ")).unwrap_or_default();
    let between = ": the smallest window that is as fast as the fastest, ";
    let (best, fastest) = verdict.split_once(between).unwrap_or_default();
    assert!(best.starts_with("Best: transfer.0.sizing=fixed:130pkt, "), "{table}");
    assert!(best.contains(", RTT 20."), "{table}");
    assert!(fastest.starts_with("transfer.0.sizing=fixed:170pkt, "), "{table}");
    assert!(fastest.contains(", RTT 27."), "{table}");
    // The plateau begins at C T_m, within the 0.5 % that counts as equal and the tolerance of the search.
    let search: serde_json::Value = serde_json::from_str(&printed(&["--find-best", "--json"])?)?;
    let smallest = search["smallest_window_packets"].as_u64().unwrap_or(0);
    assert!((124..=126).contains(&smallest), "{search}");
    assert!(search["trials"][0]["rtt_mean_s"].as_f64().is_some_and(|rtt| rtt >= 0.02), "{search}");
    Ok(())
}

/// The simulator needs longer for a million seconds than the test waits for the first sign of life.
#[test]
fn an_interrupted_run_says_which_results_are_missing() -> TestResult {
    let (directory, _) = scenario()?;
    for (options, words) in [
        (&[][..], "there is no result"),
        (&["--out", "run.json", "--interval", "1s"][..], "run.json is not written"),
        (
            &["--out", "run.json", "--series", "run.csv", "--interval", "1s"][..],
            "run.json and run.csv are not written",
        ),
    ] {
        let run = ["run", "small.toml", "--set", "duration=1000000s"];
        let mut command = sweetspot(directory.path(), &[&run[..], options].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        // A signal before that ends it without a message.
        while !sweetspot_testing::handles_signal(child.id(), 2) && child.try_wait()?.is_none() {
            std::thread::yield_now();
        }
        let interrupt = format!("kill -s INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status()?.success());
        let output = child.wait_with_output()?;
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let expected =
            format!("sweetspot: interrupted before the run of 1000000 s was complete; {words}\n");
        assert_eq!(stderr(&output), expected);
    }
    Ok(())
}

/// This check needs neither the lab's permissions nor its running time.
#[test]
fn the_lab_rejects_a_run_that_ends_before_its_transfers_start() {
    let directory = tempfile::tempdir().unwrap();
    let late = ["--set", "warmup=3s", "--set", "duration=5s"];
    let arguments = [&["run", "@elephants", "--engine", "lab"][..], &late].concat();
    let output = sweetspot(directory.path(), &arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{output:?}");
    let expected = "sweetspot: @elephants: the first transfer starts at 15 s and the run ends at 8 s; change its start, \
                    warmup or duration\n";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn a_scenario_without_a_transfer_is_reported_by_file_name() -> TestResult {
    let (directory, _) = scenario()?;
    fs::write(
        directory.path().join("none.toml"),
        "duration = '1s'\n[path]\nrate = '1Mbit/s'\nrtt = '10ms'\nbuffer = '9kB'\n",
    )?;
    let output = sweetspot(directory.path(), &["sweep", "none.toml", "--find-best"]).output()?;
    assert!(!output.status.success());
    assert!(stderr(&output).contains("none.toml: there is no [[transfer]]"), "{}", stderr(&output));
    let output = sweetspot(directory.path(), &["run", "none.toml"]).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("none.toml: nothing to run; add"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn a_search_writes_json_and_rejects_other_formats() -> TestResult {
    let (directory, _) = scenario()?;
    let search = ["sweep", "small.toml", "--find-best", "--tolerance", "0.5", "--out"];
    let output = sweetspot(directory.path(), &[&search[..], &["best.json"]].concat()).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let kept: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.path().join("best.json"))?)?;
    assert!(kept["window_packets"].is_u64(), "{kept}");
    let drawn = ["report", "best.json", "--svg", "pictures", "-q"];
    let report = sweetspot(directory.path(), &drawn).output()?;
    assert!(report.status.success(), "{}", stderr(&report));
    let goodput = fs::read_to_string(directory.path().join("pictures/search-0-1.svg"))?;
    assert!(goodput.contains("Goodput by window"), "{goodput}");
    let output = sweetspot(directory.path(), &[&search[..], &["best.csv"]].concat()).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--find-best writes FILE.json"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn search_options_and_sweep_options_exclude_each_other() -> TestResult {
    let (directory, _) = scenario()?;
    let line = ["sweep", "small.toml", "--over", "path.rtt=10ms,20ms", "--tolerance", "0.1"];
    let output = sweetspot(directory.path(), &line).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--tolerance is for --find-best"), "{}", stderr(&output));
    let line = ["sweep", "small.toml", "--find-best", "--engine", "theory"];
    let output = sweetspot(directory.path(), &line).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--find-best always simulates"), "{}", stderr(&output));
    Ok(())
}

/// 130 packets of 1000 B fill C T = 125, and T = 20 ms becomes 20.8 ms. The kernel's window also fills a large buffer.
#[test]
fn among_equally_fast_variants_the_verdict_names_the_lowest_rtt_first() -> TestResult {
    let (directory, _) = scenario()?;
    // By then, slow start is over.
    let line = ["sweep", "small.toml", "--set", "warmup=30s", "--set", "path.buffer=2000pkt"];
    let over = ["--over", "transfer.0.sizing=kernel,fixed:130pkt"];
    let output = sweetspot(directory.path(), &[&line[..], &over[..]].concat()).output()?;
    let shown = String::from_utf8(output.stdout)?;
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let shown = shown.replace("\n  ", " ");
    let best = shown.lines().find(|line| line.starts_with("Best: ")).unwrap_or_default();
    assert!(best.starts_with("Best: transfer.0.sizing=fixed:130pkt, "), "{shown}");
    assert!(best.contains(", RTT 20.8 ms: "), "{shown}");
    assert!(best.contains(" as fast as the fastest, transfer.0.sizing=kernel, "), "{shown}");
    Ok(())
}

#[test]
fn sweep_lists_scenarios_and_run_rejects_bad_output_names_and_reads_stdin() -> TestResult {
    let (directory, _) = scenario()?;
    let listed = |verb: &str| sweetspot(directory.path(), &[verb, "@"]).output();
    assert_eq!(listed("sweep")?.stdout, listed("run")?.stdout);
    let output = sweetspot(directory.path(), &["run", "small.toml", "--out", "x.csv"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--out x.csv: expected FILE.json"), "{}", stderr(&output));
    assert!(!directory.path().join("x.csv").exists());
    let typed = fs::File::open(directory.path().join("small.toml"))?;
    let by_name = sweetspot(directory.path(), &["run", "small.toml", "--json"]).output()?;
    let by_input = sweetspot(directory.path(), &["run", "-", "--json"]).stdin(typed).output()?;
    let outcome = |output: &Output| -> Result<serde_json::Value, serde_json::Error> {
        let mut outcome: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        outcome["wall_s"] = serde_json::Value::Null;
        Ok(outcome)
    };
    assert_eq!(outcome(&by_input)?, outcome(&by_name)?);
    Ok(())
}
