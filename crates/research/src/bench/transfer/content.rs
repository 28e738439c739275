//! The files to be transferred.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The files to be transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// One file of this many bytes.
    OneFile(u64),
    /// This many files of 1 to 10 kB.
    SmallFiles(u32),
    /// A tree of [`MIXED`], 1 GB.
    MixedTree,
}

/// The large file, and its size in bytes.
pub const LARGE_FILE: Content = Content::OneFile(LARGE_FILE_BYTES);
pub const LARGE_FILE_BYTES: u64 = 4_000_000_000;
/// Many small files.
pub const MANY_FILES: Content = Content::SmallFiles(100_000);

/// Number of files and size of each, in bytes.
const MIXED: [(u64, u64); 5] =
    [(1, 400_000_000), (40, 10_000_000), (100, 1_000_000), (950, 100_000), (1000, 5000)];

impl Content {
    /// Creates the content in `scratch` unless it exists. Returns its path and its size in bytes.
    pub fn make(self, scratch: &Path) -> io::Result<(PathBuf, u64)> {
        match self {
            Content::OneFile(size) => {
                let path = scratch.join(format!("file-{size}"));
                if !path.exists() {
                    fill(&path, size)?;
                }
                Ok((path, size))
            }
            Content::MixedTree => {
                let path = scratch.join("mixed");
                let fresh = !path.exists();
                for (count, size) in MIXED.into_iter().filter(|_| fresh) {
                    let directory = path.join(format!("of-{size}"));
                    fs::create_dir_all(&directory)?;
                    (0..count).try_for_each(|i| fill(&directory.join(format!("f{i}")), size))?;
                }
                Ok((path, MIXED.iter().map(|(count, size)| count * size).sum()))
            }
            Content::SmallFiles(count) => {
                let path = scratch.join(format!("small-{count}"));
                let fresh = !path.exists();
                let mut bytes = 0;
                for i in 0..count {
                    // 1 to 10 kB, evenly distributed (a multiplicative sequence).
                    let size = 1000 + u64::from(i).wrapping_mul(2_654_435_761) % 9001;
                    bytes += size;
                    if fresh {
                        let directory = path.join(format!("d{}", i / 1000));
                        fs::create_dir_all(&directory)?;
                        let mut file = File::create(directory.join(format!("f{i}")))?;
                        file.write_all(&vec![(i % 251) as u8; size as usize])?;
                    }
                }
                Ok((path, bytes))
            }
        }
    }

    /// A description for the document.
    pub fn in_words(self) -> String {
        match self {
            Content::OneFile(n) if n < 100_000_000 => format!("one file of {} MB", n as f64 / 1e6),
            Content::OneFile(n) => format!("one file of {:.2} GB", n as f64 / 1e9),
            Content::SmallFiles(n) => format!("{n} files of 1 to 10 kB"),
            Content::MixedTree => {
                let count: u64 = MIXED.iter().map(|(count, _)| count).sum();
                format!("{count} files of 5 kB to 400 MB, 1 GB")
            }
        }
    }
}

/// Uses 1.5 times `bytes` of memory and frees it. The first use of memory that a hypervisor has reclaimed (free page reporting)
/// costs more than a copy does.
pub fn touch_free_memory(bytes: u64) {
    let mut memory = vec![0_u8; (bytes + bytes / 2) as usize];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}

/// Creates a file of `size` random bytes.
fn fill(path: &Path, size: u64) -> io::Result<()> {
    let random = File::open("/dev/urandom")?;
    io::copy(&mut random.take(size), &mut File::create(path)?).map(drop)
}
