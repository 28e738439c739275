//! Prints advice from closed forms.

#[cfg(target_os = "linux")]
mod host;
mod path;
mod router;
mod window;

#[cfg(not(target_os = "linux"))]
use super::advise_host as host;

use std::path::Path;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use serde_json::Value;
use sweetspot_advise::{AdviceError, Kernel};
use sweetspot_units::{Bytes, UnitError};

use super::Ending;
use crate::option_hints::{self, HintVerb};
use sweetspot_program::print::{self, Shown};
use sweetspot_program::text_file;
use sweetspot_program::usage_error::UsageError;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot advise host --rate 10Gbit/s --rtt 80ms
  sweetspot advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s")]
pub struct AdviseArguments {
    #[command(subcommand)]
    about: About,
}

#[derive(Debug, Subcommand)]
enum About {
    /// The window that a path needs, and the cost of a wrong one
    ///
    /// -q leaves out the notes on standard error; the answer stays as it is.
    Window(window::AdviseWindowArguments),
    /// The settings that limit a flow on this host, and the commands that change them
    ///
    /// -q prints only the labelled lines, without the numbered list of changes.
    Host(host::AdviseHostArguments),
    /// The buffer that a router's link should have
    ///
    /// Bulk transfers that come and go get C T: the rate of the link times the RTT. n flows that persist get C T / sqrt(n), which
    /// keeps the link almost full. Short transfers get less, as losses cost them less and a queue costs them more. On a link near
    /// overload, bulk transfers that come and go also get less than C T: there, a larger buffer mostly adds delay.
    ///
    /// A formula gives a first buffer: a regression over simulated links, or closed forms for links unlike those. Unless you give
    /// measurements (--fit, --loss-a), a simulation then checks the buffer, and all numbers in the answer are the simulation's. Its transfers are
    /// random: rates come with their 95 % interval (+-), and the table names the largest interval of its other columns.
    ///
    /// With --flows, the mean size (--size-mean) decides: flows of 50 times the size that just fills the link persist. In between, the
    /// buffer moves in proportion to the logarithm of the size. --explain prints each formula with your numbers.
    ///
    /// -q prints only the labelled lines and the warnings, without the reasons and the table.
    Router(router::AdviseRouterArguments),
}

/// Whether advice is tried in the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Verify {
    Sim,
    None,
}

/// Options of the output.
#[derive(Debug, Clone, Copy, clap::Args)]
struct OutputOptions {
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Add the details: each formula with its numbers, and its sources
    #[arg(long)]
    explain: bool,
}

/// The amount of advice to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The labelled lines and the warnings, with --quiet.
    Answer,
    /// Also the reasons and alternatives.
    Usual,
    /// Everything, with --explain.
    Explained,
}

impl OutputOptions {
    fn detail(self) -> Detail {
        match (self.explain, print::is_quiet()) {
            (true, _) => Detail::Explained,
            (false, true) => Detail::Answer,
            (false, false) => Detail::Usual,
        }
    }

    fn show(
        self,
        text: impl FnOnce(Detail, usize) -> String,
        json: impl FnOnce() -> Value,
    ) -> Ending {
        if self.json {
            out!("{}", serde_json::to_string_pretty(&json())?);
        } else {
            out!("{}", text(self.detail(), print::width()).trim_end());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Parses the size of a packet or a socket buffer; a number without a unit is in bytes.
fn bytes(text: &str) -> Result<Bytes, UnitError> {
    text.trim().parse().map(Bytes::new).or_else(|_| text.parse())
}

pub fn run(arguments: AdviseArguments) -> Ending {
    let ending = match arguments.about {
        About::Window(arguments) => window::run(arguments),
        About::Host(arguments) => host::run(arguments),
        About::Router(arguments) => router::run(arguments),
    };
    ending.map_err(|error| match error.downcast_ref() {
        // The value of an option is wrong, so the exit code is the one for clap's errors.
        Some(AdviceError::Impossible { .. }) => {
            UsageError::new(option_hints::of(error.as_ref(), HintVerb::Other)).into()
        }
        _ => error,
    })
}

/// The given kernel version, or this host's.
fn kernel(named: Option<Kernel>) -> Result<Kernel, Box<dyn std::error::Error>> {
    if let Some(kernel) = named {
        return Ok(kernel);
    }
    #[cfg(target_os = "linux")]
    let release = sweetspot_linux::host::kernel_release();
    #[cfg(not(target_os = "linux"))]
    let release: Option<String> = None;
    let release = release.ok_or(
        "the version of this host's kernel cannot be read; name the receiver's: --kernel 6.18",
    )?;
    Ok(release.parse()?)
}

/// Reads `path`, or standard input if it is `-`.
fn read(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let bytes = text_file::read_any_size(path);
    bytes.and_then(|bytes| std::io::read_to_string(bytes.as_slice())).map_err(|error| {
        let why = print::system(&error);
        UsageError::new(format!("{}: {why}; name a file that can be read", path.shown())).into()
    })
}
