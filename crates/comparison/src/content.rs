use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sweetspot_linux::file;
use sweetspot_path::Random;
use sweetspot_units::Bytes;

use crate::ComparisonError;

/// The file that every variant transfers.
pub struct Content {
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub size: Bytes,
    /// Its BLAKE3 hash.
    pub hash: blake3::Hash,
}

impl Content {
    /// Uses an existing file.
    pub fn of(path: &Path) -> Result<Content, ComparisonError> {
        let wrong = |source| ComparisonError::Read { path: path.to_owned(), source };
        let size = Bytes::new(fs::metadata(path).map_err(wrong)?.len());
        Ok(Content { path: path.to_owned(), size, hash: hash(path).map_err(wrong)? })
    }

    /// Creates a file in `dir` from `seed`.
    pub fn random(dir: &Path, size: Bytes, seed: u64) -> Result<Content, ComparisonError> {
        let path = dir.join("content");
        write_random(&path, size, seed).map_err(|source| ComparisonError::Write {
            size,
            directory: dir.to_owned(),
            source,
        })?;
        Content::of(&path)
    }
}

/// Writes `size` incompressible bytes; the same seed gives the same bytes.
fn write_random(path: &Path, size: Bytes, seed: u64) -> io::Result<()> {
    let mut random = Random::new(seed);
    let file = File::create_new(path)?;
    // If the disk lacks space for it, fail now, before it is full.
    file::reserve(&file, Bytes::ZERO, size)?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut left = size.get();
    while left > 0 {
        let word = random.bits().to_le_bytes();
        let length = left.min(word.len() as u64);
        file.write_all(&word[..length as usize])?;
        left -= length;
    }
    file.into_inner()?.sync_all()
}

/// The BLAKE3 hash of the file on disk.
pub fn hash(path: &Path) -> io::Result<blake3::Hash> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            n => hasher.update(&piece[..n]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_content_of_the_exact_length() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let file = |name: &str| dir.path().join(name);
        // 1003 is not a multiple of the generator's 8 bytes.
        write_random(&file("a"), Bytes::new(1003), 7)?;
        write_random(&file("b"), Bytes::new(1003), 7)?;
        write_random(&file("c"), Bytes::new(1003), 8)?;
        assert_eq!(std::fs::metadata(file("a"))?.len(), 1003);
        assert_eq!(hash(&file("a"))?, hash(&file("b"))?);
        assert_ne!(hash(&file("a"))?, hash(&file("c"))?);
        Ok(())
    }
}
