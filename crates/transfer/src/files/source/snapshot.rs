//! The state of a file at one moment, and whether its times will reveal a later change.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, SeekFrom, Stat, StatxFlags};
use rustix::io::Errno;
use sweetspot_linux::clock;
use sweetspot_units::{Duration, Time};

/// A file changed more recently than this is listed with care, because the write that set its time may still be under way. A
/// write that takes longer, as on a busy disk, is noticed when the file is read.
const RECENT: Duration = Duration::from_secs(2);
/// Resolution of times on file systems that store whole seconds (ext3, FAT). All others have the resolution of the kernel's
/// clock.
const COARSE_STEP: Duration = Duration::from_secs(2);
/// Maximum tick of the kernel's coarse clock (CONFIG_HZ=100). `settle` waits for it in addition to the resolution.
const TICK: Duration = Duration::from_millis(10);
/// `AT_STATX_FORCE_SYNC` (include/uapi/linux/fcntl.h), which rustix does not name for musl.
const FORCE_SYNC: AtFlags = AtFlags::from_bits_retain(0x2000);
/// If this many samples all see a write, the file has no stable length.
const MAX_SAMPLES: u32 = 8;
/// The polling interval.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A regular file at one moment. If the first of two snapshots is settled and both are equal, they are of the same unchanged
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    device: u64,
    inode: u64,
    pub size: u64,
    pub modified: (i64, u32),
    /// Time of the last status change. Unlike `modified`, programs cannot set it.
    changed: (i64, u32),
}

/// Whether a file that has grown since it was listed can be sent with its listed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Never: a write was under way when it was listed.
    Refused,
    /// Only if its times have changed. Otherwise the write that set its time was still under way when it was listed.
    WithNewTimes,
    /// Always: it was listed between two writes.
    Accepted,
}

impl Snapshot {
    /// The state from the status of a name; `None` if it is not a regular file.
    pub fn of_status(stat: &Stat) -> Option<Snapshot> {
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        regular.then_some(Snapshot {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size as u64,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime, stat.st_ctime_nsec as u32),
        })
    }

    /// The state of an open file; `None` if it is not a regular file.
    pub fn of(file: &File) -> io::Result<Option<Snapshot>> {
        // A network file system asks its server, because its cache may be seconds old.
        let flags = AtFlags::EMPTY_PATH | FORCE_SYNC;
        match rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS) {
            Ok(stat) => {
                let mode = u32::from(stat.stx_mode);
                let regular = FileType::from_raw_mode(mode) == FileType::RegularFile;
                Ok(regular.then_some(Snapshot {
                    device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
                    inode: stat.stx_ino,
                    size: stat.stx_size,
                    modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
                    changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
                }))
            }
            // Kernels before 4.11 lack statx(2), and older sandboxes forbid it. glibc's emulation rejects the flag.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
                Ok(Snapshot::of_status(&rustix::fs::fstat(file)?))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The state of an open file between two writes. Only this state is consistent, because the length grows page by page during
    /// a write. `None` if the file is being written all the time, or is not a regular file.
    pub fn between_writes(file: &File) -> io::Result<Option<Snapshot>> {
        for _ in 0..MAX_SAMPLES {
            let before = Snapshot::of(file)?;
            // Waits for the file's write lock, as in `settle`, and thus for the end of a write.
            let _ = rustix::fs::seek(file.as_fd(), SeekFrom::Data(0));
            if before == Snapshot::of(file)? {
                return Ok(before);
            }
        }
        Ok(None)
    }

    /// Whether it was changed so recently that a write may still be under way.
    pub fn is_recent(&self) -> bool {
        self.age().is_none_or(|age| age <= RECENT)
    }

    /// Whether both are of the same file.
    pub fn is_same_file(&self, other: &Snapshot) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether this listed file has grown to the state `now`, and can still be sent as listed.
    pub fn has_grown(&self, now: &Snapshot, growth: Growth) -> bool {
        now.size > self.size
            && match growth {
                Growth::Refused => false,
                Growth::WithNewTimes => now.changed != self.changed,
                Growth::Accepted => true,
            }
    }

    /// Waits until every later change will give the file other times. Returns false if that would take too long, because the
    /// times are in the future: another host's clock may have set them.
    pub fn settle(&self, file: &File) -> bool {
        // A write holds the file's lock, first sets its time and then copies. Seeking for data takes the same lock (ext4, btrfs,
        // tmpfs). It therefore waits for any write that began before this snapshot, even long ago: on a slow disk a writer blocks
        // in between.
        let _ = rustix::fs::seek(file.as_fd(), SeekFrom::Data(0));
        let give_up = clock::now() + self.step() + TICK * 2;
        while self.age().is_none_or(|age| age <= self.step()) {
            if clock::now() >= give_up {
                return false;
            }
            clock::sleep_until(clock::now() + LOOK_INTERVAL);
        }
        true
    }

    /// Time since the last change, by the clock from which the kernel takes timestamps; `None` if the change is in the future.
    fn age(&self) -> Option<Duration> {
        let now = clock::wall_coarse();
        let (seconds, nanoseconds) = self.changed;
        // Times before 1970 count as 1970.
        let seconds = u64::try_from(seconds).unwrap_or(0);
        let changed = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.into());
        let changed = Time::from_nanos(changed);
        (changed <= now).then(|| now.since(changed))
    }

    /// Changes within this time of each other may have the same timestamp.
    fn step(&self) -> Duration {
        // If the file system stores nanoseconds, whole milliseconds are rare, and cost only a pause.
        if self.changed.1.is_multiple_of(1_000_000) { COARSE_STEP } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    fn snapshot(file: &File) -> Snapshot {
        Snapshot::of(file).unwrap().unwrap()
    }

    #[test]
    fn snapshots_from_stat_and_from_the_file_agree() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"abc", 0).unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        assert_eq!(Snapshot::of_status(&stat), Some(snapshot(&file)));
        let directory = File::open("/").unwrap();
        assert_eq!(Snapshot::of(&directory).unwrap(), None);
    }

    /// A write sets the file's time when it begins, and its length as it copies.
    #[test]
    fn growth_without_a_new_time_is_accepted_only_if_allowed() {
        let file = tempfile::tempfile().unwrap();
        let whole = Snapshot { size: 250_000, ..snapshot(&file) };
        let (seconds, nanoseconds) = whole.changed;
        let same_write = Snapshot { size: 126_976, ..whole };
        let before = Snapshot { changed: (seconds - 3, nanoseconds), ..same_write };
        for (growth, expected) in [
            (Growth::Refused, [false, false]),
            (Growth::WithNewTimes, [false, true]),
            (Growth::Accepted, [true, true]),
        ] {
            let grown = [same_write, before].map(|listed| listed.has_grown(&whole, growth));
            assert_eq!(grown, expected, "{growth:?}");
        }
        assert!(!whole.has_grown(&same_write, Growth::Accepted), "it shrank");
    }

    /// Writes 62 pages into the file named by its argument. The last 31 pages are not in memory: the write blocks on them, the
    /// script prints a line, and supplies the pages when it reads a line (userfaultfd(2), which requires root).
    const HELD_WRITE: &str = r#"
import ctypes, fcntl, mmap, os, platform, struct, sys, threading
PAGE, PAGES = 4096, 62
libc = ctypes.CDLL(None, use_errno=True)
faults = libc.syscall({'x86_64': 323, 'aarch64': 282}[platform.machine()], os.O_CLOEXEC)
fcntl.ioctl(faults, 0xC018AA3F, bytearray(struct.pack('QQQ', 0xAA, 0, 0)))
memory = mmap.mmap(-1, PAGES * PAGE)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory[:PAGES // 2 * PAGE] = b'b' * (PAGES // 2 * PAGE)
fcntl.ioctl(faults, 0xC020AA00, bytearray(struct.pack('QQQQ', start, PAGES * PAGE, 1, 0)))
file = os.open(sys.argv[1], os.O_WRONLY)
write = lambda: libc.write(file, ctypes.c_void_p(start), ctypes.c_size_t(PAGES * PAGE))
writer = threading.Thread(target=write)
writer.start()
os.read(faults, 32)
print('held', flush=True)
sys.stdin.readline()
page = ctypes.create_string_buffer(b'b' * PAGE, PAGE)
for n in range(PAGES // 2, PAGES):
    to = start + n * PAGE
    fcntl.ioctl(faults, 0xC028AA03, bytearray(struct.pack('QQQQq', to, ctypes.addressof(page), PAGE, 0, 0)))
writer.join()
"#;

    /// As on a busy disk: the file's time is the beginning of the write.
    #[test]
    fn reading_waits_for_a_write_that_began_long_ago() {
        const LENGTH: usize = 62 * 4096;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(&[b'a'; LENGTH], 0).unwrap();
        let mut command = Command::new("python3");
        command.args(["-c", HELD_WRITE]).arg(file.path());
        let writer = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut writer) = writer else {
            return sweetspot_testing::skipped("there is no python3 (apt-get install python3)");
        };
        let mut line = String::new();
        BufReader::new(writer.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "held\n" {
            writer.wait().unwrap();
            return sweetspot_testing::skipped("a write cannot be held (run as root)");
        }
        let before = Snapshot { changed: (1, 1), ..snapshot(file.as_file()) };
        let (sender, task) = mpsc::channel();
        let reader = thread::spawn(move || {
            sender.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
            assert!(before.settle(file.as_file()));
            fs::read(file.path()).unwrap()
        });
        let status = Path::new("/proc").join(task.recv().unwrap()).join("stat");
        // The reader waits uninterruptibly for a lock, or has finished.
        let waits = || fs::read_to_string(&status).is_ok_and(|stat| stat.contains(") D "));
        while !reader.is_finished() && !waits() {
            thread::yield_now();
        }
        writer.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        assert!(reader.join().unwrap() == [b'b'; LENGTH], "it is torn");
        assert!(writer.wait().unwrap().success());
    }

    /// Without `settle`, many changes share a tick of the kernel's clock, which lasts 1 to 10 ms.
    #[test]
    fn a_change_after_settling_is_always_detected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for round in 0..50u8 {
            file.as_file().write_all_at(&[round; 8], 0).unwrap();
            let before = snapshot(file.as_file());
            assert!(before.settle(file.as_file()));
            file.as_file().write_all_at(&[round + 1; 8], 0).unwrap();
            assert_ne!(snapshot(file.as_file()), before, "round {round}");
        }
        assert_eq!(fs::read(file.path()).unwrap(), [50; 8]);
    }

    #[test]
    fn a_future_time_never_settles_and_whole_seconds_use_the_coarse_step() {
        let file = tempfile::tempfile().unwrap();
        let now = clock::wall().as_nanos() / 1_000_000_000;
        let with = |changed| Snapshot { changed, ..snapshot(&file) };
        assert!(!with((now as i64 + 3600, 1)).settle(&file));
        assert_eq!(with((5, 0)).step(), COARSE_STEP);
        assert_eq!(with((5, 123_456_789)).step(), Duration::ZERO);
    }
}
