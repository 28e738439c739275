use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use sweetspot_testing::ssh::{FAR_ADDRESS, Ssh};

use super::content::{self, Content, LARGE_FILE, MANY_FILES};
use super::drawn::{DrawnCase, DrawnResult};

/// One program transferring one content on this host, through the benchmark's own sshd.
#[derive(Debug, Clone)]
pub struct LocalCase {
    pub name: String,
    pub device: Device,
    pub content: Content,
    pub program: &'static Program,
}

/// How the two ends are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Device {
    Loopback,
    /// A pair of virtual Ethernet devices between two network namespaces.
    Veth,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Loopback => "loopback",
            Device::Veth => "veth",
        })
    }
}

/// A program that transfers files.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    /// A shell command; `$SRC`, `$DST`, `$HOST`, `$AT_FAR` (runs a command there), `$SSH`, `$CONF`, `$KEY` and `$SWEETSPOT` are
    /// set.
    command: &'static str,
    /// Whether it can also transfer directories.
    moves_trees: bool,
    /// Whether the received data must equal the sent data.
    is_faithful: bool,
    /// The program that it requires, besides ssh.
    needs: Option<&'static str>,
    /// It runs once in this many rounds, with few files and with many small ones.
    every: [usize; 2],
}

impl Program {
    /// Whether it transfers `content` in this round.
    fn runs_in(&self, round: usize, content: Content) -> bool {
        let [few_files, many_files] = self.every;
        let every = if matches!(content, Content::SmallFiles(_)) { many_files } else { few_files };
        round.is_multiple_of(every)
    }

    /// Whether its requirements are installed.
    pub fn is_there(&self) -> bool {
        let version = |program| Command::new(program).arg("--version").output();
        self.needs.is_none_or(|program| version(program).is_ok())
    }
}

/// The results over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalResult {
    pub program: String,
    pub device: Device,
    pub content: String,
    pub bytes: u64,
    /// Time of each run, in seconds, including the start of ssh.
    pub seconds: Vec<f64>,
    /// User and system time of the near end for each run, in seconds.
    pub near_cpu: Vec<f64>,
}

/// In the first round only: without batches, each small file takes several RTTs, which makes minutes in total.
const ONCE: usize = usize::MAX;

const PUSH: Program = Program {
    name: "sweetspot copy",
    command: "\"$SWEETSPOT\" copy --quiet --ssh \"$SSH\" --remote-program \"$SWEETSPOT\" \"$SRC\" far:\"$DST\"",
    moves_trees: true,
    is_faithful: true,
    needs: None,
    every: [1, 1],
};

const PULL: Program = Program {
    name: "sweetspot copy, pulling",
    command: "\"$SWEETSPOT\" copy --quiet --ssh \"$SSH\" --remote-program \"$SWEETSPOT\" far:\"$SRC\" \"$DST\"",
    moves_trees: true,
    is_faithful: true,
    needs: None,
    every: [1, 1],
};

const PROGRAMS: [Program; 7] = [
    PUSH,
    Program {
        name: "rsync -a over ssh",
        command: "rsync -a -e \"$SSH\" \"$SRC\" far:\"$DST\"",
        moves_trees: true,
        is_faithful: true,
        needs: Some("rsync"),
        every: [1, 1],
    },
    Program {
        name: "scp -r",
        command: "scp -q -r -F \"$CONF\" -o HostName=$HOST \"$SRC\" far:\"$DST\"",
        moves_trees: true,
        is_faithful: true,
        needs: None,
        every: [1, ONCE],
    },
    Program {
        name: "rclone copy over sftp, 8 at a time",
        command: "test -d \"$SRC\" && DST=\"$DST/$(basename \"$SRC\")\"; \
                  rclone -q copy --config /dev/null --transfers 8 \"$SRC\" \
                  \":sftp,host=$HOST,port=2222,user=root,key_file=$KEY:$DST\"",
        moves_trees: true,
        is_faithful: true,
        needs: Some("rclone"),
        every: [9, ONCE],
    },
    Program {
        name: "tar over ssh",
        command: "tar -C \"$(dirname \"$SRC\")\" -cf - \"$(basename \"$SRC\")\" | $SSH far \"tar -xf - -C '$DST'\"",
        moves_trees: true,
        is_faithful: true,
        needs: Some("tar"),
        every: [3, ONCE],
    },
    Program {
        name: "curl to sftp",
        command: "curl -s --insecure --key \"$KEY\" -u root: -T \"$SRC\" \"sftp://$HOST:2222$DST/\"",
        moves_trees: false,
        is_faithful: true,
        needs: Some("curl"),
        every: [3, ONCE],
    },
    Program {
        name: "iperf3 -F, neither encrypted nor verified",
        command: "$AT_FAR iperf3 -s -1 -D -F \"$DST/$(basename \"$SRC\")\" && sleep 0.2 && iperf3 -c $HOST -t 60 -F \"$SRC\" >/dev/null",
        moves_trees: false,
        is_faithful: false,
        needs: Some("iperf3"),
        every: [1, ONCE],
    },
];

/// A copy from this end or to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    Push,
    Pull,
}

/// Each content with each program that can transfer it.
pub fn local_cases() -> Vec<LocalCase> {
    let cases = [
        ("file", Device::Loopback, LARGE_FILE),
        ("veth", Device::Veth, LARGE_FILE),
        ("small", Device::Loopback, MANY_FILES),
        ("veth-small", Device::Veth, MANY_FILES),
        ("mixed", Device::Loopback, Content::MixedTree),
    ];
    let case = |(name, device, content): (&str, Device, Content)| {
        let moved =
            move |program: &&Program| program.moves_trees || matches!(content, Content::OneFile(_));
        let named = move |program: &'static Program| {
            let short = program.name.split(' ').next().unwrap_or(program.name);
            LocalCase { name: format!("{name}-{short}"), device, content, program }
        };
        PROGRAMS.iter().filter(moved).map(named).collect::<Vec<_>>()
    };
    cases.into_iter().flat_map(case).collect()
}

/// The benchmark's own ssh server and client.
pub struct Peers {
    scratch: PathBuf,
    ssh: Ssh,
}

impl Peers {
    /// Creates keys and configurations in `scratch`, preferably in memory.
    pub fn new(scratch: &Path) -> Result<Peers, String> {
        let ssh = Ssh::configure(scratch)
            .map_err(|error| format!("{error} (apt-get install openssh-client openssh-server)"))?;
        Ok(Peers { scratch: scratch.to_owned(), ssh })
    }

    /// Runs the cases of one content in turn, for `rounds` rounds.
    pub fn measure(
        &self,
        cases: &[LocalCase],
        rounds: usize,
        program: &Path,
    ) -> Result<Vec<LocalResult>, String> {
        let mut results = Vec::new();
        for case in cases {
            let (_, bytes) = case.content.make(&self.scratch).map_err(|e| e.to_string())?;
            results.push(LocalResult {
                program: case.program.name.to_owned(),
                device: case.device,
                content: case.content.in_words(),
                bytes,
                seconds: Vec::new(),
                near_cpu: Vec::new(),
            });
        }
        for round in 0..rounds {
            for (case, result) in cases.iter().zip(&mut results) {
                if case.program.runs_in(round, case.content) {
                    let (took, cpu) = self.run_checked(case, program)?;
                    result.seconds.push(took);
                    result.near_cpu.push(cpu);
                }
            }
        }
        Ok(results)
    }

    /// Runs a case and compares the files at both ends. Returns the time in seconds and the near end's CPU time.
    fn run_checked(&self, case: &LocalCase, program: &Path) -> Result<(f64, f64), String> {
        let (source, bytes) = case.content.make(&self.scratch).map_err(|e| e.to_string())?;
        let target = self.scratch.join("target");
        let _ = fs::remove_dir_all(&target);
        fs::create_dir(&target).map_err(|e| e.to_string())?;
        content::touch_free_memory(bytes);
        let times = self.run(case, &source, &target, program)?;
        if case.program.is_faithful {
            let moved = target.join(source.file_name().unwrap_or_default());
            let mut diff = Command::new("diff");
            run(diff.arg("-rq").arg(&source).arg(&moved), &format!("{}: diff", case.name))?;
        }
        let _ = fs::remove_dir_all(&target);
        Ok(times)
    }

    /// CPU time of this end for one `sweetspot copy` of a file of `bytes` bytes over loopback, in seconds.
    pub fn copy_cpu(
        &self,
        direction: CopyDirection,
        bytes: u64,
        program: &Path,
    ) -> Result<f64, String> {
        let moved_by: &'static Program = match direction {
            CopyDirection::Push => &PUSH,
            CopyDirection::Pull => &PULL,
        };
        let (name, device, content) =
            ("copy".to_owned(), Device::Loopback, Content::OneFile(bytes));
        let case = LocalCase { name, device, content, program: moved_by };
        self.run_checked(&case, program).map(|(_, cpu)| cpu)
    }

    /// Runs a randomly drawn path.
    pub fn run_drawn(&self, case: &DrawnCase, program: &Path) -> Result<DrawnResult, String> {
        case.run(&self.scratch, program, &self.ssh)
    }

    /// Time in seconds and CPU time of the near end, for one run in a namespace with an sshd.
    fn run(
        &self,
        case: &LocalCase,
        source: &Path,
        target: &Path,
        program: &Path,
    ) -> Result<(f64, f64), String> {
        let script = format!(
            "begin=$(date +%s.%N); {}; code=$?; end=$(date +%s.%N)
             echo \"times $begin $end\"; times; exit $code",
            case.program.command
        );
        let (mut command, host) = match case.device {
            Device::Loopback => (self.ssh.beside_server(&script), "127.0.0.1"),
            Device::Veth => (self.ssh.across_veth(&script), FAR_ADDRESS),
        };
        let client = format!("{} -o HostName={host}", self.ssh.client());
        command.env("SRC", source).env("DST", target).env("SWEETSPOT", program);
        command.env("HOST", host).env("SSH", client).env("CONF", self.ssh.client_configuration());
        command.env("KEY", self.ssh.client_key());
        let output = command.output().map_err(|e| format!("unshare: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: {}: {said}", case.name, output.status));
        }
        let mut lines = text.lines().skip_while(|line| !line.starts_with("times "));
        let moments: Vec<f64> = lines
            .next()
            .unwrap_or_default()
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        // The shell's own times, then its children's: 0m1.234s 0m0.567s.
        let cpu = lines.nth(1).unwrap_or_default().split(' ').filter_map(minutes).sum();
        match moments[..] {
            [begin, end] => Ok((end - begin, cpu)),
            _ => Err(format!("{}: no times in {text:?}", case.name)),
        }
    }
}

fn minutes(word: &str) -> Option<f64> {
    let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: {status}")),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_times_are_parsed() {
        assert_eq!(minutes("0m1.250s"), Some(1.25));
        assert_eq!(minutes("2m3s"), Some(123.0));
        assert_eq!(minutes("1.5"), None);
    }
}
