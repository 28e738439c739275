use sweetspot_study::plot::{Axis, Origin, Place, Plot};
use sweetspot_units::Duration;

use super::file::SeriesRow;
use super::sheets::{Sheet, distribution};
use crate::outcome::{Contender, DemoOutcome};

/// Points over time.
type Points = Vec<(f64, f64)>;

/// A demonstration: every contender over time, and how the round trips were distributed.
pub fn demonstration(index: usize, file: &str, demo: &DemoOutcome) -> Vec<Sheet> {
    let path = &demo.path;
    let seconds =
        |times: &[Duration]| -> Vec<f64> { times.iter().map(|t| t.as_secs_f64()).collect() };
    let over = |times: &[Duration], values: Vec<Option<f64>>| -> Points {
        let points = seconds(times).into_iter().zip(values);
        points.filter_map(|(t, value)| value.map(|value| (t, value))).collect()
    };
    let draw = |label: &str, of: &dyn Fn(&Contender) -> Points| {
        let mut plot = Plot::new("", Axis::new("time, s"), Axis::new(label));
        for (group, contender) in demo.contenders.iter().enumerate() {
            plot.curve(contender.name(), Origin::Lab, group, of(contender));
        }
        // The demonstration is all one engine's: solid lines are easier to follow.
        for curve in &mut plot.curves {
            curve.origin = Origin::Sim;
        }
        plot
    };
    let mut goodput = draw("goodput, Mbit/s", &|c| {
        over(&c.series.t, c.series.goodput.iter().map(|g| Some(g.as_f64() / 1e6)).collect())
    });
    let carries = path.payload_capacity.as_f64() / 1e6;
    goodput.mark("what the path can carry", 6, Place::Level(carries));
    let mut window = draw("advertised window, kB", &|c| {
        let values = c.series.window.iter().map(|w| w.map(|w| w.as_f64() / 1e3));
        over(&c.series.t, values.collect())
    });
    let (full, overflow) = (path.bdp.as_f64() / 1e3, (path.bdp + path.buffer).as_f64() / 1e3);
    window.mark("C T_m: the path is full", 6, Place::Level(full));
    window.mark("C T_m + B: so is the buffer", 6, Place::Level(overflow));
    // Beyond half as much again one window differs from another in nothing.
    window.y = window.y.between(0.0, overflow * 1.5);
    let rtt = draw("round-trip time, ms", &|c| {
        let values = c.series.rtt.iter().map(|r| r.map(|r| r.as_secs_f64() * 1e3));
        over(&c.series.t, values.collect())
    });
    let queue = draw("bottleneck queue, kB", &|c| {
        let values = c.series.queue.bytes.iter().map(|b| Some(b.as_f64() / 1e3));
        over(&c.series.queue.t, values.collect())
    });
    let mut round_trips = Plot::new(
        "",
        Axis::new("round-trip time, ms"),
        Axis::new("share of samples").between(0.0, 1.0),
    );
    for (group, contender) in demo.contenders.iter().enumerate() {
        let rtts = contender.series.rtts().into_iter().map(|rtt| rtt.as_secs_f64() * 1e3);
        round_trips.curve(contender.name(), Origin::Sim, group, distribution(rtts));
    }
    vec![Sheet {
        name: format!("demo-{index}"),
        title: format!("Demonstration: {}, {}, {} of buffer", path.rate, path.rtt, path.buffer),
        about: format!("`{file}`, {} on {}; path `{}`.", demo.date, demo.kernel, path.spec),
        plots: vec![goodput, window, rtt, queue, round_trips],
        tables: Vec::new(),
    }]
}

/// Time series side by side, each quantity in one picture.
pub fn series(files: &[(&str, &[SeriesRow])]) -> Vec<Sheet> {
    if files.is_empty() {
        return Vec::new();
    }
    let quantity = |label: &str, of: &dyn Fn(&SeriesRow) -> Option<f64>| {
        let mut plot = Plot::new("", Axis::new("time, s"), Axis::new(label));
        for (group, (name, rows)) in files.iter().enumerate() {
            let points = rows.iter().filter_map(|row| of(row).map(|value| (row.t_s, value)));
            plot.curve(*name, Origin::Sim, group, points.collect());
        }
        plot
    };
    let mut window = quantity("advertised window, kB", &|row| {
        row.window_bytes.filter(|_| row.event.is_none()).map(|w| w / 1e3)
    });
    for (group, (_, rows)) in files.iter().enumerate() {
        for row in rows.iter() {
            if let Some(event) = &row.event {
                let words = format!("{:.2} s: {event}", row.t_s);
                window.mark(words, group, Place::Span(row.t_s, row.t_s));
            }
        }
    }
    let goodput = quantity("goodput, Mbit/s", &|row| row.goodput_bps.map(|g| g / 1e6));
    let rtt = quantity("round-trip time, ms", &|row| {
        row.rtt_s.filter(|_| row.event.is_none()).map(|r| r * 1e3)
    });
    let cwnd = quantity("congestion window, kB", &|row| row.cwnd_bytes.map(|c| c / 1e3));
    let queue = quantity("bottleneck queue, packets", &|row| row.queue_packets);
    let mut round_trips = Plot::new(
        "",
        Axis::new("round-trip time, ms"),
        Axis::new("share of samples").between(0.0, 1.0),
    );
    for (group, (name, rows)) in files.iter().enumerate() {
        let values = rows.iter().filter(|row| row.event.is_none()).filter_map(|row| row.rtt_s);
        round_trips.curve(*name, Origin::Sim, group, distribution(values.map(|rtt| rtt * 1e3)));
    }
    let plots = vec![goodput, window, rtt, cwnd, queue, round_trips];
    vec![Sheet {
        name: "series".into(),
        title: "Over time".into(),
        about:
            "Upright marks in the window's picture are what the controller did; their words show \
                under the pointer."
                .into(),
        plots: plots.into_iter().filter(|plot| !plot.curves.is_empty()).collect(),
        tables: Vec::new(),
    }]
}
