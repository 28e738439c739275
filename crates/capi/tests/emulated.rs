//! The libcurl example across an emulated path: its download is complete and sized, and no limit remains.

use std::path::{Path, PathBuf};

mod common;
use common::{compile, installed};

#[path = "../../socket/tests/common/across.rs"]
mod across;
use across::{Example, WINDOW};

fn main() {
    across::main(|scratch| libcurl(scratch).into_iter().map(example).collect());
}

/// The example, compiled; `None` without a compiler or libcurl.
fn libcurl(scratch: &Path) -> Option<PathBuf> {
    let linked = installed(scratch, &["libcurl", "sweetspot"])?;
    compile("examples/libcurl.c", scratch, &linked)
}

fn example(program: PathBuf) -> Example {
    let arguments = |far: &str, _: &Path| vec![format!("http://{far}/file"), WINDOW.to_owned()];
    Example { name: "libcurl", program, arguments, prints_body: true, is_plain: false }
}
