//! Captures and recordings, compressed or not, or from standard input. A stranger may have made them: no byte of a file makes
//! the reader allocate more than a fixed amount.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::FrameDecoderError;
use sweetspot_diagnose::recorded;
use sweetspot_program::print::Shown;
use sweetspot_trace::file::{MAX_ZSTD_WINDOW, ZSTD_MAGIC, large_zstd_window};

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The next step where a file cannot be read.
const READABLE: &str = "name a file of measurements that you may read";

/// The longest text that [`read_text`] keeps: a day of `ss` output for dozens of connections, once a second.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// The content of `path`, decompressed where its first bytes say that it is compressed.
pub fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    let name = path.shown();
    let file = File::open(path)
        .map_err(|error| format!("cannot open {name}: {error}; name a file that is there"))?;
    let mut file = BufReader::new(file);
    let head =
        file.fill_buf().map_err(|error| format!("cannot read {name}: {error}; {READABLE}"))?;
    if head.starts_with(&GZIP) {
        Ok(Box::new(MultiGzDecoder::new(file)))
    } else if head.starts_with(&ZSTD_MAGIC) {
        Ok(Box::new(ZstdFrames { frame: None, rest: Some(file) }))
    } else {
        Ok(Box::new(file))
    }
}

/// Whether `path` holds text rather than a capture.
pub fn is_text(path: &Path) -> Result<bool, String> {
    let mut head = Vec::new();
    let read = open(path)?.take(recorded::HEAD_BYTES as u64).read_to_end(&mut head);
    read.map_err(|error| format!("cannot read {}: {error}; {READABLE}", path.shown()))?;
    Ok(recorded::is_text(&head))
}

/// The whole content of `path`, decompressed, as text.
pub fn read_text(path: &Path) -> Result<String, String> {
    let name = path.display();
    let mut text = String::new();
    let read = open(path)?.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read {name}: {error}; {READABLE}"))?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        let max = MAX_TEXT_BYTES >> 20;
        return Err(format!("{name}: it has more than {max} MiB of text; give a part of it"));
    }
    Ok(text)
}

/// Standard input, copied to a file without a name: it vanishes with this process.
#[cfg(target_os = "linux")]
pub struct Spooled(File);

/// Standard input, copied to a file that is removed with this.
#[cfg(not(target_os = "linux"))]
pub struct Spooled(tempfile::NamedTempFile);

impl Spooled {
    /// The path by which this process opens it, each time from the beginning.
    pub fn path(&self) -> PathBuf {
        #[cfg(target_os = "linux")]
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd()).into();
        #[cfg(not(target_os = "linux"))]
        let path = self.0.path().to_owned();
        path
    }
}

/// Standard input as a file, which can be read more than once.
pub fn spool() -> Result<Spooled, String> {
    let spooled = || {
        #[cfg(target_os = "linux")]
        let mut file = tempfile::tempfile()?;
        #[cfg(not(target_os = "linux"))]
        let mut file = tempfile::NamedTempFile::new()?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        Ok(Spooled(file))
    };
    spooled().map_err(|error: io::Error| format!("cannot keep what standard input brings: {error}"))
}

/// Frames of zstd, one behind the other, as the program zstd appends them.
struct ZstdFrames<R: BufRead> {
    frame: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
    rest: Option<R>,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(into)?;
                if n > 0 || into.is_empty() {
                    return Ok(n);
                }
                self.rest = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut rest) = self.rest.take() else { return Ok(0) };
            if rest.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new_with_max_window_size(rest, MAX_ZSTD_WINDOW);
            self.frame = Some(frame.map_err(refused)?);
        }
    }
}

/// Why a frame cannot be decompressed, with the next step for a window that is too large.
fn refused(error: FrameDecoderError) -> io::Error {
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, .. } => {
            io::Error::other(large_zstd_window(requested))
        }
        other => io::Error::other(other),
    }
}
