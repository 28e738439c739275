use core::fmt;
use core::str::FromStr;

use sweetspot_theory::host::advertised_window::Era;

use crate::AdviceError;

/// A Linux kernel's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    /// Major number: 6 in 6.18.
    pub major: u32,
    /// Minor number: 18 in 6.18.
    pub minor: u32,
}

impl Kernel {
    /// The rule by which this kernel derives the advertised window from the receive buffer.
    pub fn era(self) -> Era {
        Era::of_kernel(self.major, self.minor)
    }
}

impl FromStr for Kernel {
    type Err = AdviceError;

    /// Parses a release as printed by `uname -r`; the part after the second number is ignored.
    fn from_str(text: &str) -> Result<Kernel, AdviceError> {
        let wrong = || AdviceError::NotThat {
            given: text.trim().to_owned(),
            wanted: "a kernel's version",
            example: "6.18",
        };
        let mut numbers = text.trim().split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|n| n.parse().ok()).ok_or_else(wrong);
        Ok(Kernel { major: next()?, minor: next()? })
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_parse_as_uname_prints_them() {
        let read = |t: &str| t.parse::<Kernel>();
        assert_eq!(read("6.18.44-fc-v669\n"), Ok(Kernel { major: 6, minor: 18 }));
        assert_eq!(read("5.15"), Ok(Kernel { major: 5, minor: 15 }));
        for wrong in ["", "six", "6", "v6.1", "6.x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
