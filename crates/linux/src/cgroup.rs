//! Control groups (cgroups(7), version 2).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_units::{Duration, Time};
use thiserror::Error;

use crate::clock;

/// The maximum wait for an exiting process. A process of 600 MB took 15 to 61 ms.
const LAST_ENDS: Duration = Duration::from_secs(1);

/// A cgroup of version 2.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: File,
}

/// Why a cgroup could not be opened, created or entered.
#[derive(Debug, Error)]
pub enum CgroupError {
    /// No cgroup v2 hierarchy is mounted on this host.
    #[error(
        "no version 2 cgroup is mounted (mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none \
         /sys/fs/cgroup/unified)"
    )]
    NotMounted,
    /// The process is in no cgroup that is visible here.
    #[error("process {pid} is in no version 2 cgroup that is visible here")]
    NoneOf {
        /// The process.
        pid: u32,
    },
    /// No cgroup has this name.
    #[error(
        "there is no cgroup {path}; name one like system.slice/nginx.service (`systemd-cgls` lists them)"
    )]
    Missing {
        /// The path at which the cgroup was expected.
        path: PathBuf,
    },
    /// The kernel refused a step.
    #[error("cannot {step} the cgroup {path}: {source}")]
    Failed {
        /// The failed step.
        step: &'static str,
        /// The cgroup's directory.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl CgroupError {
    /// Whether a cgroup with that name already exists.
    pub fn already_exists(&self) -> bool {
        matches!(self, CgroupError::Failed { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    }
}

impl Cgroup {
    /// Where cgroup v2 is mounted.
    pub fn mount_point() -> Result<PathBuf, CgroupError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        mount_point_in(&mounts).ok_or(CgroupError::NotMounted)
    }

    /// The root cgroup.
    pub fn root() -> Result<Cgroup, CgroupError> {
        Cgroup::open(&Cgroup::mount_point()?)
    }

    /// The cgroup of process `pid`.
    pub fn of(pid: u32) -> Result<Cgroup, CgroupError> {
        let mount = Cgroup::mount_point()?;
        let lines = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let path = path_in(&lines).ok_or(CgroupError::NoneOf { pid })?;
        Cgroup::open(&mount.join(path))
    }

    /// The path, relative to the root, of the cgroup of process `pid`; `None` if the process is in none or has ended.
    pub fn path_of(pid: u32) -> Option<String> {
        let lines = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        path_in(&lines).map(str::to_owned)
    }

    /// The cgroup with this directory: absolute, or relative to the mount point.
    pub fn named(name: &str) -> Result<Cgroup, CgroupError> {
        let mount = Cgroup::mount_point()?;
        let path = match Path::new(name) {
            path if path.starts_with(&mount) => path.to_owned(),
            _ => mount.join(name.trim_start_matches('/')),
        };
        match Cgroup::open(&path) {
            Err(CgroupError::Failed { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Err(CgroupError::Missing { path })
            }
            opened => opened,
        }
    }

    /// Creates a child cgroup.
    pub fn create(&self, name: &str) -> Result<Cgroup, CgroupError> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(failed("make", &path))?;
        Cgroup::open(&path)
    }

    fn open(path: &Path) -> Result<Cgroup, CgroupError> {
        let directory = File::open(path).map_err(failed("open", path))?;
        // The root's relative path is empty, so joining it would leave a trailing slash.
        Ok(Cgroup { path: path.components().collect(), directory })
    }

    /// A second handle to the same cgroup.
    pub fn try_clone(&self) -> io::Result<Cgroup> {
        Ok(Cgroup { path: self.path.clone(), directory: self.directory.try_clone()? })
    }

    /// The cgroup's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the cgroup still exists.
    pub fn exists(&self) -> bool {
        self.path.join("cgroup.procs").exists()
    }

    /// Makes `command` start in this cgroup.
    pub fn enter_on_exec(&self, command: &mut Command) -> Result<(), CgroupError> {
        let path = self.path.join("cgroup.procs");
        let procs = File::options().write(true).open(&path).map_err(failed("enter", &self.path))?;
        // "0" stands for the writing process.
        let enter = move || (&procs).write_all(b"0");
        // SAFETY: write(2) is async-signal-safe and nothing allocates.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }

    /// The processes in this cgroup and its descendants.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        list(&self.path, &mut found);
        found
    }

    /// Removes child cgroups that contain no process, are older than `age` and have a name starting with `beginning`.
    pub fn remove_empty(&self, beginning: &str, age: Duration) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let modified = entry.metadata().map(|metadata| metadata.mtime());
            let modified = modified.ok().and_then(|seconds| u64::try_from(seconds).ok());
            let is_old = modified.is_some_and(|seconds| {
                clock::wall().since(Time::ZERO + Duration::from_secs(seconds)) > age
            });
            if is_old && entry.file_name().to_string_lossy().starts_with(beginning) {
                // The kernel refuses to remove a cgroup with processes or children.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }

    /// Removes this cgroup and its descendants. Processes still in them move to the parent cgroup. An exiting process cannot
    /// be moved, so this waits for it.
    pub fn dissolve(&self) -> io::Result<()> {
        let deadline = clock::now() + LAST_ENDS;
        loop {
            self.move_processes_up();
            match remove(&self.path) {
                Err(error)
                    if error.kind() == ErrorKind::ResourceBusy && clock::now() < deadline =>
                {
                    clock::sleep_until(clock::now() + LAST_ENDS / 100);
                }
                removed => return removed,
            }
        }
    }

    fn move_processes_up(&self) {
        let above = self.path.parent().map(|above| above.join("cgroup.procs"));
        for pid in self.processes() {
            let Some(above) = &above else { break };
            // A process that has ended in the meantime need not be moved.
            let _ = fs::write(above, pid.to_string());
        }
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.to_owned();
    move |source| CgroupError::Failed { step, path, source }
}

fn list(path: &Path, found: &mut Vec<u32>) {
    let lines = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    found.extend(lines.lines().filter_map(|line| line.parse::<u32>().ok()));
    below(path).for_each(|path| list(&path, found));
}

fn remove(path: &Path) -> io::Result<()> {
    below(path).try_for_each(|path| remove(&path))?;
    fs::remove_dir(path)
}

/// The child cgroups' directories.
fn below(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path())
}

/// The first mount of type cgroup2 in the text of /proc/self/mounts.
fn mount_point_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        // Spaces are escaped in octal (fstab(5)).
        (kind == "cgroup2").then(|| PathBuf::from(place.replace("\\040", " ")))
    })
}

/// The cgroup v2 path in the text of /proc/PID/cgroup, without its leading slash.
fn path_in(lines: &str) -> Option<&str> {
    let path = lines.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A path outside this cgroup namespace begins with "/..".
    let path = path.trim_start_matches('/').trim_end_matches(" (deleted)");
    (!path.starts_with("..")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_v2_is_found_beside_v1() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/uni\\040fied cgroup2 rw,nosuid 0 0\n";
        assert_eq!(mount_point_in(mounts), Some(PathBuf::from("/sys/fs/cgroup/uni fied")));
        assert_eq!(mount_point_in("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"), None);
        assert_eq!(mount_point_in(""), None);
    }

    #[test]
    fn the_cgroup_path_comes_from_hierarchy_0() {
        let lines = "4:memory:/a\n1:name=systemd:/b\n0::/user.slice/c d\n";
        assert_eq!(path_in(lines), Some("user.slice/c d"));
        assert_eq!(path_in("0::/\n"), Some(""));
        assert_eq!(path_in("0::/../other\n"), None);
        assert_eq!(path_in("4:memory:/a\n"), None);
    }

    #[test]
    fn a_missing_cgroup_is_reported_by_path_without_a_trailing_slash() {
        let Err(error) = Cgroup::named("no such cgroup") else { panic!("there is one") };
        match error {
            CgroupError::Missing { path } => assert!(path.ends_with("no such cgroup")),
            other => assert!(matches!(other, CgroupError::NotMounted), "{other}"),
        }
        if let Ok(root) = Cgroup::named("/") {
            let path = root.path().as_os_str().to_string_lossy();
            assert!(!path.ends_with('/'), "{path}");
        }
    }
}
