//! Transfers that are interrupted and resumed: at random moments, either end is killed, the path is cut, the disk is
//! full, or partial files are damaged.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};
use sweetspot_linux::clock;
use sweetspot_linux::signals::Signal;
use sweetspot_path::Random;
use sweetspot_units::Duration;

/// Number of interruptions per trial.
const FAULTS: u32 = 3;
/// Number of files per trial.
const FILES: usize = 40;
/// Maximum delay until a fault, in seconds.
const LATEST: f64 = 0.25;
/// Time limit for a transfer without further faults.
const PATIENCE: Duration = Duration::from_secs(60);
/// The share of bytes on the link that is not content: headers of records, pieces, TCP and IP; hashes; responses.
const OVERHEAD: f64 = 0.02;
/// Number of bytes damaged at a time.
const DAMAGE_BYTES: usize = 50;

/// A fault in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultKind {
    KillSender,
    KillReceiver,
    EndReceiver,
    CutPath,
    Damage,
    Truncate,
}

const KINDS: [(FaultKind, &str); 6] = [
    (FaultKind::KillSender, "sender killed (SIGKILL)"),
    (FaultKind::KillReceiver, "receiver killed (SIGKILL)"),
    (FaultKind::EndReceiver, "receiver ended (SIGTERM)"),
    (FaultKind::CutPath, "path cut for a while"),
    (FaultKind::Damage, "both killed, a partial file damaged"),
    (FaultKind::Truncate, "both killed, a partial file cut off"),
];
const DISK_FULL: &str = "disk full, then enlarged";

/// The results of all trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultResult {
    pub trials: u64,
    pub seed: u64,
    /// Content of one trial, bytes.
    pub content: u64,
    /// Number of occurrences of each fault.
    pub faults: BTreeMap<String, u64>,
    /// Files that were missing or had wrong content at the end.
    pub wrong: u64,
    /// Partial files left at the end.
    pub left: u64,
    /// Content sent twice, in bytes per interruption, for each trial in which nothing was damaged, sorted.
    pub twice: Vec<f64>,
}

/// The hosts of the trials: two processes on one loopback device.
struct Place {
    program: PathBuf,
    source: PathBuf,
    target: PathBuf,
    random: Random,
    content: u64,
    /// Bytes that servers transferred over the link before serving: each tests this kernel's receive window.
    tests: u64,
}

/// A server and the ticket that it printed.
struct Server {
    child: Child,
    ticket: String,
}

/// Runs trials with `program` in `scratch`. The caller must be alone in its namespaces.
pub fn run_faults(
    trials: u64,
    seed: u64,
    program: &Path,
    scratch: &Path,
) -> Result<FaultResult, String> {
    let mut place = Place::new(seed, program, scratch)?;
    let mut result = FaultResult {
        trials,
        seed,
        content: place.content,
        faults: BTreeMap::new(),
        wrong: 0,
        left: 0,
        twice: Vec::new(),
    };
    for trial in 0..trials {
        place.run(&mut result).map_err(|error| format!("trial {trial}: {error}"))?;
        if (trial + 1) % 50 == 0 {
            err!("{} of {trials} trials, {} files wrong", trial + 1, result.wrong);
        }
    }
    result.twice.sort_by(f64::total_cmp);
    Ok(result)
}

impl Place {
    fn new(seed: u64, program: &Path, scratch: &Path) -> Result<Place, String> {
        let mut random = Random::new(seed);
        let (source, target) = (scratch.join("source"), scratch.join("target"));
        for directory in [&source, &target] {
            fs::create_dir_all(directory).map_err(|e| e.to_string())?;
        }
        let mut content = 0;
        for number in 0..FILES {
            const SIZES: [u64; 5] = [100, 5000, 300_000, 3_000_000, 12_000_000];
            let size = SIZES[below(&mut random, 5) as usize] + below(&mut random, 1000);
            let bytes = noise(&mut random, size as usize);
            fs::write(source.join(format!("f{number}")), bytes).map_err(|e| e.to_string())?;
            content += size;
        }
        run("ip", &["link", "set", "lo", "up"])?;
        Ok(Place { program: program.to_owned(), source, target, random, content, tests: 0 })
    }

    /// One trial, from an empty directory to the end.
    fn run(&mut self, result: &mut FaultResult) -> Result<(), String> {
        let target = self.target.display().to_string();
        let full = below(&mut self.random, 6) == 0;
        let size = if full { self.content / 2 } else { self.content * 3 };
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", &target])?;
        let finished = self.transfer(result, full);
        if finished.is_ok() {
            let (wrong, left) = self.judge()?;
            result.wrong += wrong;
            result.left += left;
        }
        run("umount", &[&target])?;
        finished
    }

    fn transfer(&mut self, result: &mut FaultResult, full: bool) -> Result<(), String> {
        let before = bytes_on_link()?;
        self.tests = 0;
        let (mut done, mut damaged) = (0, false);
        let mut server = self.serve()?;
        let ended = loop {
            let (fault, name) = KINDS[below(&mut self.random, KINDS.len() as u64) as usize];
            let disturbed = done < FAULTS;
            let waits = !disturbed || fault == FaultKind::CutPath;
            let mut sender = self.send(&server.ticket, if waits { "60s" } else { "1ms" })?;
            if disturbed {
                done += 1;
                *result.faults.entry(name.to_owned()).or_default() += 1;
                sleep(Duration::from_secs_f64(self.random.unit() * LATEST));
                damaged |= self.disturb(fault, &mut sender, &mut server)?;
            }
            let status = wait(&mut sender)?;
            if status.success() {
                break Ok(());
            }
            if full && self.is_small()? {
                *result.faults.entry(DISK_FULL.to_owned()).or_default() += 1;
                let size = format!("remount,size={}", self.content * 3);
                run("mount", &["-o", &size, &self.target.display().to_string()])?;
            } else if !disturbed {
                let mut printed = String::new();
                if let Some(mut stderr) = sender.stderr.take() {
                    // Unreadable output is ignored.
                    let _ = stderr.read_to_string(&mut printed);
                }
                break Err(format!(
                    "the undisturbed transfer failed: {status}: {}",
                    printed.trim()
                ));
            }
        };
        Signal::TERMINATE.send(server.child.id());
        wait(&mut server.child)?;
        ended?;
        if !damaged {
            let sent = bytes_on_link()?.saturating_sub(before + self.tests) as f64;
            let twice = sent - self.content as f64 * (1.0 + OVERHEAD);
            result.twice.push(twice.max(0.0) / f64::from(FAULTS));
        }
        Ok(())
    }

    /// Injects `fault`; returns whether content was damaged.
    fn disturb(
        &mut self,
        fault: FaultKind,
        sender: &mut Child,
        server: &mut Server,
    ) -> Result<bool, String> {
        match fault {
            FaultKind::KillSender => kill(sender),
            FaultKind::KillReceiver => {
                kill(&mut server.child);
                *server = self.serve()?;
            }
            FaultKind::EndReceiver => {
                Signal::TERMINATE.send(server.child.id());
                wait(&mut server.child)?;
                *server = self.serve()?;
            }
            FaultKind::CutPath => {
                run("ip", &["link", "set", "lo", "down"])?;
                sleep(Duration::from_secs_f64(self.random.unit()));
                run("ip", &["link", "set", "lo", "up"])?;
            }
            FaultKind::Damage | FaultKind::Truncate => {
                kill(sender);
                kill(&mut server.child);
                let damaged = self.damage(fault == FaultKind::Truncate)?;
                *server = self.serve()?;
                return Ok(damaged);
            }
        }
        Ok(false)
    }

    /// Damages each partial file; returns whether there was any.
    fn damage(&mut self, cut_off: bool) -> Result<bool, String> {
        let partial = self.partial_files()?;
        for path in &partial {
            let failed = |error: std::io::Error| format!("{}: {error}", path.display());
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            let at = below(&mut self.random, file.metadata().map_err(failed)?.len() + 1);
            if cut_off {
                file.set_len(at).map_err(failed)?;
            } else {
                let noise = noise(&mut self.random, DAMAGE_BYTES);
                file.write_all_at(&noise, at).map_err(failed)?;
            }
        }
        Ok(!partial.is_empty())
    }

    fn partial_files(&self) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(&self.target).map_err(|e| e.to_string())?;
        let paths = entries.flatten().map(|entry| entry.path());
        let partial = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".sweetspot-"))
        };
        Ok(paths.filter(partial).collect())
    }

    /// Whether the target's file system is smaller than the content.
    fn is_small(&self) -> Result<bool, String> {
        let status = rustix::fs::statvfs(&self.target).map_err(|e| e.to_string())?;
        Ok(status.f_blocks * status.f_frsize < self.content)
    }

    fn serve(&mut self) -> Result<Server, String> {
        let before = bytes_on_link()?;
        let mut command = Command::new(&self.program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--dir"]).arg(&self.target);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("serve: {e}"))?;
        let output = child.stdout.take().ok_or("serve: no output")?;
        let mut ticket = String::new();
        BufReader::new(output).read_line(&mut ticket).map_err(|e| format!("serve: {e}"))?;
        self.tests += bytes_on_link()?.saturating_sub(before);
        Ok(Server { child, ticket: ticket.trim().to_owned() })
    }

    fn send(&self, ticket: &str, retry_for: &str) -> Result<Child, String> {
        let mut command = Command::new(&self.program);
        command.arg("send").arg(self.source.join("")).arg(ticket);
        command.args(["--quiet", "--retry-for", retry_for]);
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        spawned.map_err(|e| format!("send: {e}"))
    }

    /// The number of wrong files, and of partial files left.
    fn judge(&self) -> Result<(u64, u64), String> {
        let mut wrong = 0;
        for number in 0..FILES {
            let name = format!("f{number}");
            let sent = fs::read(self.source.join(&name)).map_err(|e| e.to_string())?;
            let received = fs::read(self.target.join(&name));
            wrong += u64::from(received.map_or(true, |received| received != sent));
        }
        Ok((wrong, self.partial_files()?.len() as u64))
    }
}

fn sleep(time: Duration) {
    clock::sleep_until(clock::now() + time);
}

/// A random number below `n`.
fn below(random: &mut Random, n: u64) -> u64 {
    (random.unit() * n as f64) as u64
}

/// `size` random bytes.
fn noise(random: &mut Random, size: usize) -> Vec<u8> {
    let words = (0..size.div_ceil(8)).flat_map(|_| random.bits().to_ne_bytes());
    words.take(size).collect()
}

fn kill(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let until = clock::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status);
        }
        if clock::now() >= until {
            kill(child);
            return Err(format!("a process did not end in {PATIENCE}"));
        }
        sleep(Duration::from_millis(5));
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", arguments.join(" "), printed.trim()))
}

/// Bytes carried by the loopback device so far.
fn bytes_on_link() -> Result<u64, String> {
    let file = File::open("/proc/self/net/dev").map_err(|e| e.to_string())?;
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let found = lines.filter_map(|line| {
        let received = line.trim().strip_prefix("lo:")?.split_whitespace().next()?.to_owned();
        received.parse().ok()
    });
    found.last().ok_or_else(|| "there is no loopback device".to_owned())
}
