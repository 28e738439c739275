//! Decompresses zstd files in pieces. The files are untrusted: no content makes the reader allocate more than a fixed amount.

use std::fmt;

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sweetspot_trace::file::MAX_ZSTD_WINDOW;

use crate::DiagnosisError;

/// Maximum number of bytes that one step reads: a frame header, or a block of 128 KiB with its header and a checksum (RFC 8878
/// §3.1.1).
const STEP: usize = (128 << 10) + 32;

/// Concatenated zstd frames, as the zstd program appends them.
pub struct Frames {
    decoder: FrameDecoder,
    /// Whether a frame's header has been read, but not yet its last block.
    open: bool,
    rest: Vec<u8>,
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("open", &self.open).finish_non_exhaustive()
    }
}

impl Frames {
    /// Ready for the first bytes of a file.
    pub fn new() -> Frames {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_ZSTD_WINDOW);
        Frames { decoder, open: false, rest: Vec::new() }
    }

    /// Takes the next bytes of the file, the last ones if `last`, and passes their content to `take` until that returns false.
    ///
    /// # Errors
    /// The reason why nothing more can be decompressed.
    pub fn take(
        &mut self,
        piece: &[u8],
        last: bool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, DiagnosisError> {
        self.rest.extend_from_slice(piece);
        let rest = std::mem::take(&mut self.rest);
        let mut source = &rest[..];
        while source.len() >= STEP || (last && !source.is_empty()) {
            if !self.step(&mut source, take).map_err(|error| refused(error, last))? {
                return Ok(false);
            }
        }
        self.rest = source.to_vec();
        if last && self.open { Err(DiagnosisError::CutOff) } else { Ok(true) }
    }

    /// Reads a frame's header or a block.
    fn step(
        &mut self,
        source: &mut &[u8],
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, FrameDecoderError> {
        if !self.open {
            self.decoder.reset(source)?;
            self.open = true;
            return Ok(true);
        }
        self.open = !self.decoder.decode_blocks(source, BlockDecodingStrategy::UptoBlocks(1))?;
        Ok(self.decoder.collect().is_none_or(|content| take(&content)))
    }
}

/// Why a frame cannot be decompressed; with the `last` bytes of the file, it may just be truncated.
fn refused(error: FrameDecoderError, last: bool) -> DiagnosisError {
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, .. } => {
            DiagnosisError::LargeWindow(requested)
        }
        _ if last => DiagnosisError::CutOff,
        other => DiagnosisError::Frame(other),
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;
    use crate::Diagnosis;

    /// The content of `compressed`, passed in pieces of `size` bytes.
    fn content(compressed: &[u8], size: usize) -> Result<Vec<u8>, DiagnosisError> {
        let (mut frames, mut content) = (Frames::new(), Vec::new());
        let mut take = |bytes: &[u8]| {
            content.extend_from_slice(bytes);
            true
        };
        for piece in compressed.chunks(size) {
            frames.take(piece, false, &mut take)?;
        }
        frames.take(&[], true, &mut take)?;
        Ok(content)
    }

    /// Compressible and incompressible data over several blocks.
    fn file() -> Vec<u8> {
        let noise = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        (0..700_000).map(|n| if n < 400_000 { noise(n) } else { (n >> 12) as u8 }).collect()
    }

    #[test]
    fn zstd_frames_decompress_in_pieces_of_any_size() {
        let compress = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
        let file = file();
        let (first, second) = file.split_at(300_000);
        let compressed = [compress(first), compress(second)].concat();
        for size in [1 << 10, STEP, compressed.len()] {
            assert_eq!(content(&compressed, size).unwrap(), file, "{size}");
        }
        assert!(content(&compressed[..compressed.len() - 1], STEP).is_err());
    }

    #[test]
    fn a_compressed_paste_gets_the_same_diagnosis() {
        let paste = "ESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\
            \t cubic wscale:7,7 rtt:40/2 mss:1448 cwnd:10 bytes_acked:100001 busy:900ms rwnd_limited:880ms(97.8%)\n";
        let title = |pieces: std::slice::Chunks<'_, u8>| {
            let mut diagnosis = Diagnosis::new("paste");
            pieces.for_each(|piece| assert!(diagnosis.take(piece)));
            diagnosis.end().map(|page| page.unwrap().parts.title)
        };
        let compressed = compress_to_vec(paste.as_bytes(), CompressionLevel::Fastest);
        let due = title(paste.as_bytes().chunks(7)).unwrap();
        for size in [1, 1000] {
            assert_eq!(title(compressed.chunks(size)).unwrap(), due);
        }
        let cut = title(compressed[..compressed.len() - 1].chunks(1000)).unwrap_err().to_string();
        assert!(cut.contains("zstd"), "{cut}");
    }
}
