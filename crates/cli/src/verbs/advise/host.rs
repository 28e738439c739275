use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_advise::Kernel;
use sweetspot_advise::host::{Device, HostAdvice, HostQuestion, Snapshot, advise};
use sweetspot_linux::host;
use sweetspot_units::{Bytes, Duration, Rate};
use sweetspot_watch::settings;

use super::{Detail, OutputOptions};
use crate::ends;
use crate::verbs::Ending;
use sweetspot_program::print::{Shown, system};
use sweetspot_program::usage_error::UsageError;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise host --rate 10Gbit/s --rtt 80ms
  sweetspot advise host --rate 1Gbit/s --rtt 40ms --write 90-sweetspot.conf")]
pub struct AdviseHostArguments {
    /// Capacity of the path; needs --rtt. Without both, the advice leaves out socket buffers, which depend on the path, and checks TCP
    /// options, tcp_mem, listening sockets and the device
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s", requires = "rtt")]
    rate: Option<Rate>,
    /// Round-trip time of the path; needs --rate
    #[arg(long, allow_hyphen_values = true, value_name = "80ms", requires = "rate")]
    rtt: Option<Duration>,
    /// Address or name of the other host. The path MTU to it is then read from this kernel's cache; nothing
    /// is sent
    #[arg(long, value_name = "HOST", value_hint = clap::ValueHint::Hostname)]
    peer: Option<String>,
    /// Path MTU, if known. The advice uses the smallest of this, the MTU of this host's device, and --peer-mtu. Leave it out with
    /// --peer, which reads it
    #[arg(long, value_name = "1500B", value_parser = super::bytes, conflicts_with = "peer")]
    path_mtu: Option<Bytes>,
    /// MTU of the other host's device
    #[arg(long, value_name = "9000B", value_parser = super::bytes)]
    peer_mtu: Option<Bytes>,
    /// The SO_RCVBUF that a program sets
    #[arg(long, value_name = "256KiB", value_parser = super::bytes)]
    rcvbuf: Option<Bytes>,
    /// Number of connections that share the path equally; each gets a window for its part of the rate. If one TCP window cannot fill the
    /// path, at least as many are assumed as it takes. Needs --rate and --rtt
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rate")]
    connections: u64,
    /// Output of `sysctl -a` on the other host
    #[arg(long, value_name = "FILE")]
    peer_sysctl: Option<PathBuf>,
    /// Kernel version of the other host, if it differs from this one; needs --peer-sysctl
    #[arg(long, value_name = "6.18", requires = "peer_sysctl")]
    peer_kernel: Option<Kernel>,
    /// Write this host's sysctls to a new file for /etc/sysctl.d, named NAME.conf; - prints them alone
    #[arg(long, value_name = "FILE.conf|-", value_parser = sysctl_file)]
    write: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(a: AdviseHostArguments) -> Ending {
    if a.output.json && a.write.as_deref() == Some(Path::new("-")) {
        return Err(UsageError::new(
            "--write - prints a file of sysctls, --json the whole advice; leave one of them out, or name a file".to_owned(),
        )
        .into());
    }
    // Here, not while parsing: a name without an address is not wrong usage.
    let peer_address = a.peer.as_deref().map(ends::host).transpose()?;
    let here = Snapshot { asked_receive_buffer: a.rcvbuf, ..settings(peer_address) };
    let mut peer = match &a.peer_sysctl {
        None => None,
        Some(file) => {
            let peer = Snapshot::of_peer(&super::read(file)?, a.peer_kernel, &here);
            Some(peer.map_err(|error| format!("--peer-sysctl {}: {error}", file.shown()))?)
        }
    };
    if let Some(mtu) = a.peer_mtu {
        let device = Device { name: "its device".to_owned(), mtu: Some(mtu), ..Device::default() };
        peer.get_or_insert_default().device = Some(device);
    }
    let path_mtu = match peer_address {
        None => a.path_mtu,
        Some(address) => Some(host::path_mtu(address).map_err(|error| {
            let why = system(&error);
            format!("--peer {address}: {why}; name an address that this host has a route to")
        })?),
    };
    let path = a.rate.zip(a.rtt);
    let question = HostQuestion { here, peer, path, path_mtu, connections: a.connections };
    let mut advice = advise(&question)?;
    if a.write.as_deref() == Some(Path::new("-")) {
        out!("{}", advice.sysctl_file().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &a.write {
        write(file, &advice)?;
        advice.is_written = true;
    }
    let words = |detail, width| match detail {
        Detail::Answer => advice.answer(width),
        Detail::Usual | Detail::Explained => advice.text(detail == Detail::Explained, width),
    };
    a.output.show(words, || advice.json())
}

/// Parses the path of a file that `sysctl --system` reads, or - for standard output.
fn sysctl_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    let is_read = text == "-" || file.extension().is_some_and(|extension| extension == "conf");
    let why = "`sysctl --system` only reads files whose names end in .conf";
    is_read.then_some(file).ok_or_else(|| format!("{why}; write {text}.conf, or - to print them"))
}

/// Writes the sysctls of this host to a new file, if any need a change.
fn write(file: &Path, advice: &HostAdvice) -> Result<(), Box<dyn std::error::Error>> {
    let count = advice.of_sysctl_file().count();
    if count == 0 {
        err!(
            "sweetspot: no sysctl of this host needs a change, so {} was not written",
            file.shown()
        );
        return Ok(());
    }
    let mut new = File::create_new(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{} exists and was left unchanged; remove it or name another", file.shown())
        }
        _ => format!("{}: {}; name a file that can be written", file.shown(), system(&error)),
    })?;
    new.write_all(advice.sysctl_file().as_bytes()).map_err(|error| {
        format!("{}: {}; free some space or name another", file.shown(), system(&error))
    })?;
    let left = match advice.findings.len() - count {
        0 => String::new(),
        1 => "; one change is no sysctl of this host and is not in it".to_owned(),
        n => format!("; {n} changes are no sysctls of this host and are not in it"),
    };
    note!("wrote {}: copy it to /etc/sysctl.d and run `sysctl --system`{left}", file.shown());
    Ok(())
}
