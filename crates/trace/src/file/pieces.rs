use super::error::Result;
use super::{Decoder, Record};

/// Decodes a capture that comes in pieces of any size. Between two pieces it keeps only the beginning of the next record.
#[derive(Debug, Default)]
pub struct Pieces {
    decoder: Decoder,
    rest: Vec<u8>,
}

impl Pieces {
    /// Takes the next piece, and gives each record that is complete to `take`.
    ///
    /// # Errors
    /// If the bytes are not a capture from here on; it then returns nothing more.
    pub fn take(&mut self, piece: &[u8], take: &mut dyn FnMut(&Record<'_>)) -> Result<()> {
        self.rest.extend_from_slice(piece);
        let mut input = &self.rest[..];
        while let Some(record) = self.decoder.next(&mut input)? {
            take(&record);
        }
        let taken = self.rest.len() - input.len();
        self.rest.drain(..taken);
        Ok(())
    }

    /// Whether the capture ended between two records.
    ///
    /// # Errors
    /// If it is cut off, or no capture.
    pub fn end(&self) -> Result<()> {
        self.decoder.end(&self.rest)
    }
}
