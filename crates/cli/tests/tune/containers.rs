//! `sweetspot tune daemon --via bpf` with programs in a container: they have a cgroup and namespaces of their own, and no
//! privileges.

use std::path::Path;
use std::process::Command;

use sweetspot_kernel::probe;
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_linux::clock;

use crate::download::wait_for;
use crate::emulated::Emulated;

/// Downloads a URL with Java's own HTTP client.
const JAVA: &str = "\
import java.net.URI;
import java.net.http.*;
public class Get {
  public static void main(String[] a) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(a[0])).build();
    var body = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofInputStream()).body();
    body.transferTo(java.io.OutputStream.nullOutputStream());
  }
}";

/// Writes the files for nginx, rsync and Java.
fn write_files(dir: &Path) {
    std::fs::create_dir(dir.join("www")).unwrap();
    std::fs::File::create(dir.join("www/big")).unwrap().set_len(1 << 30).unwrap();
    std::fs::write(dir.join("Get.java"), JAVA).unwrap();
    let at = dir.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
        .join(" ");
    let config = format!(
        "daemon off; master_process off; pid {at}/far.pid; error_log {at}/far.log;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; {temporary} server {{ listen 8080; root {at}/www; }} }}\n"
    );
    std::fs::write(dir.join("far.conf"), config).unwrap();
    let rsync = format!("use chroot = no\n[www]\npath = {at}/www\nuid = 0\ngid = 0\n");
    std::fs::write(dir.join("rsyncd.conf"), rsync).unwrap();
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        sweetspot_testing::skipped(format!("there is no {program}"));
    }
    found
}

/// Asserts that the daemon tunes the connection of `command`, which runs in the container as `program`.
fn is_tuned(command: &str, far: &str, program: &str, needs: &[&str]) {
    if let Some(missing) = probe::obstacle() {
        sweetspot_testing::skipped(missing);
        return;
    }
    if !needs.iter().all(|program| is_installed(program)) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    write_files(dir);
    std::fs::write(dir.join("policy.toml"), "[[rule]]\ngoal = \"throughput\"\n").unwrap();
    let name = format!("test-of-container-{}", clock::now().as_nanos());
    let cgroup = Cgroup::of(std::process::id()).unwrap().create(&name).unwrap();
    let (at, path) = (dir.display(), cgroup.path().display());
    // The container's root has no capabilities, and no way to gain any.
    let container = "unshare --pid --fork --ipc --uts --mount --mount-proc \
                     setpriv --no-new-privs --inh-caps=-all --bounding-set=-all";
    let near = format!(
        "cd {at}; $SWEETSPOT tune daemon --via bpf --send --cgroup {path} --policy policy.toml --quiet \
           --events events.jsonl & sleep 1; \
         (echo 0 > {path}/cgroup.procs; exec {container} sh -c '{command}') & wait"
    );
    let line = "rate=100Mbit/s rtt=20ms buffer=500kB";
    let far = format!("cd {at}; nginx -c {at}/far.conf -e {at}/far.log & {far} wait");
    if let Some(emulated) = Emulated::start_with(line, &far, &near) {
        let markers = ["\"event\":\"taken\"".to_owned(), format!("\"program\":\"{program}\"")];
        wait_for(&format!("a connection of {program}"), || {
            let log = std::fs::read_to_string(dir.join("events.jsonl")).ok()?;
            log.lines().any(|line| markers.iter().all(|word| line.contains(word))).then_some(())
        });
        drop(emulated);
    }
    let _ = cgroup.dissolve();
}

const FILE: &str = "http://10.77.0.2:8080/big";

#[test]
fn curl_in_a_container_is_tuned() {
    let command = format!("exec curl -s --retry 9 --retry-connrefused -o /dev/null {FILE}");
    is_tuned(&command, "", "curl", &["curl", "nginx"]);
}

#[test]
fn python_in_a_container_is_tuned() {
    let command = format!(
        "until python3 -c \"import urllib.request as u; r = u.urlopen(\\\"{FILE}\\\")\nwhile r.read(65536): pass\"; do sleep 0.2; done"
    );
    is_tuned(&command, "", "python3", &["nginx"]);
}

#[test]
fn java_in_a_container_is_tuned() {
    let command = format!("until java Get.java {FILE}; do sleep 0.2; done");
    is_tuned(&command, "", "java", &["java", "nginx"]);
}

#[test]
fn rsync_in_a_container_is_tuned() {
    let far = "rsync --daemon --no-detach --port 8730 --config rsyncd.conf &";
    let command = "until rsync --whole-file --inplace rsync://10.77.0.2:8730/www/big copy; do sleep 0.2; done";
    is_tuned(command, far, "rsync", &["rsync", "nginx"]);
}

/// The tuned program is the server: it sends to a curl that is not tuned.
#[test]
fn nginx_sending_from_a_container_is_tuned() {
    let far = "until curl -s -o /dev/null http://10.77.0.1:8080/big; do sleep 0.2; done &";
    let command = "exec nginx -c $PWD/far.conf -e $PWD/far.log";
    is_tuned(command, far, "nginx", &["curl", "nginx"]);
}
