//! The machine and time of a measurement.

use std::fs;

use sweetspot_linux::clock;
use sweetspot_units::Time;

/// Processor and number of CPUs, e.g. "AMD EPYC, 2 CPUs".
pub fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .filter(|line| line.starts_with("model name"))
        .find_map(|line| line.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!("{model}, {cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" })
}

/// The kernel's name and release, e.g. "Linux 6.18.44".
pub fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// The machine, its kernel and the day, for documents.
pub fn here() -> String {
    format!("{}, {}, {}", machine(), kernel(), &date()[..10])
}

/// The present time in UTC, in RFC 3339 format.
pub fn date() -> String {
    rfc3339(clock::wall())
}

fn rfc3339(since_1970: Time) -> String {
    let seconds = since_1970.as_nanos() / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The Gregorian date of a day counted from 1970-01-01, for later dates (H. Hinnant,
/// "chrono-compatible low-level date algorithms", civil_from_days).
fn civil(days: u64) -> (u64, u64, u64) {
    // Count from 0000-03-01, so that a leap day is the last of its year.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_rfc_3339() {
        // Expected values from `date -u -d @N`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_165_200, "2026-11-20T09:00:00Z"),
        ] {
            assert_eq!(rfc3339(Time::from_nanos(seconds * 1_000_000_000)), text);
        }
    }
}
