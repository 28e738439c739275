//! The Rust examples over an emulated path: downloads are complete and sized, and no limit remains.

use std::path::{Path, PathBuf};

#[path = "common/across.rs"]
mod across;
use across::{Example, WINDOW};

fn main() {
    across::main(|_| {
        let download = |far: &str, file: &Path| {
            let url = format!("http://{far}/file");
            vec![url, file.display().to_string(), WINDOW.to_owned()]
        };
        let receive = |far: &str, _: &Path| vec![far.to_owned(), WINDOW.to_owned()];
        vec![example("receive", receive, true), example("download", download, false)]
    });
}

/// An example, built by cargo together with the tests.
fn example(
    name: &'static str,
    arguments: fn(&str, &Path) -> Vec<String>,
    is_plain: bool,
) -> Example {
    let this = std::env::current_exe().expect("a path");
    let target: Option<PathBuf> = this.parent().and_then(Path::parent).map(Path::to_owned);
    let program = target.expect("target/debug").join("examples").join(name);
    Example { name, program, arguments, prints_body: false, is_plain }
}
