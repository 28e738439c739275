//! The stages, each run on one thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sweetspot_linux::clock;
use sweetspot_protocol::hash_tree::{PIECE_BYTES, piece_hash};

use super::{BYTES, End};

const PIECE: usize = PIECE_BYTES as usize;
const PIECES: u64 = BYTES.div_ceil(PIECE_BYTES);
/// The maximum plaintext of a TLS record (RFC 8446, section 5.1).
const RECORD: usize = 1 << 14;

/// CPU time of each stage for [`BYTES`], seconds.
pub fn stages(scratch: &Path) -> io::Result<Vec<(End, &'static str, f64)>> {
    let path = scratch.join("stages");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let mut buffer: Vec<u8> = (0..PIECE).map(|i| (i * 31 + (i >> 8)) as u8).collect();
    let write = each(|piece| file.write_all_at(&buffer, piece * PIECE_BYTES))?;
    let read = each(|piece| file.read_exact_at(&mut buffer, piece * PIECE_BYTES))?;
    file.set_len(0)?;
    let hash = each(|piece| {
        std::hint::black_box(piece_hash(piece as u32, false, &buffer));
        Ok(())
    })?;
    let (encrypt, decrypt) = ciphers(&mut buffer)?;
    let (send, receive) = kernel(&buffer)?;
    Ok(vec![
        (End::Sender, "read", read),
        (End::Sender, "hash", hash),
        (End::Sender, "encrypt", encrypt),
        (End::Sender, "copy to the kernel", send),
        (End::Receiver, "copy from the kernel", receive),
        (End::Receiver, "decrypt", decrypt),
        (End::Receiver, "hash", hash),
        (End::Receiver, "write", write),
    ])
}

/// CPU time that this thread takes to run `work` on every piece.
fn each(mut work: impl FnMut(u64) -> io::Result<()>) -> io::Result<f64> {
    let begin = clock::used();
    (0..PIECES).try_for_each(&mut work)?;
    Ok(clock::used().since(begin).as_secs_f64())
}

/// CPU times of AES-256-GCM, rustls' first choice, in place and in records.
fn ciphers(buffer: &mut [u8]) -> io::Result<(f64, f64)> {
    let failed = |_| io::Error::other("ring refuses AES-256-GCM");
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(failed)?);
    let nonce = || Nonce::assume_unique_for_key([0; 12]);
    let encrypt = each(|_| {
        for record in buffer.chunks_mut(RECORD) {
            let tag = key.seal_in_place_separate_tag(nonce(), Aad::empty(), record);
            let _ = std::hint::black_box(tag.map_err(failed)?);
        }
        Ok(())
    })?;
    let (mut record, mut sealed) = (buffer[..RECORD].to_vec(), Vec::new());
    key.seal_in_place_append_tag(nonce(), Aad::empty(), &mut record).map_err(failed)?;
    // A record can be opened in place only once; copying it again is not part of the stage.
    let copy = each(|_| {
        for _ in 0..PIECE / RECORD {
            std::hint::black_box(&record).clone_into(&mut sealed);
            std::hint::black_box(&sealed);
        }
        Ok(())
    })?;
    let decrypt = each(|_| {
        for _ in 0..PIECE / RECORD {
            record.clone_into(&mut sealed);
            let opened = key.open_in_place(nonce(), Aad::empty(), &mut sealed);
            std::hint::black_box(opened.map_err(failed)?);
        }
        Ok(())
    })?;
    Ok((encrypt, decrypt - copy))
}

/// CPU times of the two ends of a TCP connection over loopback.
fn kernel(buffer: &[u8]) -> io::Result<(f64, f64)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    let receiver = thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        each(|_| far.read_exact(&mut buffer))
    });
    let send = each(|_| near.write_all(buffer))?;
    let receive = receiver.join().map_err(|_| io::Error::other("the receiver panicked"))??;
    Ok((send, receive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decrypting_a_record_takes_longer_than_copying_it() {
        let (encrypt, decrypt) = ciphers(&mut vec![1; PIECE]).unwrap();
        assert!(encrypt > 0.0 && decrypt > 0.0);
    }
}
