//! Prometheus's own checks of rules and metrics.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::skipped;

/// Fails unless `promtool` with these arguments accepts `input`; reports a skipped test if promtool is not
/// installed.
#[track_caller]
pub fn accepts(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        skipped("there is no promtool here (apt-get install prometheus)");
        return;
    };
    // promtool may exit before it has read everything.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("waiting for promtool");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "promtool {arguments:?}: {out}{errors}\nof:\n{input}");
}
