//! Derives a secret from a short code with SPAKE2 (M. Abdalla and D. Pointcheval, "Simple Password-Based Encrypted Key
//! Exchange Protocols", CT-RSA 2005). Each connection lets the peer try one code, and a recorded exchange does not allow
//! offline guesses. A man in the middle has two connections with different exporters, so the proofs that follow fail.

use bip39::Language;
use data_encoding::HEXLOWER;
use spake2::{Ed25519Group, Identity, Password, Spake2};
use sweetspot_protocol::{Message, ProtocolError, Secret, SpokenCode};
use sweetspot_units::Time;

use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::identity::random_bytes;
use crate::{Result, TransferError};

/// Number of words in a generated code, each one of 2048: 33 bits.
const WORDS: usize = 3;
/// Generated codes have numbers below this.
const NUMBERS: u32 = 100;

const DIALER: &[u8] = b"sweetspot: who connects";
const LISTENER: &[u8] = b"sweetspot: who listens";

/// Generates a code with a number for which `is_free` returns true.
pub fn draw_code(is_free: impl Fn(u32) -> bool) -> Result<SpokenCode> {
    let drawn: [u8; 2 * WORDS] = random_bytes("drawing a code")?;
    let list = Language::English.word_list();
    let word = |pair: &[u8]| {
        pair.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)) % list.len()
    };
    let words: Vec<&str> = drawn.chunks_exact(2).map(|pair| list[word(pair)]).collect();
    let number = (1..NUMBERS).find(|number| is_free(*number)).ok_or(TransferError::NoCodeFree)?;
    SpokenCode::new(number, &words).map_err(TransferError::Code)
}

/// The secret that the connecting end shares with a listener that has the same code.
pub(crate) fn dial(
    code: &SpokenCode,
    channel: &Channel,
    frames: &mut FrameReader,
    deadline: Time,
) -> Result<Secret> {
    let (exchange, element) = Spake2::<Ed25519Group>::start_a(
        &password(code),
        &Identity::new(DIALER),
        &Identity::new(LISTENER),
    );
    channel.send_message(&pake(code, &element))?;
    match frames.opening_message(deadline)? {
        Message::Pake { element, .. } => finish(exchange, element.raw()),
        Message::Refuse { reason } | Message::Failed { reason } => {
            Err(TransferError::Refused(reason))
        }
        other => {
            let (what, when) = (other.kind(), "before its part of the code");
            Err(ProtocolError::OutOfOrder { what, when }.into())
        }
    }
}

/// The secret shared with a peer that sent `element` and knows the code, and the answer from which the peer derives the
/// secret. Once the answer is sent, the peer has used its attempt.
pub(crate) fn answer(code: &SpokenCode, element: &str) -> Result<(Secret, Message)> {
    let (exchange, own) = Spake2::<Ed25519Group>::start_b(
        &password(code),
        &Identity::new(DIALER),
        &Identity::new(LISTENER),
    );
    Ok((finish(exchange, element)?, pake(code, &own)))
}

fn password(code: &SpokenCode) -> Password {
    Password::new(code.password())
}

fn pake(code: &SpokenCode, element: &[u8]) -> Message {
    Message::Pake { code: code.number(), element: HEXLOWER.encode(element).into() }
}

fn finish(exchange: Spake2<Ed25519Group>, element: &str) -> Result<Secret> {
    let wrong =
        || ProtocolError::OutOfOrder { what: "a damaged key exchange", when: "for the code" };
    let element = HEXLOWER.decode(element.as_bytes()).map_err(|_| wrong())?;
    let key = exchange.finish(&element).map_err(|_| wrong())?;
    let derived = blake3::derive_key("sweetspot 4 secret from a spoken code", &key);
    let (secret, _) = derived.split_first_chunk().ok_or_else(wrong)?;
    Ok(Secret(*secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(dialer: &str, listener: &str) -> (Secret, Secret) {
        let code = |text: &str| text.parse::<SpokenCode>().unwrap();
        let (a, b) = (Identity::new(DIALER), Identity::new(LISTENER));
        let (one, from_one) = Spake2::<Ed25519Group>::start_a(&password(&code(dialer)), &a, &b);
        let (two, from_two) = Spake2::<Ed25519Group>::start_b(&password(&code(listener)), &a, &b);
        let hex = |element: &[u8]| HEXLOWER.encode(element);
        (finish(one, &hex(&from_two)).unwrap(), finish(two, &hex(&from_one)).unwrap())
    }

    #[test]
    fn equal_codes_give_equal_secrets_and_different_codes_different_ones() {
        let (one, two) = secrets("7-crisp-lemon-orbit", "7 Crisp Lemon Orbit");
        assert_eq!(one.0, two.0);
        let (one, two) = secrets("7-crisp-lemon-orbit", "7-crisp-lemon-bird");
        assert_ne!(one.0, two.0);
    }

    #[test]
    fn a_new_code_has_the_first_free_number() {
        let code = draw_code(|number| number > 6).unwrap();
        assert_eq!(code.number(), 7);
        assert_eq!(code.password().split('-').count(), 1 + WORDS);
        assert!(draw_code(|_| false).is_err());
        assert_ne!(draw_code(|_| true).unwrap(), draw_code(|_| true).unwrap());
    }

    #[test]
    fn garbage_is_rejected_as_an_element() {
        for garbage in ["", "zz", "00", &"ff".repeat(33)] {
            let code: SpokenCode = "7-a-b-c".parse().unwrap();
            let ids = (Identity::new(DIALER), Identity::new(LISTENER));
            let (exchange, _) = Spake2::<Ed25519Group>::start_b(&password(&code), &ids.0, &ids.1);
            assert!(finish(exchange, garbage).is_err(), "{garbage}");
        }
    }
}
