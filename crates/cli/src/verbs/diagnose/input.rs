//! Captures and recordings from files, compressed or not, or from standard input. Input is untrusted: no file makes the reader
//! allocate more than a fixed amount.

use std::cell::Cell;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, StreamingDecoder};
use sweetspot_diagnose::recorded;
use sweetspot_program::print::{Shown, system};
use sweetspot_trace::file::{MAX_ZSTD_WINDOW, ZSTD_MAGIC, large_zstd_window};

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The next step if a file cannot be read.
const READABLE: &str = "name a file of measurements that you may read";

/// Maximum length of a text: a day of `ss` output for dozens of connections, once a second.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// A file, and its name in messages and titles.
#[derive(Debug, Clone)]
pub struct Input {
    path: PathBuf,
    name: String,
    title: String,
    /// Keeps the copy of standard input.
    _spooled: Option<Rc<Spooled>>,
}

impl Input {
    /// The file that an option names: `-` is standard input, which can then be read more than once.
    pub fn named(path: &Path) -> Result<Input, String> {
        if path == Path::new("-") { Input::standard() } else { Ok(Input::file(path)) }
    }

    /// Copies standard input.
    pub fn standard() -> Result<Input, String> {
        let spooled = spool()?;
        #[cfg(target_os = "linux")]
        let path = format!("/proc/self/fd/{}", spooled.as_raw_fd()).into();
        #[cfg(not(target_os = "linux"))]
        let path = spooled.path().to_owned();
        let name = "standard input".to_owned();
        Ok(Input { path, title: name.clone(), name, _spooled: Some(Rc::new(spooled)) })
    }

    /// The file `path`.
    pub fn file(path: &Path) -> Input {
        let title = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let name = path.shown().to_string();
        Input { path: path.to_owned(), name, title, _spooled: None }
    }

    /// The path to read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file name without the directory.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The content, decompressed if its first bytes show a compressed format.
    pub fn open(&self) -> Result<Box<dyn Read>, String> {
        let name = &self.name;
        let file = File::open(&self.path).map_err(|error| {
            format!("cannot open {name}: {}; name a file that is there", system(&error))
        })?;
        let mut file = BufReader::new(file);
        let head = file
            .fill_buf()
            .map_err(|error| format!("cannot read {name}: {}; {READABLE}", system(&error)))?;
        if head.starts_with(&GZIP) {
            Ok(Box::new(MultiGzDecoder::new(file)))
        } else if head.starts_with(&ZSTD_MAGIC) {
            let ended = Rc::default();
            let rest = UntilEnd { source: file, ended: Rc::clone(&ended) };
            Ok(Box::new(ZstdFrames { frame: None, rest: Some(rest), ended, broken: None }))
        } else {
            Ok(Box::new(file))
        }
    }

    fn head(&self) -> Result<Vec<u8>, String> {
        let mut head = Vec::new();
        let read = self.open()?.take(recorded::HEAD_BYTES as u64).read_to_end(&mut head);
        match read {
            // The beginning is enough to distinguish a text from a capture.
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                Err(format!("cannot read {}: {}; {READABLE}", self.name, system(&error)))
            }
            _ => Ok(head),
        }
    }

    /// Whether it is text, not a capture.
    pub fn is_text(&self) -> Result<bool, String> {
        Ok(recorded::is_text(&self.head()?))
    }

    /// The whole content, decompressed, as text.
    pub fn read_text(&self) -> Result<String, String> {
        let name = &self.name;
        if self.head()?.first_chunk().is_some_and(sweetspot_trace::file::is_capture) {
            return Err(format!("{name}: it is a capture and not text; leave out --tcpinfo"));
        }
        let mut bytes = Vec::new();
        let read = self.open()?.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("cannot read {name}: {}", words(&error)))?;
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            let max = MAX_TEXT_BYTES >> 20;
            return Err(format!("{name}: it has more than {max} MiB of text; give a part of it"));
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("{name}: it is not text (UTF-8) {at} bytes from its start; {READABLE}")
        })
    }
}

/// Why a file cannot be read, and the next step.
pub fn words(error: &io::Error) -> String {
    if error.kind() == ErrorKind::UnexpectedEof {
        return "its compressed content was cut off; compress or copy it again".to_owned();
    }
    format!("{}; {READABLE}", system(error))
}

/// A copy of standard input in an unnamed file, which disappears with this process.
#[cfg(target_os = "linux")]
type Spooled = File;

/// A copy of standard input in a file that is removed when this value is dropped.
#[cfg(not(target_os = "linux"))]
type Spooled = tempfile::NamedTempFile;

fn spool() -> Result<Spooled, String> {
    let spooled = || {
        #[cfg(target_os = "linux")]
        let mut file = tempfile::tempfile()?;
        #[cfg(not(target_os = "linux"))]
        let mut file = tempfile::NamedTempFile::new()?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        Ok(file)
    };
    spooled().map_err(|error: io::Error| format!("cannot copy standard input: {error}"))
}

/// Concatenated zstd frames, as the zstd program appends them.
struct ZstdFrames<R: BufRead> {
    frame: Option<StreamingDecoder<UntilEnd<R>, ruzstd::decoding::FrameDecoder>>,
    rest: Option<UntilEnd<R>>,
    /// Whether the decoder tried to read beyond the end of the input.
    ended: Rc<Cell<bool>>,
    /// The error if the frame is truncated, returned after its complete blocks.
    broken: Option<io::Error>,
}

/// Completes a truncated frame: an empty last block and a checksum, which the decoder does not verify (RFC 8878 §3.1.1). The
/// decoder holds back a window of its output until a frame ends.
const FRAME_END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                match frame.read(into) {
                    Ok(n) if n > 0 || into.is_empty() => return Ok(n),
                    Ok(_) if let Some(error) = self.broken.take() => return Err(error),
                    Ok(_) => {}
                    Err(error) if !self.ended.get() => return Err(self.refused(error)),
                    Err(error) => {
                        let end =
                            frame.decoder.decode_blocks(&FRAME_END[..], BlockDecodingStrategy::All);
                        let error = self.refused(error);
                        end.map_err(|_| ErrorKind::InvalidData)?;
                        self.broken = Some(error);
                        continue;
                    }
                }
                self.rest = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut rest) = self.rest.take() else { return Ok(0) };
            if rest.source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new_with_max_window_size(rest, MAX_ZSTD_WINDOW);
            self.frame = Some(frame.map_err(|error| self.refused(error))?);
        }
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// The error if a frame cannot be decompressed. The decoder's own error mentions neither the end of the file nor a next
    /// step.
    fn refused(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
        let error = error.into();
        match error.downcast_ref() {
            Some(FrameDecoderError::WindowSizeTooBig { requested, .. }) => {
                io::Error::other(large_zstd_window(*requested))
            }
            _ if self.ended.get() => ErrorKind::UnexpectedEof.into(),
            _ => io::Error::other(format!("its zstd frame is damaged: {error}")),
        }
    }
}

/// A reader that records attempts to read beyond the end.
struct UntilEnd<R> {
    source: R,
    ended: Rc<Cell<bool>>,
}

impl<R: Read> Read for UntilEnd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(into)?;
        if n == 0 && !into.is_empty() {
            self.ended.set(true);
        }
        Ok(n)
    }
}
