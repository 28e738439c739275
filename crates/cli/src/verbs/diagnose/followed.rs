//! Growing captures: a device, a file that is being written, a sequence of files.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::in_order::{Frame, InOrder};
use sweetspot_diagnose::counted;
use sweetspot_linux::clock;
use sweetspot_linux::packet::PacketTap;
use sweetspot_linux::route::RouteNetlink;
use sweetspot_program::print::Shown;
use sweetspot_program::usage_error::UsageError;
use sweetspot_trace::file::{Decoder, LARGEST_RECORD, Record};
use sweetspot_trace::packet::Link;
use sweetspot_units::{Duration, Time};

/// Time to wait for a file to grow, or for packets between two checks for signals.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// The name for all devices together, as in tcpdump.
pub const ALL_DEVICES: &str = "any";

/// The source of packets.
pub enum Followed {
    /// A network device.
    Device { tap: PacketTap, link: Link, frames: InOrder },
    /// A file or a directory of files.
    Files(FollowedFiles),
}

/// Whether this network namespace has the device. /sys may show another namespace, as in `emulate`.
fn is_device(name: &str) -> bool {
    RouteNetlink::new().and_then(|mut netlink| netlink.index_of(name)).is_ok()
}

impl Followed {
    /// Opens the device, file or directory `what`, or all devices if it is "any". A device takes precedence over a
    /// file of the same name.
    pub fn open(what: &Path) -> Result<Followed, Box<dyn std::error::Error>> {
        let name = what.shown();
        let is_device = what.components().count() == 1 && is_device(&name.to_string());
        let all = what == Path::new(ALL_DEVICES) && !is_device;
        if !is_device && !all {
            if !what.exists() {
                let given = name.to_string();
                if given.parse::<u32>().is_ok() || given.contains(':') {
                    return Err(UsageError::new(format!(
                        "--follow {name}: expected a device, a capture or a directory; a process or a connection is the target: \
                         sweetspot diagnose {name}"
                    ))
                    .into());
                }
                return Err(UsageError::new(format!(
                    "--follow {name}: there is no such device, file or directory; ip link lists \
                     the devices, and any is all of them. To follow a file, start its tcpdump first, or follow \
                     its directory"
                ))
                .into());
            }
            return Ok(Followed::Files(FollowedFiles { path: what.to_owned(), current: None }));
        }
        let opened = if all { PacketTap::open_all() } else { PacketTap::open(&name.to_string()) };
        let tap = opened.map_err(|error| {
            format!("cannot tap {name}: {error}; run as root or with CAP_NET_RAW (setcap cap_net_raw+ep)")
        })?;
        let link = link(tap.hardware()).ok_or_else(|| {
            format!("--follow {name}: packets of that kind of device are not known here")
        })?;
        Ok(Followed::Device { tap, link, frames: InOrder::default() })
    }

    /// Passes packets to `take` until `due`. Returns earlier if there were any.
    pub fn receive(&mut self, due: Time, take: &mut dyn FnMut(&Record<'_>)) -> Result<(), String> {
        match self {
            Followed::Files(files) => files.receive(due, take),
            Followed::Device { tap, link, frames } => {
                let mut has_any = false;
                tap.receive(due, &mut |frame| {
                    has_any = true;
                    let bytes = frame.bytes.into();
                    frames.add(Frame { arrived: frame.arrived, bytes, length: frame.length });
                })
                .map_err(|error| format!("cannot read from the device: {error}"))?;
                let work = &mut |frame: Frame| take(&frame.record(*link));
                if has_any {
                    frames.pass_on(work)
                } else {
                    frames.pass_all(work)
                }
                Ok(())
            }
        }
    }

    /// Passes the packets that still wait for earlier ones to `take`.
    pub fn finish(&mut self, take: &mut dyn FnMut(&Record<'_>)) {
        if let Followed::Device { link, frames, .. } = self {
            frames.pass_all(&mut |frame| take(&frame.record(*link)));
        }
    }

    /// Why there are no packets yet, if another program has to do something first.
    pub fn lacks(&self) -> Option<String> {
        match self {
            Followed::Files(FollowedFiles { path, current: None }) => {
                Some(format!("no capture in {} yet", path.shown()))
            }
            _ => None,
        }
    }

    /// Number of packets lost because they came too fast.
    pub fn lost(&mut self) -> u64 {
        match self {
            Followed::Device { tap, .. } => tap.lost().unwrap_or(0),
            Followed::Files(_) => 0,
        }
    }
}

impl Frame {
    fn record(&self, link: Link) -> Record<'_> {
        Record { time: self.arrived, link, bytes: &self.bytes, length: self.length }
    }
}

/// The link layer of devices of kind `hardware` (ARPHRD_*, if_arp.h).
fn link(hardware: u16) -> Option<Link> {
    match hardware {
        // Ethernet, and loopback, which has an Ethernet header.
        1 | 772 => Some(Link::Ethernet),
        512 => Some(Link::Ppp),
        801 => Some(Link::Wifi),
        803 => Some(Link::from_number(127)),
        // TUN, IP in IP, GRE: no link-layer header.
        65534 | 768 | 769 | 778 => Some(Link::Raw),
        _ => None,
    }
}

/// A file that grows or is replaced, or a directory in which new files appear.
pub struct FollowedFiles {
    path: PathBuf,
    current: Option<OpenCapture>,
}

struct OpenCapture {
    path: PathBuf,
    file: File,
    inode: u64,
    modified: SystemTime,
    decoder: Decoder,
    buffer: Vec<u8>,
    filled: usize,
    read: u64,
}

impl FollowedFiles {
    fn receive(&mut self, due: Time, take: &mut dyn FnMut(&Record<'_>)) -> Result<(), String> {
        if self.current.is_none() {
            self.current = self.next()?;
        }
        let grew = match &mut self.current {
            Some(current) => current.read(take)?,
            None => false,
        };
        if grew {
            return Ok(());
        }
        match self.next()? {
            Some(next) => self.current = Some(next),
            None => clock::sleep_until(due.min(clock::now() + PATIENCE)),
        }
        Ok(())
    }

    /// The next capture, if there is one yet.
    fn next(&self) -> Result<Option<OpenCapture>, String> {
        if !self.path.is_dir() {
            return self.replaced();
        }
        let name = self.path.shown();
        let listing =
            fs::read_dir(&self.path).map_err(|error| format!("cannot list {name}: {error}"))?;
        let mut files: Vec<(SystemTime, PathBuf)> = listing
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let about = entry.metadata().ok().filter(|about| about.is_file())?;
                Some((about.modified().ok()?, entry.path()))
            })
            .collect();
        files.sort();
        let next = match &self.current {
            // Begin with the newest file, and then take each in turn.
            None => {
                let newest = files.pop();
                self.report_skipped(files.len());
                newest
            }
            Some(current) => files.into_iter().find(|(modified, path)| {
                (*modified, path) > (current.modified, &current.path) && *path != current.path
            }),
        };
        next.map(|(_, path)| OpenCapture::open(path)).transpose()
    }

    /// Tells how to read the older files of the directory, which following it leaves out.
    fn report_skipped(&self, count: usize) {
        if count > 0 {
            let files = counted(count as u64, "older file", "older files");
            note!("{files} skipped; sweetspot diagnose {} reads the captures", self.path.shown());
        }
    }

    /// Opens the file again if it was replaced or truncated.
    fn replaced(&self) -> Result<Option<OpenCapture>, String> {
        // During a replacement the file may be missing for a moment.
        let Ok(about) = fs::metadata(&self.path) else { return Ok(None) };
        let same = self
            .current
            .as_ref()
            .is_some_and(|current| current.inode == about.ino() && current.read <= about.len());
        if same { Ok(None) } else { OpenCapture::open(self.path.clone()).map(Some) }
    }
}

impl OpenCapture {
    fn open(path: PathBuf) -> Result<OpenCapture, String> {
        let opened = || {
            let file = File::open(&path)?;
            let about = file.metadata()?;
            Ok((file, about.ino(), about.modified()?))
        };
        let (file, inode, modified) = opened()
            .map_err(|error: std::io::Error| format!("cannot open {}: {error}", path.shown()))?;
        let buffer = vec![0; 4 * LARGEST_RECORD];
        let decoder = Decoder::default();
        Ok(OpenCapture { path, file, inode, modified, decoder, buffer, filled: 0, read: 0 })
    }

    /// Passes new records to `take`; returns whether there were any.
    fn read(&mut self, take: &mut dyn FnMut(&Record<'_>)) -> Result<bool, String> {
        let name = self.path.shown();
        let n = self
            .file
            .read(&mut self.buffer[self.filled..])
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        if n > 0 {
            self.read += n as u64;
            // A file in a directory follows this one only if it was written later.
            self.modified =
                self.file.metadata().and_then(|a| a.modified()).unwrap_or(self.modified);
        }
        let end = self.filled + n;
        let mut input = &self.buffer[..end];
        while let Some(record) =
            self.decoder.next(&mut input).map_err(|error| format!("{name}: {error}"))?
        {
            take(&record);
        }
        let rest = input.len();
        self.buffer.copy_within(end - rest..end, 0);
        self.filled = rest;
        Ok(n > 0)
    }
}
