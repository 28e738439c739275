//! Connections of other network namespaces.

use std::process::{Child, Command, Stdio};

use serde_json::Value;
use sweetspot_linux::clock;
use sweetspot_units::Duration;

use super::{TestResult, stderr, sweetspot};

/// A download over loopback within one process, with occasional pauses.
const SELF: &str = "\
import socket, threading, time
listener = socket.socket(); listener.bind(('127.0.0.1', 7777)); listener.listen()
near = socket.create_connection(('127.0.0.1', 7777)); far = listener.accept()[0]
def read():
    while near.recv(65536): pass
threading.Thread(target=read, daemon=True).start()
while True: far.sendall(bytes(2000)); time.sleep(0.02)";

/// A named network namespace with a process in it. Dropping the value removes both.
struct Namespace {
    name: String,
    process: Child,
}

impl Namespace {
    /// `None`, with the reason as a message, if this user may not create namespaces.
    fn new(test: &str) -> std::io::Result<Option<Namespace>> {
        let name = format!("sweetspot-{test}-{}", std::process::id());
        let ip = |arguments: &[&str]| Command::new("ip").args(arguments).output();
        let made = ip(&["netns", "add", &name]);
        if !made.as_ref().is_ok_and(|made| made.status.success()) {
            sweetspot_testing::skipped(format!(
                "cannot make a network namespace: {made:?} (run as root)"
            ));
            return Ok(None);
        }
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name, "python3", "-c", SELF]).stdin(Stdio::null());
        // Remove the namespace if the process does not start.
        let process = command.spawn().inspect_err(|_| drop(ip(&["netns", "delete", &name])))?;
        Ok(Some(Namespace { name, process }))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Repeats the command until its output has the wanted content, because the process needs time to
/// start.
fn poll_list(
    arguments: &[&str],
    list: &str,
    is_expected: impl Fn(&Value) -> bool,
) -> Result<Value, String> {
    let mut last = String::new();
    for _ in 0..20 {
        let output = sweetspot(arguments).map_err(|e| e.to_string())?;
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if let Some(found) =
            json[list].as_array().and_then(|all| all.iter().find(|c| is_expected(c)))
        {
            return Ok(found.clone());
        }
        last = stderr(&output) + &json.to_string();
        clock::sleep_until(clock::now() + Duration::from_millis(200));
    }
    Err(format!("{arguments:?}: {last}"))
}

#[test]
fn follow_works_on_a_device_in_another_namespace() -> TestResult {
    let Some(namespace) = Namespace::new("follow")? else { return Ok(()) };
    let arguments = ["diagnose", "--netns", &namespace.name, "--follow", "lo", "--for", "500ms"];
    let mut last = String::new();
    // The process in the namespace needs time to start.
    for _ in 0..20 {
        let output = sweetspot(&arguments)?;
        last = String::from_utf8(output.stdout.clone())? + &stderr(&output);
        if last.contains("127.0.0.1:7777") {
            return Ok(());
        }
    }
    Err(last.into())
}

#[test]
fn devices_are_looked_up_in_the_current_namespace_not_in_sysfs() -> TestResult {
    // /sys still shows the host's namespace, which has no such device.
    let script = "ip link add follow0 type veth peer name follow1 || exit 77; \
                  exec \"$0\" diagnose --follow follow0 --for 200ms";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", script]);
    let output = command.arg(env!("CARGO_BIN_EXE_sweetspot")).output()?;
    let printed = stderr(&output);
    if output.status.code() == Some(77) || printed.starts_with("unshare") {
        sweetspot_testing::skipped("no namespaces of an ordinary user here, or no veth");
        return Ok(());
    }
    assert!(!printed.contains("no such device"), "{printed}");
    // It is down.
    let table = String::from_utf8(output.stdout)?;
    assert!(table.contains("note: no TCP packets passed follow0 in 0."), "{table}");
    Ok(())
}

/// Without ARP, the packets reach the other device with a foreign address. The SYN is repeated after a second.
#[test]
fn a_connection_with_unanswered_syns_is_reported_as_never_established() -> TestResult {
    let script = "ip link add near type veth peer name far && ip addr add 192.0.2.1/24 dev near && \
                  ip link set near arp off up && ip link set far up || exit 77; \
                  : 3<>/dev/tcp/192.0.2.7/80 & \
                  while kill -0 $! && ! \"$0\" diagnose $! --json | grep never_established; do :; done; \
                  \"$0\" diagnose 192.0.2.7:80 --for 200ms; kill $!";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "bash", "-c", script]);
    let output = command.arg(env!("CARGO_BIN_EXE_sweetspot")).output()?;
    let printed = stderr(&output);
    if output.status.code() == Some(77) || printed.starts_with("unshare") {
        sweetspot_testing::skipped("no namespaces of an ordinary user here, or no veth");
        return Ok(());
    }
    let shown = String::from_utf8(output.stdout)?;
    let words = "The connection was never established: ";
    assert!(shown.contains(words) && shown.contains(" SYNs sent, no answer."), "{shown}{printed}");
    Ok(())
}

#[test]
fn connections_of_another_namespace_are_listed_and_diagnosed() -> TestResult {
    let Some(namespace) = Namespace::new("live")? else { return Ok(()) };
    let (name, pid) = (&namespace.name[..], namespace.process.id().to_string());
    let top = ["top", "--once", "--json", "--interval", "300ms", "--netns", name];
    let listed = poll_list(&top, "connections", |c| c["local"] == "127.0.0.1:7777")?;
    // The process belongs to this host, whatever the namespace of its connections.
    assert_eq!(listed["pid"].to_string(), pid);
    let sends = |flow: &Value| flow["source"] == "127.0.0.1:7777";
    let by_process = ["diagnose", &pid, "--for", "1s", "--json"];
    assert_eq!(poll_list(&by_process, "flows", sends)?["verdict"]["class"], "application");
    let by_address = ["diagnose", "127.0.0.1:7777", "--netns", name, "--for", "1s", "--json"];
    assert_eq!(poll_list(&by_address, "flows", sends)?["verdict"]["class"], "application");
    // This namespace has no such connection.
    let output = sweetspot(&["diagnose", "127.0.0.1:7777", "--for", "1s"])?;
    assert!(stderr(&output).contains("no TCP connection here"), "{}", stderr(&output));
    Ok(())
}
