//! The user's defaults: the configuration file, the environment, and their order of precedence.

use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A home directory for `sweetspot`, with this configuration file.
struct Home(TempDir);

impl Home {
    fn with(file: &str) -> std::io::Result<Home> {
        let home = tempfile::tempdir()?;
        let directory = home.path().join(".config/sweetspot");
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("config.toml"), file)?;
        Ok(Home(home))
    }

    fn sweetspot(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        command.args(words).env_clear().env("HOME", self.0.path()).stdin(Stdio::null());
        command
    }
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn first_line(output: &Output) -> String {
    words(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn options_override_variables_and_variables_override_the_file() -> TestResult {
    let home = Home::with("[advise.window]\nrate = \"100Mbit/s\"\nrtt = \"80ms\"\n")?;
    // 1.05 x 100 Mbit/s x T, with a buffer of the same size and 1448 of 1500 B payload: 1.014 MB for 80 ms, 506.8 kB for 40 ms,
    // 253.4 kB for 20 ms.
    let advise = |variable: Option<&str>, option: &[&str]| -> std::io::Result<String> {
        let words = [&["advise", "window", "--buffer", "1MB"], option].concat();
        let mut command = home.sweetspot(&words);
        command.envs(variable.map(|value| ("SWEETSPOT_ADVISE_WINDOW_RTT", value)));
        let line = first_line(&command.output()?);
        Ok(line.split(';').next().unwrap_or_default().to_owned())
    };
    assert_eq!(advise(None, &[])?, "window    1.014 MB per connection");
    assert_eq!(advise(Some("40ms"), &[])?, "window    506.8 kB per connection");
    assert_eq!(advise(Some("40ms"), &["--rtt", "20ms"])?, "window    253.4 kB per connection");
    Ok(())
}

#[test]
fn the_settings_file_is_found_via_xdg_or_sweetspot_config() -> TestResult {
    let home = Home::with("[advise.window]\nfrobnicate = 1\n")?;
    let other = tempfile::tempdir()?;
    let question = ["advise", "window", "--rate", "1Mbit", "--rtt", "100ms"];
    assert_eq!(home.sweetspot(&question).output()?.status.code(), Some(2));
    let elsewhere = home.sweetspot(&question).env("XDG_CONFIG_HOME", other.path()).output()?;
    assert!(elsewhere.status.success(), "{}", words(&elsewhere.stderr));
    let none = home.sweetspot(&question).env("SWEETSPOT_CONFIG", "").output()?;
    assert!(none.status.success(), "{}", words(&none.stderr));
    let missing = home.sweetspot(&question).env("SWEETSPOT_CONFIG", "/nowhere").output()?;
    assert_eq!(missing.status.code(), Some(2));
    assert!(words(&missing.stderr).contains("/nowhere"));
    Ok(())
}

#[test]
fn an_unknown_key_is_rejected_with_file_line_and_suggestion() -> TestResult {
    for (file, line, meant) in [
        ("quiet = true\n\n[send]\nsizng = \"max\"\n", 4, "sizing"),
        ("[serv]\ndir = \"x\"\n", 1, "serve"),
        ("jsn = true\n", 1, "json"),
        ("[tune.daemn]\npolicy = \"x\"\n", 1, "daemon"),
    ] {
        let output = Home::with(file)?.sweetspot(&["advise", "host"]).output()?;
        assert_eq!(output.status.code(), Some(2), "{file}");
        let message = words(&output.stderr);
        assert!(message.contains(&format!("config.toml: line {line}: ")), "{message}");
        assert!(message.contains(&format!("(did you mean {meant}?)")), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    Ok(())
}

#[test]
fn an_invalid_setting_is_rejected_with_its_location() -> TestResult {
    for (file, place) in [
        ("[run]\nengine = \"theroy\"\n", "line 2"),
        ("[run]\njson = \"yes\"\n", "line 2"),
        ("[run]\nengine = 1999-01-01\n", "line 2"),
        ("[run\n", "line 1"),
    ] {
        let output = Home::with(file)?.sweetspot(&["advise", "host"]).output()?;
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(words(&output.stderr).contains(place), "{}", words(&output.stderr));
    }
    let home = Home::with("")?;
    let output = home.sweetspot(&["run", "x"]).env("SWEETSPOT_RUN_ENGINE", "theroy").output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output.stderr).contains("SWEETSPOT_RUN_ENGINE: invalid value 'theroy'"));
    Ok(())
}

#[test]
fn a_top_level_key_applies_to_every_verb_that_has_it() -> TestResult {
    let home = Home::with("json = true\n")?;
    let advice = home.sweetspot(&["advise", "window", "--rate", "1Mbit", "--rtt", "100ms"]);
    for mut command in [advice, home.sweetspot(&["serve", "key"])] {
        let output = command.output()?;
        let read: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        assert!(read.is_object(), "{read}");
    }
    Ok(())
}

#[test]
fn quiet_prints_only_results_and_errors() -> TestResult {
    let home = Home::with("")?;
    // The direction of an asymmetric path is noted.
    let path = "up.rate=10Mbit/s down.rate=100Mbit/s rtt=30ms buffer=256kB";
    let question = ["advise", "window", "--verify", "none", "--path", path];
    let loud = home.sweetspot(&question).output()?;
    let quiet = home.sweetspot(&question).env("SWEETSPOT_QUIET", "1").output()?;
    assert!(words(&loud.stderr).contains("near to far"), "{}", words(&loud.stderr));
    assert_eq!(words(&quiet.stderr), "");
    assert_eq!(quiet.stdout, loud.stdout);
    Ok(())
}

#[test]
fn quiet_keeps_warnings_that_matter_for_the_decision() -> TestResult {
    let home = Home::with("")?;
    // At 10 Gbit/s, a simulation would exceed its default limit, so the closed form is not checked.
    let question = "advise window --rate 10Gbit --rtt 80ms --buffer 12MB --cross mice:30% --json";
    let question: Vec<&str> = question.split(' ').collect();
    let quiet = home.sweetspot(&question).env("SWEETSPOT_QUIET", "1").output()?;
    assert!(words(&quiet.stderr).contains("closed form only"), "{}", words(&quiet.stderr));
    let advice: serde_json::Value = serde_json::from_slice(&quiet.stdout)?;
    let warnings = advice["warnings"].as_array().ok_or("no warnings")?;
    let is_kept = |warning: &serde_json::Value| {
        warning.as_str().is_some_and(|words| words.contains("a slightly smaller window is safer"))
    };
    assert!(warnings.iter().any(is_kept), "{warnings:?}");
    Ok(())
}

#[test]
fn shell_completions_offer_option_values() -> TestResult {
    let home = Home::with("")?;
    for shell in ["bash", "zsh", "fish"] {
        let script = words(&home.sweetspot(&["generate", "completions", shell]).output()?.stdout)
            .replace('\\', "");
        for value in ["sobas:paper", "bbr", "theory", "greedy"] {
            assert!(script.contains(value), "{shell} does not offer {value}");
        }
    }
    Ok(())
}
