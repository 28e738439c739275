//! Tests of the commands `diagnose` and `top`.

mod hostile;
mod inputs;
mod live;
mod namespaces;
mod screen;
mod words;

use std::process::{Command, Output, Stdio};

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn sweetspot(arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    command.args(arguments).stdin(Stdio::null()).output()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
