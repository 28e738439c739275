use std::error::Error;
use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use serde::Serialize;
use sweetspot_linux::{clock, signals};
use sweetspot_protocol::TicketHost;
use sweetspot_units::Duration;

use super::messages::{self, Reply};

/// The shell's exit code if a command does not exist.
const NOT_FOUND: i32 = 127;
/// ssh's exit code for a failed connection.
const SSH_FAILED: i32 = 255;
/// clap's exit code for an unknown command line.
const USAGE: i32 = 2;

/// The largest part of ssh's configuration for a host that is read, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 1 << 20;

/// `sweetspot endpoint` on another host, reached through ssh.
pub struct FarEnd {
    child: Option<Child>,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    ssh: String,
    host: String,
    program: String,
}

/// The error that ssh ended before the copy.
#[derive(Debug)]
pub struct SshEnded {
    ssh: String,
    host: String,
    program: String,
    code: Option<i32>,
    /// Whether this host's shell could not start ssh.
    here: bool,
    /// Whether the far end kept printing text that is not a message.
    babbled: bool,
}

impl SshEnded {
    /// Whether the path may be the cause, so that another attempt may succeed.
    pub fn is_of_the_path(&self) -> bool {
        !self.babbled && !matches!(self.code, Some(NOT_FOUND | USAGE))
    }
}

impl fmt::Display for SshEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SshEnded { ssh, host, program, code, here, babbled } = self;
        match code {
            _ if *babbled => write!(
                f,
                "{host} keeps printing text that does not come from {program}: a startup file of the shell there may print that text \
                 (`{ssh} {host} true` should print little)"
            ),
            Some(NOT_FOUND) if *here => write!(
                f,
                "cannot run \"{ssh}\": install an ssh client (openssh-client), or name one with --ssh"
            ),
            Some(NOT_FOUND) => write!(
                f,
                "there is no {program} on {host}: install it there, or give its path with --remote-program"
            ),
            Some(SSH_FAILED) => {
                write!(f, "ssh could not connect to {host}; try `{ssh} {host}` by itself")
            }
            Some(USAGE) => write!(
                f,
                "{program} on {host} is another version, without `endpoint`; install this version there"
            ),
            Some(code) => write!(
                f,
                "{program} on {host} ended with code {code}; try `{ssh} {host} {program} --version`"
            ),
            None => write!(f, "a signal ended ssh to {host}; start the copy again to resume it"),
        }
    }
}

impl Error for SshEnded {}

impl FarEnd {
    pub fn start(
        ssh: &str,
        jump: Option<&str>,
        host: &str,
        program: &str,
    ) -> Result<FarEnd, String> {
        let mut command = ssh_command(ssh, jump);
        // The shell splits --ssh, which may contain options and spaces. After `--`, the host is never read as an
        // option, and the far end's command has only fixed words.
        command.args(["--", host, &format!("{program} endpoint")]);
        signals::end_with_parent(&mut command);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| {
            format!("cannot start {ssh}: {error}; install an ssh client (openssh-client)")
        })?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("ssh has no standard input or output".into());
        };
        let (ssh, host, program) = (ssh.to_owned(), host.to_owned(), program.to_owned());
        let (child, output) = (Some(child), Some(BufReader::new(output)));
        Ok(FarEnd { child, input: Some(input), output, ssh, host, program })
    }

    pub fn write_message(&mut self, line: &impl Serialize) -> Result<(), Box<dyn Error>> {
        let result = match &mut self.input {
            Some(input) => messages::write_message(input, line),
            None => Ok(()),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => error.into(),
            _ => self.ended().into(),
        })
    }

    /// Reads the far end's next message.
    pub fn read_message(&mut self) -> Result<Reply, SshEnded> {
        let message = self.output.as_mut().map(messages::read_message);
        match message {
            Some(Ok(Some(reply))) => Ok(reply),
            Some(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                // ssh would not end by itself.
                self.child.as_mut().map(Child::kill);
                Err(SshEnded { babbled: true, ..self.ended() })
            }
            _ => Err(self.ended()),
        }
    }

    /// The process ID of ssh; `None` if it has ended.
    pub fn ssh_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Calls `then` when ssh has ended, for any reason. No more messages can be read.
    pub fn on_end(&mut self, then: impl FnOnce() + Send + 'static) {
        let Some(mut output) = self.output.take() else { return };
        // This thread is not joined: it ends with the far end.
        thread::spawn(move || {
            let _ = io::copy(&mut output, &mut io::sink());
            then();
        });
    }

    /// Waits until ssh ends by itself.
    pub fn close(mut self) {
        self.input = None;
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Waits for the end of ssh, and returns the error that it ended too soon.
    pub fn ended(&mut self) -> SshEnded {
        self.input = None;
        let status = self.child.as_mut().and_then(|child| child.wait().ok());
        let code = status.and_then(|status| status.code());
        let here = code == Some(NOT_FOUND) && !is_installed(&self.ssh);
        let (ssh, host, program) = (self.ssh.clone(), self.host.clone(), self.program.clone());
        SshEnded { ssh, host, program, code, here, babbled: false }
    }
}

/// The host's name in ssh's configuration, unless there is a jump host.
pub fn name_of(ssh: &str, jump: Option<&str>, host: &str) -> Option<TicketHost> {
    let mut command = ssh_command(ssh, jump);
    signals::end_with_parent(&mut command);
    command.args(["-G", "--", host]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let mut printed = Vec::new();
    let read =
        child.stdout.take().map(|out| out.take(MAX_CONFIGURATION_BYTES).read_to_end(&mut printed));
    // ssh has already ended, unless it prints more than the limit.
    let _ = child.kill();
    let _ = child.wait();
    let text = read.and_then(Result::ok).map(|_| String::from_utf8_lossy(&printed))?;
    let name = text.lines().find_map(|line| line.strip_prefix("hostname "));
    // A jump host may resolve the name differently.
    let jumps =
        text.lines().any(|line| line.strip_prefix("proxyjump ").is_some_and(|to| to != "none"));
    name.filter(|_| !jumps).and_then(TicketHost::parse)
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        // When its standard input ends, the far end ends, too.
        self.input = None;
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether this host's shell finds ssh. A far shell that does not find its command ends with the same code.
fn is_installed(ssh: &str) -> bool {
    let mut command = ssh_command(ssh, None);
    signals::end_with_parent(&mut command);
    command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.code() != Some(NOT_FOUND))
}

fn ssh_command(ssh: &str, jump: Option<&str>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {ssh} \"$@\""), "ssh"]);
    if let Some(jump) = jump {
        command.args(["-J", jump]);
    }
    command
}

/// A local port that forwards one connection through ssh.
pub struct Tunnel {
    port: u16,
    child: Child,
    pump: JoinHandle<()>,
}

impl Tunnel {
    /// Uses the standard input and output of the far end for the connection.
    pub fn open(mut far_end: FarEnd) -> io::Result<Tunnel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let ends = (far_end.child.take(), far_end.input.take(), far_end.output.take());
        let (Some(child), Some(input), Some(output)) = ends else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let pump = thread::spawn(move || {
            if let Ok((socket, _)) = listener.accept() {
                drop(listener);
                let _ = pump_both(&socket, output, input);
            }
        });
        Ok(Tunnel { port, child, pump })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes the tunnel after the transfer.
    pub fn close(mut self) {
        let child = &mut self.child;
        // The pump ends when the connection does; a child that stays longer is killed.
        for _ in 0..50 {
            if self.pump.is_finished() && matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            clock::sleep_until(clock::now() + Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Copies bytes between a connection and two streams until the connection ends.
pub fn pump_both(
    socket: &TcpStream,
    mut from: impl Read + Send,
    mut to: impl Write + Send,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pump(&mut from, &mut &*socket);
            let _ = socket.shutdown(Shutdown::Write);
        });
        let pumped = pump(&mut &*socket, &mut to);
        // Stops the writing side of the other direction; its reading side ends with the other end's stream.
        let _ = socket.shutdown(Shutdown::Both);
        drop(to);
        pumped
    })
}

/// Copies bytes as they arrive, and flushes at once.
fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            n => {
                to.write_all(&buffer[..n])?;
                to.flush()?;
            }
        }
    }
}
