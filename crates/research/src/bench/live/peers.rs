//! Other projects' servers, on the far side.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use sweetspot_emulator::{Emulation, Side};
use sweetspot_linux::live::{LiveSocket, ProcessHandle};
use sweetspot_linux::tcp::options;
use sweetspot_linux::{clock, processes};
use sweetspot_units::{Duration, Rate};

use super::plan::{Client, RunPlan};
use sweetspot_comparison::Program;

/// Size of the served file, bytes: more than any run can transfer.
const FILE_SIZE: u64 = 1_000_000_000;
/// The port on which every server listens.
pub const PORT: u16 = 8080;
/// A second port of nginx, for a client that is not measured.
pub const RIVAL_PORT: u16 = 8081;

/// A running server.
pub struct PeerServer {
    program: Program,
}

impl PeerServer {
    /// Starts the server for the plan's client with the plan's congestion control, and waits until
    /// it listens.
    pub fn start(plan: &RunPlan, far: &Side, scratch: &Path) -> Result<PeerServer, String> {
        let client = plan.client;
        let www = scratch.join("www");
        fs::create_dir_all(&www).map_err(|e| e.to_string())?;
        let file = File::create(www.join("big")).map_err(|e| e.to_string())?;
        file.set_len(FILE_SIZE).map_err(|e| e.to_string())?;
        let (mut command, package) = match client {
            Client::Curl(_) | Client::Again(_) | Client::SlowReader(_) => {
                (nginx(scratch, None)?, "nginx-light")
            }
            Client::SlowSender(rate) => (nginx(scratch, Some(rate))?, "nginx-light"),
            Client::Short(size) => {
                let short = File::create(www.join("short")).map_err(|e| e.to_string())?;
                short.set_len(size.get()).map_err(|e| e.to_string())?;
                (nginx(scratch, None)?, "nginx-light")
            }
            Client::Plain => (plain(), "python3"),
            Client::Rsync => (rsync(scratch)?, "rsync"),
            Client::Iperf3(_) | Client::Upload | Client::UploadAgain(_) => {
                let mut iperf3 = Command::new("iperf3");
                iperf3.args(["--server", "--port", &PORT.to_string()]);
                (iperf3, "iperf3")
            }
        };
        let program = Program::start(far, &mut command)
            .map_err(|e| format!("{e} (sudo apt-get install {package})"))?;
        let server = PeerServer { program };
        server.use_congestion_control(plan.congestion)?;
        Ok(server)
    }

    /// Sets the congestion control of the listening socket, which its connections inherit: none of
    /// these programs has an option for it.
    fn use_congestion_control(&self, name: &str) -> Result<(), String> {
        let patience = clock::now() + Duration::from_secs(5);
        while clock::now() < patience {
            let mut set = 0;
            for pid in processes::family(self.program.id()) {
                let Ok(process) = ProcessHandle::open(pid) else { continue };
                for d in processes::sockets(pid).unwrap_or_default() {
                    let Ok(socket) = LiveSocket::name(&process, d.fd, d.inode, None) else {
                        continue;
                    };
                    let done = socket.with(|fd| options::set_congestion(fd, name));
                    set += usize::from(matches!(done, Ok(Ok(()))));
                }
            }
            // Waits a little longer: the socket may exist before it listens.
            clock::sleep_until(clock::now() + Duration::from_millis(200));
            if set > 0 {
                return Ok(());
            }
        }
        Err("the server does not listen".to_owned())
    }

    /// Stops the server; returns the last line of its standard error, if any.
    pub fn stop(self) -> Option<String> {
        self.program.stop()
    }
}

/// The command that transfers data from or to the far side and discards it.
pub fn client(plan: &RunPlan, emulation: &Emulation, scratch: &Path) -> Command {
    let seconds = plan.length.as_secs_f64() as u64;
    let far = emulation.far().address();
    let curl = format!("curl --silent --output /dev/null http://{far}:{PORT}");
    let iperf3 = format!("iperf3 --client {far} --port {PORT}");
    let long = format!("--time {}", seconds + 5);
    shell(&match plan.client {
        Client::Curl(n) => format!("for i in $(seq {n}); do {curl}/big & done; wait"),
        Client::SlowSender(_) => format!("exec {curl}/big"),
        Client::SlowReader(rate) => {
            format!("exec {curl}/big --limit-rate {}", rate.bytes_per_second())
        }
        Client::Short(_) => {
            format!("while :; do {curl}/short --write-out '%{{speed_download}}\\n'; done")
        }
        Client::Again(first) => {
            format!("{curl}/big --max-time {}; exec {curl}/big", first.as_secs_f64())
        }
        Client::Plain => format!("exec bash -c 'exec cat < /dev/tcp/{far}/{PORT} > /dev/null'"),
        Client::Rsync => format!(
            "exec rsync --whole-file --inplace rsync://{far}:{PORT}/www/big {}",
            scratch.join("copy").display()
        ),
        Client::Iperf3(n) => format!("exec {iperf3} {long} --reverse --parallel {n}"),
        Client::Upload => format!("exec {iperf3} {long} --congestion {}", plan.congestion),
        Client::UploadAgain(first) => {
            let iperf3 = format!("{iperf3} --congestion {}", plan.congestion);
            format!("{iperf3} --time {}; exec {iperf3} {long}", first.as_secs_f64())
        }
    })
}

/// curl downloading one file from nginx, at one of its ports.
pub fn download_of(file: &str, port: u16, emulation: &Emulation) -> Command {
    let far = emulation.far().address();
    shell(&format!("exec curl --silent --output /dev/null http://{far}:{port}/{file}"))
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// Sends zeros to every client that connects.
fn plain() -> Command {
    let program = format!(
        "import socket\n\
         client, _ = socket.create_server(('', {PORT})).accept()\n\
         while True: client.sendall(bytes(262144))"
    );
    let mut command = Command::new("python3");
    command.args(["-c", &program]);
    command
}

fn nginx(scratch: &Path, pace: Option<Rate>) -> Result<Command, String> {
    let dir = scratch.display();
    let pace = pace.map_or(String::new(), |r| format!("limit_rate {};", r.bytes_per_second()));
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {dir}/{kind};"))
        .join(" ");
    // Started as root, nginx would drop its privileges and could not read the scratch directory.
    let config = format!(
        "daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.log; user root;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; {temporary}\n\
           server {{ listen {PORT}; listen {RIVAL_PORT}; {pace} root {dir}/www; }} }}\n"
    );
    let file = scratch.join("nginx.conf");
    fs::write(&file, config).map_err(|e| e.to_string())?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&file).arg("-e").arg(scratch.join("nginx.log"));
    Ok(command)
}

fn rsync(scratch: &Path) -> Result<Command, String> {
    let dir = scratch.display();
    let config =
        format!("use chroot = no\n[www]\npath = {dir}/www\nread only = yes\nuid = 0\ngid = 0\n");
    let file = scratch.join("rsyncd.conf");
    fs::write(&file, config).map_err(|e| e.to_string())?;
    let mut command = Command::new("rsync");
    command.args(["--daemon", "--no-detach", "--port", &PORT.to_string()]);
    command.arg("--config").arg(&file);
    Ok(command)
}
