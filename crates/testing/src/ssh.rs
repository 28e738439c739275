//! An ssh server and client on loopback, in a separate network namespace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether something listens on port 2222: sshd goes into the background before it listens.
const LISTENS: &str = "cat /proc/net/tcp /proc/net/tcp6 | grep -q ':08AE '";
/// The server's program.
pub const SSHD: &str = "/usr/sbin/sshd";
/// The server's address behind a veth pair.
pub const FAR_ADDRESS: &str = "10.77.0.2";

/// Keys and configurations of an ssh server and its client, which calls it `far`, or `gate` as a jump host.
pub struct Ssh {
    directory: PathBuf,
}

impl Ssh {
    /// Makes keys and configurations in `directory`.
    pub fn configure(directory: &Path) -> io::Result<Ssh> {
        let ssh = Ssh { directory: directory.to_owned() };
        for key in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            let made = command.args(["-q", "-t", "ed25519", "-N", "", "-f", &ssh.at(key)]).status();
            if !made?.success() {
                return Err(io::Error::other("ssh-keygen failed"));
            }
        }
        fs::copy(ssh.at("user.pub"), ssh.at("authorized"))?;
        let server = format!(
            "Port 2222\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             PermitRootLogin yes\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n",
            ssh.at("host"),
            ssh.at("authorized")
        );
        fs::write(ssh.at("sshd.conf"), server)?;
        let client = format!(
            "Host far gate\nHostName 127.0.0.1\nPort 2222\nIdentityFile {}\nStrictHostKeyChecking no\n\
             UserKnownHostsFile /dev/null\nLogLevel ERROR\n",
            ssh.at("user")
        );
        fs::write(ssh.client_configuration(), client)?;
        Ok(ssh)
    }

    /// A shell command that runs the client.
    pub fn client(&self) -> String {
        format!("ssh -F {}", self.client_configuration())
    }

    /// The client's configuration.
    pub fn client_configuration(&self) -> String {
        self.at("ssh.conf")
    }

    /// The server's configuration; it listens on loopback.
    pub fn server_configuration(&self) -> String {
        self.at("sshd.conf")
    }

    /// The client's private key, which the server accepts on port 2222.
    pub fn client_key(&self) -> String {
        self.at("user")
    }

    /// Runs `script` with `sh -c` next to the server, in namespaces that end with it.
    pub fn beside_server(&self, script: &str) -> Command {
        let script = format!(
            "ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/sshd && {SSHD} -f {} || exit 1\n\
             until {LISTENS}; do sleep 0.01; done\n{script}",
            self.at("sshd.conf")
        );
        in_namespaces(&script)
    }

    /// Runs `script` with `sh -c`, with the server at [`FAR_ADDRESS`] behind a veth pair, in namespaces that end with
    /// it. In the script, `$AT_FAR COMMAND` runs a command at the far end.
    pub fn across_veth(&self, script: &str) -> Command {
        let script = format!(
            "mount -t tmpfs tmpfs /run && mkdir /run/sshd && ip link set lo up || exit 1
             unshare --net sleep infinity & far=$!
             until [ \"$(readlink /proc/$far/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.01; done
             ip link add near type veth peer name far netns $far && ip address add 10.77.0.1/24 dev near &&
                 ip link set near up || exit 1
             AT_FAR=\"nsenter --net=/proc/$far/ns/net\"
             $AT_FAR sh -c \"ip link set lo up && ip address add {FAR_ADDRESS}/24 dev far &&
                 ip link set far up && {SSHD} -f {} -o ListenAddress={FAR_ADDRESS} &&
                 until {LISTENS}; do sleep 0.01; done\" || exit 1
             {script}",
            self.at("sshd.conf")
        );
        in_namespaces(&script)
    }

    fn at(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

fn in_namespaces(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c", script]);
    command
}
