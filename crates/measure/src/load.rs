//! Delay while TCP fills the path.

use serde::Serialize;
use sweetspot_statistics::Sorted;
use sweetspot_units::{Duration, Rate};

use crate::finding::Finding;
use crate::observation::{EchoRecord, LoadRecord};

/// TCP's goodput, and its cost in delay.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayUnderLoad {
    /// Payload per second.
    pub goodput: Finding<Rate>,
    /// The median RTT of another flow during the load.
    pub round_trip: Finding<Duration>,
    /// Round trips per minute (RPM); the RTT of another flow and of the load itself count equally.
    pub responsiveness: Finding<f64>,
    /// The grade for the increase of the median RTT.
    pub grade: Option<Grade>,
    /// The increase of the median RTT above the idle RTT; the grade is its class.
    pub increase: Option<Duration>,
    /// The sender's congestion control.
    pub congestion: String,
    /// Number of retransmitted segments.
    pub retransmitted: u64,
}

/// The increase of the RTT under load, in the classes of a public bufferbloat test: below 5 ms, 30 ms, 60 ms, 200 ms, 400 ms,
/// and above (Waveform's bufferbloat test).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Grade {
    /// Below 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// 400 ms or more.
    F,
}

impl Grade {
    /// The grade for this increase in RTT.
    pub fn of(increase: Duration) -> Grade {
        match increase.as_nanos() / 1_000_000 {
            0..5 => Grade::APlus,
            5..30 => Grade::A,
            30..60 => Grade::B,
            60..200 => Grade::C,
            200..400 => Grade::D,
            _ => Grade::F,
        }
    }

    /// The range of RTT increases that the grade stands for, as text.
    pub fn increase(self) -> &'static str {
        match self {
            Grade::APlus => "below 5 ms",
            Grade::A => "5 to 30 ms",
            Grade::B => "30 to 60 ms",
            Grade::C => "60 to 200 ms",
            Grade::D => "200 to 400 ms",
            Grade::F => "from 400 ms",
        }
    }

    /// The grade as it is usually written.
    pub fn name(self) -> &'static str {
        match self {
            Grade::APlus => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        }
    }
}

/// The first part of a load, while the window is growing, does not count.
const SETTLING_SHARE: f64 = 0.3;
/// Minimum number of RTT samples for a result.
const MIN_SAMPLES: usize = 5;
/// The range of the medians of this many consecutive parts is an interval for the median of the whole. All parts lie on one side
/// of it with a probability of 2 / 2^6 = 3 %, although neighbouring echoes meet the same queue.
const PARTS: usize = 6;

impl DelayUnderLoad {
    /// The ends of the increase's interval, from the interval of the median RTT.
    pub fn increase_interval(&self) -> Option<(Duration, Duration)> {
        let (increase, rtt) = self.increase.zip(self.round_trip.estimate())?;
        let (low, high) = rtt.interval()?;
        let below = rtt.value.saturating_sub(low);
        Some((increase.saturating_sub(below), increase + high.saturating_sub(rtt.value)))
    }
}

/// The delay under `load`, compared with the `idle` median RTT.
pub fn delay_under_load(idle: Option<Duration>, load: &LoadRecord) -> DelayUnderLoad {
    let goodput = if load.elapsed > Duration::ZERO && load.content.get() > 0 {
        let rate = load.content / load.elapsed;
        let how = format!("{} in {} by {}", load.content, load.elapsed, load.congestion);
        Finding::known(rate, rate, rate, how)
    } else {
        Finding::unknown("nothing arrived")
    };
    let in_order = settled(&load.echoes);
    let foreign: Sorted = in_order.iter().copied().collect();
    let own: Sorted = load.round_trips.iter().map(|rtt| rtt.as_secs_f64()).collect();
    let span = Duration::from_secs_f64;
    let median = foreign.quantile(0.5).filter(|_| foreign.len() >= MIN_SAMPLES);
    let parts: Sorted = in_order
        .chunks(in_order.len().div_ceil(PARTS).max(1))
        .filter_map(|part| part.iter().copied().collect::<Sorted>().quantile(0.5))
        .collect();
    let round_trip = match (median, parts.quantiles([0.0, 1.0])) {
        (Some(median), Some([low, high])) => Finding::known(
            span(median),
            span(low.min(median)),
            span(high.max(median)),
            format!("the median of {} echoes of another flow, and of each sixth", foreign.len()),
        ),
        _ => Finding::unknown(format!("{} echoes came back meanwhile", foreign.len())),
    };
    let increase = median.zip(idle).map(|(median, idle)| span(median).saturating_sub(idle));
    DelayUnderLoad {
        goodput,
        round_trip,
        responsiveness: responsiveness(&foreign, &own),
        grade: increase.map(Grade::of),
        increase,
        congestion: load.congestion.clone(),
        retransmitted: load.retransmitted,
    }
}

/// Round trips per minute: 60 s over the mean of another flow's RTT and the loading connection's own. Each is the mean of its
/// samples without the largest twentieth (draft-ietf-ippm-responsiveness, section 5.1.3). Echoes over UDP replace the draft's
/// TCP, TLS and HTTP round trips on new connections.
fn responsiveness(foreign: &[f64], own: &[f64]) -> Finding<f64> {
    let trimmed = |sorted: &[f64]| {
        let kept = sorted.len() - sorted.len() / 20;
        (sorted.len() >= MIN_SAMPLES)
            .then(|| sorted[..kept].iter().sum::<f64>() / kept as f64)
            .filter(|mean| *mean > 0.0)
    };
    match (trimmed(foreign), trimmed(own)) {
        (Some(foreign), Some(own)) => {
            let bounds = [60.0 / foreign, 60.0 / own];
            Finding::known(
                60.0 / ((foreign + own) / 2.0),
                bounds[0].min(bounds[1]),
                bounds[0].max(bounds[1]),
                "60 s over the mean round trip of another flow and of the loading connection, without the longest 5 %",
            )
        }
        (Some(one), None) | (None, Some(one)) => Finding::known(
            60.0 / one,
            60.0 / one,
            60.0 / one,
            "60 s over the mean round trip of another flow or of the loading connection: only one was measured",
        ),
        (None, None) => Finding::unknown("too few round trips were measured under load"),
    }
}

/// The RTTs in the order of sending, without the first part.
fn settled(record: &EchoRecord) -> Vec<f64> {
    let mut echoes = record.echoes.clone();
    echoes.sort_unstable_by_key(|echo| echo.sent);
    let skip = (echoes.len() as f64 * SETTLING_SHARE) as usize;
    echoes[skip..].iter().map(|echo| echo.round_trip().as_secs_f64()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Echo;
    use sweetspot_units::{Bytes, Time};

    #[test]
    fn a_grade_names_a_range_that_includes_its_lower_end() {
        for (ms, words) in [
            (4, "below 5 ms"),
            (5, "5 to 30 ms"),
            (29, "5 to 30 ms"),
            (30, "30 to 60 ms"),
            (60, "60 to 200 ms"),
            (200, "200 to 400 ms"),
            (400, "from 400 ms"),
        ] {
            assert_eq!(Grade::of(Duration::from_millis(ms)).increase(), words);
        }
    }

    /// 18 echoes at the start, then 42 echoes in six parts with different RTTs.
    #[test]
    fn an_increase_has_the_interval_of_the_medians_of_its_parts() {
        let ms = Duration::from_millis;
        let echoes = (0..60u64).map(|n| {
            let sent = Time::ZERO + ms(n * 50);
            // 30 % of 60 echoes settle; each part has 7 of the other 42: 41 ms to 46 ms.
            let rtt = if n < 18 { 100 } else { 41 + (n - 18) / 7 };
            Echo { sent, reflected: sent, held: Duration::ZERO, received: sent + ms(rtt) }
        });
        let load = LoadRecord {
            content: Bytes::new(12_500_000),
            elapsed: Duration::from_secs(1),
            round_trips: Vec::new(),
            retransmitted: 0,
            congestion: "bbr".into(),
            echoes: EchoRecord { sent: 60, size: Bytes::new(100), echoes: echoes.collect() },
        };
        let found = delay_under_load(Some(ms(40)), &load);
        assert_eq!(found.increase_interval(), Some((ms(1), ms(6))));
        // TCP's goodput is one number without an interval.
        assert_eq!(found.goodput.estimate().unwrap().interval(), None);
    }

    #[test]
    fn a_loaded_rtt_of_100_ms_is_600_round_trips_per_minute() {
        let sent = |n: u64| Time::ZERO + Duration::from_millis(n * 50);
        let echoes = (0..60).map(|n| Echo {
            sent: sent(n),
            reflected: Time::ZERO,
            held: Duration::ZERO,
            received: sent(n) + Duration::from_millis(106),
        });
        let load = LoadRecord {
            content: Bytes::new(12_500_000),
            elapsed: Duration::from_secs(1),
            round_trips: vec![Duration::from_millis(94); 20],
            retransmitted: 3,
            congestion: "cubic".into(),
            echoes: EchoRecord { sent: 60, size: Bytes::new(100), echoes: echoes.collect() },
        };
        let found = delay_under_load(Some(Duration::from_millis(40)), &load);
        assert_eq!(found.goodput.value(), Some(Rate::from_mbit_per_second(100)));
        assert!((found.responsiveness.value().unwrap() - 600.0).abs() < 1e-6);
        // The increase is 66 ms.
        assert_eq!(found.grade, Some(Grade::C));
    }
}
