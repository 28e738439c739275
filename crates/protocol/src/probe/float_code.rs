//! Numbers in two or three bytes: a mantissa and the power of two by which it is shifted. A number that fits the
//! mantissa is exact. A larger one is rounded down, so a counter never exceeds the true value.

/// A number in two bytes: exact up to 4095, then to within 1/2000.
pub(super) const TWO_BYTES: FloatCode = FloatCode { mantissa: 11, bytes: 2 };
/// A number in three bytes: exact up to a million, then to within a millionth.
pub(super) const THREE_BYTES: FloatCode = FloatCode { mantissa: 19, bytes: 3 };

/// The exponent is in the upper five bits.
const EXPONENT: u32 = 5;

/// A number format: the bits of the mantissa, and the bytes of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct FloatCode {
    /// Bits after the leading one, which is implicit.
    mantissa: u32,
    bytes: usize,
}

impl FloatCode {
    /// The code for "none".
    pub(super) const fn none(self) -> u32 {
        (1 << (self.mantissa + EXPONENT)) - 1
    }

    /// The largest number that has a code.
    const fn largest(self) -> u64 {
        self.decode(self.none() - 1)
    }

    /// The code of the largest number that is no larger than `n`.
    pub(super) const fn encode(self, n: u64) -> u32 {
        if n >= self.largest() {
            return self.none() - 1;
        }
        let bits = u64::BITS - n.leading_zeros();
        if bits <= self.mantissa {
            return n as u32;
        }
        let shift = bits - self.mantissa - 1;
        let fraction = (n >> shift) as u32 - (1 << self.mantissa);
        (shift + 1) << self.mantissa | fraction
    }

    pub(super) const fn decode(self, code: u32) -> u64 {
        let (exponent, fraction) = (code >> self.mantissa, code & ((1 << self.mantissa) - 1));
        match exponent {
            0 => fraction as u64,
            exponent => (1 << self.mantissa | fraction as u64) << (exponent - 1),
        }
    }

    pub(super) fn put(self, out: &mut Vec<u8>, code: u32) {
        out.extend(&code.to_be_bytes()[4 - self.bytes..]);
    }

    /// Removes a number from the front. The code for "none" is not a number.
    pub(super) fn take_number(self, rest: &mut &[u8]) -> Option<u64> {
        self.take(rest).filter(|code| *code != self.none()).map(|code| self.decode(code))
    }

    pub(super) fn take(self, rest: &mut &[u8]) -> Option<u32> {
        let (code, left) = rest.split_at_checked(self.bytes)?;
        *rest = left;
        Some(code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_decode_to_strictly_increasing_numbers() {
        for code in 1..TWO_BYTES.none() {
            assert!(TWO_BYTES.decode(code) > TWO_BYTES.decode(code - 1), "{code}");
            assert_eq!(TWO_BYTES.encode(TWO_BYTES.decode(code)), code);
        }
    }

    proptest! {
        #[test]
        fn encoding_rounds_down_by_less_than_the_last_bit(
            n in any::<u64>(), shift in 0u32..64, long: bool,
        ) {
            let (format, n) = (if long { THREE_BYTES } else { TWO_BYTES }, n >> shift);
            let code = format.encode(n);
            let read = format.decode(code);
            prop_assert_ne!(code, format.none());
            prop_assert_eq!(format.encode(read), code);
            prop_assert!(read <= n);
            let exact = 2 << format.mantissa;
            if n < exact {
                prop_assert_eq!(read, n);
            } else if n < format.largest() {
                prop_assert!(n - read < n / (exact / 2));
            } else {
                prop_assert_eq!(read, format.largest());
            }
        }
    }
}
