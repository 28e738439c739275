use super::error::Result;
use super::{Decoder, Record};

/// Decodes a capture that arrives in pieces of any size. Between pieces it keeps only the beginning of the next record.
#[derive(Debug, Default)]
pub struct Pieces {
    decoder: Decoder,
    rest: Vec<u8>,
}

impl Pieces {
    /// Decodes the next piece, and passes each complete record to `take`.
    ///
    /// # Errors
    /// If the bytes are not a valid capture. No record follows an error.
    pub fn take(&mut self, piece: &[u8], take: &mut dyn FnMut(&Record<'_>)) -> Result<()> {
        self.rest.extend_from_slice(piece);
        let mut input = &self.rest[..];
        while let Some(record) = self.decoder.next(&mut input)? {
            take(&record);
        }
        let consumed = self.rest.len() - input.len();
        self.rest.drain(..consumed);
        Ok(())
    }

    /// Checks that the capture ended between two records.
    ///
    /// # Errors
    /// If the capture is cut off, or not a capture.
    pub fn end(&self) -> Result<()> {
        self.decoder.end(&self.rest)
    }
}
