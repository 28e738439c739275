//! An ssh server and client on loopback, in a network namespace of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The server's program.
pub const SSHD: &str = "/usr/sbin/sshd";

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

    /// The client's private key, which the server takes at port 2222.
    pub fn client_key(&self) -> String {
        self.at("user")
    }

    /// Runs `script` by `sh -c` beside the server, in namespaces that end with it.
    pub fn beside_server(&self, script: &str) -> Command {
        let script = format!(
            "ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/sshd && {SSHD} -f {} || exit 1\n{script}",
            self.at("sshd.conf")
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["sh", "-c", &script]);
        command
    }

    fn at(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}
