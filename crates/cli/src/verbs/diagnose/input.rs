//! Files as they lie about: compressed or not, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use tempfile::NamedTempFile;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The content of `path`, decompressed where its first bytes say that it is compressed.
pub fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|error| format!("cannot open {name}: {error}; name a file that is there"))?;
    let mut file = BufReader::new(file);
    let head = file.fill_buf().map_err(|error| format!("cannot read {name}: {error}"))?;
    if head.starts_with(&GZIP) {
        Ok(Box::new(MultiGzDecoder::new(file)))
    } else if head.starts_with(&ZSTD) {
        Ok(Box::new(ZstdFrames { frame: None, rest: Some(file) }))
    } else {
        Ok(Box::new(file))
    }
}

/// Standard input as a file, which can be read more than once.
pub fn spool() -> Result<NamedTempFile, String> {
    let spooled = || {
        let mut file = NamedTempFile::new()?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        file.flush()?;
        Ok(file)
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
            let frame = StreamingDecoder::new(rest).map_err(io::Error::other)?;
            self.frame = Some(frame);
        }
    }
}
