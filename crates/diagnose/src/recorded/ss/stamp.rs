//! The time of a reading: a line printed by `date`, or the beginning of each line, as written by `ts`.

use sweetspot_units::{Duration, Time};

/// The time since 1970 at the beginning of `line`, if any, and the rest.
pub fn strip(line: &str) -> (Option<Time>, &str) {
    if let Some(time) = date(line) {
        return (Some(time), "");
    }
    // A number alone on a line is a time in seconds.
    if let Ok(seconds) = line.trim().parse::<f64>()
        && (0.0..1e11).contains(&seconds)
    {
        return (Some(Time::from_nanos((seconds * 1e9) as u64)), "");
    }
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    if let Some(time) = epoch(first).or_else(|| iso(first)) {
        return (Some(time), rest);
    }
    // 2026-11-27 15:43:57, with a space.
    let (second, after) = rest.split_once(' ').unwrap_or((rest, ""));
    match iso(&format!("{first}T{second}")) {
        Some(time) => (Some(time), after),
        None => (None, line),
    }
}

/// Seconds since 1970, as written by `date +%s.%N` and `ts %.s`. Only dates from 2001 on are accepted, so that a counter
/// does not look like a time.
fn epoch(word: &str) -> Option<Time> {
    let seconds: f64 = word.parse().ok()?;
    (seconds.is_finite() && (1e9..1e11).contains(&seconds))
        .then(|| Time::from_nanos((seconds * 1e9) as u64))
}

/// Parses `2026-11-27T15:43:57.123Z`, with a comma or a dot before the fraction, with or without an offset. Offsets are
/// ignored, because only differences between times are used.
pub fn iso(word: &str) -> Option<Time> {
    let (day, time) = word.split_once('T')?;
    let mut parts = day.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let end = time.find(['Z', '+']).or_else(|| time.rfind('-')).unwrap_or(time.len());
    moment(year, month, day, clock(&time[..end])?)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses `Fri Nov 27 15:43:57 UTC 2026` in any order, as printed by `date`, `ts` and in the header of `watch`.
fn date(line: &str) -> Option<Time> {
    let (mut year, mut month, mut day, mut time, mut afternoon) = (None, None, None, None, None);
    for word in line.split_whitespace() {
        if let Some(found) = MONTHS.iter().position(|name| *name == word) {
            month = Some(found as u64 + 1);
        } else if word.matches(':').count() == 2 && clock(word).is_some() {
            time = clock(word);
        } else if matches!(word, "AM" | "PM") {
            afternoon = Some(word == "PM");
        } else if let Ok(number) = word.trim_end_matches('.').parse::<u64>() {
            match number {
                1..=31 => day = Some(number),
                1970..=LAST_YEAR => year = Some(number),
                _ => {}
            }
        }
    }
    const HALF: Duration = Duration::from_secs(12 * 3600);
    let time = match (time?, afternoon) {
        (time, Some(true)) if time < HALF => time + HALF,
        (time, Some(false)) if time >= HALF => time.saturating_sub(HALF),
        (time, _) => time,
    };
    moment(year?, month?, day?, time)
}

/// Parses `15:43:57.123`.
fn clock(text: &str) -> Option<Duration> {
    let text = text.replace(',', ".");
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (parts.next()?.parse::<u64>().ok()?, parts.next()?.parse::<u64>().ok()?);
    let seconds: f64 = parts.next()?.parse().ok()?;
    let whole = Duration::from_secs(hours.min(24) * 3600 + minutes.min(59) * 60);
    (0.0..=61.0)
        .contains(&seconds)
        .then(|| whole + Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Years after this are rejected: [`Time`] ends in 2554.
const LAST_YEAR: u64 = 2500;

/// The time of a date in the proleptic Gregorian calendar; `None` if it is out of range.
fn moment(year: u64, month: u64, day: u64, time: Duration) -> Option<Time> {
    if !(1970..=LAST_YEAR).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day)
    {
        return None;
    }
    // The year begins in March, so that the leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    Some(Time::ZERO + Duration::from_secs((days - 719_468) * 86_400) + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_format_parses_to_the_same_moment() {
        // date -u -d @1795794237 "+%F %T": 2026-11-27 15:43:57.
        let expected = Time::from_nanos(1_795_794_237_500_000_000);
        for text in [
            "1795794237.5",
            "2026-11-27T15:43:57.5Z",
            "2026-11-27T15:43:57,500000000+00:00",
            "2026-11-27 15:43:57.5",
            "Fri Nov 27 15:43:57.5 UTC 2026",
            "Fri Nov 27 03:43:57.5 PM UTC 2026",
            "Fri 27 Nov 2026 03:43:57.5 PM UTC",
            "Fr 27. Nov 15:43:57.5 UTC 2026",
            "Every 1.0s: ss -ti   host: Fri Nov 27 15:43:57.5 2026",
        ] {
            assert_eq!(strip(text).0, Some(expected), "{text}");
        }
    }

    #[test]
    fn stripping_a_ts_timestamp_keeps_the_indent() {
        assert_eq!(strip("1795794237.5 \t cubic rtt:1/1").1, "\t cubic rtt:1/1");
        assert_eq!(strip("ESTAB 0 0 192.0.2.1:1 192.0.2.2:2").0, None);
        assert_eq!(strip("\t cubic wscale:7,7 rto:204").0, None);
    }

    #[test]
    fn impossible_dates_are_not_timestamps() {
        assert_eq!(iso("1970-01-01T00:00:00Z"), Some(Time::ZERO));
        // date -u -d 2500-12-31 +%s: 16,756,675,200.
        assert_eq!(iso("2500-12-31T00:00:00Z"), Some(Time::from_nanos(16_756_675_200_000_000_000)));
        for text in [
            "2600-01-01T00:00:00Z",
            "1969-12-31T00:00:00Z",
            "18446744073709551615-1-1T0:0:0",
            "2026-18446744073709551615-1T0:0:0",
            "2026-1-18446744073709551615T0:0:0",
            "2026-13-1T0:0:0",
            "2026-1-0T0:0:0",
            "Fri Nov 27 15:43:57 UTC 2600",
        ] {
            assert_eq!(strip(text).0, None, "{text}");
        }
    }
}
