/// The sender's side of the periodic probes: which probes to answer, and the numbers of the answers.
///
/// Each probe is answered once. A replayed probe is rejected if it is among the last 64, and any older probe is
/// rejected as well (the sliding window of RFC 4303, section 3.4.3).
#[derive(Debug, Default)]
pub struct Reflector {
    /// One more than the highest probe seen.
    next: u32,
    /// Bit i: probe `next - 1 - i` was seen.
    seen: u64,
    answers: u32,
}

impl Reflector {
    /// Handles an authenticated probe. Returns the number of its answer; `None` if the probe was answered
    /// before, or is too old to tell.
    pub fn handle_probe(&mut self, sequence: u32) -> Option<u32> {
        if sequence >= self.next {
            let ahead = sequence - self.next + 1;
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.next = sequence.checked_add(1)?;
        } else {
            let bit = 1u64.checked_shl(self.next - 1 - sequence)?;
            if self.seen & bit != 0 {
                return None;
            }
            self.seen |= bit;
        }
        self.answers += 1;
        Some(self.answers - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_replayed_probe_is_not_answered() {
        let mut reflector = Reflector::default();
        assert_eq!(reflector.handle_probe(0), Some(0));
        assert_eq!(reflector.handle_probe(0), None);
        assert_eq!(reflector.handle_probe(5), Some(1));
        assert_eq!(reflector.handle_probe(3), Some(2), "late, not replayed");
        assert_eq!(reflector.handle_probe(3), None);
        assert_eq!(reflector.handle_probe(70), Some(3));
        assert_eq!(reflector.handle_probe(6), None, "64 behind: too old to tell");
        assert_eq!(reflector.handle_probe(7), Some(4));
    }

    proptest! {
        #[test]
        fn no_probe_is_answered_twice(probes in proptest::collection::vec(0u32..200, 0..400)) {
            let (mut reflector, mut answered) = (Reflector::default(), BTreeSet::new());
            for probe in probes {
                if let Some(number) = reflector.handle_probe(probe) {
                    prop_assert!(answered.insert(probe));
                    prop_assert_eq!(number as usize + 1, answered.len());
                }
            }
        }
    }
}
