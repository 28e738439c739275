use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_emulator::Emulation;

use crate::bench::live::PORT;

/// An example of docs/library.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Example {
    Libcurl,
    Requests,
    Ureq,
    Asyncio,
    HttpClient,
    Boto3,
    Receive,
}

impl Example {
    /// All examples; the first two run under all conditions.
    pub const ALL: &'static [Example] = &[
        Example::Libcurl,
        Example::Requests,
        Example::Ureq,
        Example::Asyncio,
        Example::HttpClient,
        Example::Boto3,
        Example::Receive,
    ];

    /// Its name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Example::Libcurl => "libcurl",
            Example::Requests => "requests",
            Example::Ureq => "ureq",
            Example::Asyncio => "asyncio",
            Example::HttpClient => "http.client",
            Example::Boto3 => "boto3",
            Example::Receive => "plain socket",
        }
    }
}

/// The examples, ready to run from the root of the repository.
pub struct Built {
    libcurl: PathBuf,
    /// The directory of the Rust examples.
    rust: PathBuf,
    /// A Python that has the package.
    python: PathBuf,
}

/// The library to be measured, as cargo builds it.
pub const LIBRARY: &str = "target/release/libsweetspot.so";

impl Built {
    /// Compiles the C example into `scratch`, and finds the others.
    pub fn new(scratch: &Path) -> Result<Built, String> {
        let absolute = |path: &str, next: &str| {
            std::path::absolute(path)
                .ok()
                .filter(|found| found.exists())
                .ok_or_else(|| format!("{path} is missing: {next} makes it"))
        };
        let library = absolute(LIBRARY, "make library")?;
        let libcurl = scratch.join("libcurl");
        // The soname by which programs load it.
        std::os::unix::fs::symlink(&library, scratch.join("libsweetspot.so.1"))
            .map_err(|e| format!("{}: {e}", scratch.display()))?;
        let compiled = Command::new("cc")
            .args(["-O2", "-Icrates/capi/include", "examples/libcurl.c", "-lcurl", "-o"])
            .arg(&libcurl)
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", scratch.display()))
            .output()
            .map_err(|e| format!("cc: {e}"))?;
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        let rust = absolute("target/release/examples", "make library-examples")?;
        let python = absolute("target/python/bin/python", "make python-package")?;
        Ok(Built { libcurl, rust, python })
    }

    /// The command that downloads without end and discards the data.
    pub fn command(&self, example: Example, sizing: &str, emulation: &Emulation) -> Command {
        let far = emulation.far().address();
        let (server, port) = (format!("http://{far}:{PORT}"), PORT.to_string());
        let file = format!("{server}/big");
        let rust = |name: &str| Command::new(self.rust.join(name));
        let python = |name: &str| {
            let mut command = Command::new(&self.python);
            command.arg(format!("examples/{name}_download.py"));
            command
        };
        let host = far.to_string();
        let mut command = match example {
            Example::Libcurl => {
                // It writes to its standard output, which is discarded here.
                let mut quiet = Command::new("sh");
                quiet.args(["-c", "exec \"$0\" \"$@\" > /dev/null"]).arg(&self.libcurl);
                with(quiet, &[&file])
            }
            Example::Ureq => with(rust("download"), &[&file, NOTHING]),
            Example::Receive => with(rust("receive"), &[&format!("{far}:{PORT}")]),
            Example::Requests => with(python("requests"), &[&file, NOTHING]),
            Example::Asyncio => with(python("asyncio"), &[&host, &port, "/big", NOTHING]),
            Example::HttpClient => with(python("http_client"), &[&host, &port, "/big", NOTHING]),
            Example::Boto3 => with(python("boto3"), &[&server, BUCKET, "big", NOTHING]),
        };
        command.arg(sizing);
        command
    }
}

const NOTHING: &str = "/dev/null";
const BUCKET: &str = "bucket";

/// Makes the served directory a bucket that contains itself, to match S3's object names.
pub fn add_bucket(scratch: &Path) -> Result<(), String> {
    let www = scratch.join("www");
    fs::create_dir_all(&www).map_err(|e| e.to_string())?;
    std::os::unix::fs::symlink(".", www.join(BUCKET)).map_err(|e| e.to_string())
}

fn with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}
