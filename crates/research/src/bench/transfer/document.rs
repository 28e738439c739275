use std::fmt::Write;

use sweetspot_comparison::machine;

use super::content::{LARGE_FILE, MANY_FILES};
use super::drawn::{COMPARISONS, DrawnResult, ratios};
use super::faults::FaultResult;
use super::paths::TransferResult;
use super::peers::{Device, LocalResult};
use sweetspot_research::page_abstract::Abstract;
use sweetspot_statistics::{Sorted, median};

const ABSTRACT: Abstract<'_> = Abstract {
    question: "how fast does `sweetspot copy` move files, compared with rsync, scp, rclone, curl and iperf3?",
    method: "the same files on one host (medians, including the start of ssh), and with `copy` across emulated \
        paths.",
    result: "each table has seconds and throughput by program or path.",
    limitation: "on one host all files are in memory, so no disk limits any program.",
    command: "`make bench-transfer`",
};

/// The results that the document shows.
pub struct Results<'a> {
    pub locals: &'a [LocalResult],
    pub paths: &'a [TransferResult],
    pub drawn: &'a [DrawnResult],
    pub faults: Option<FaultResult>,
}

/// The document, written by `command`, on paths drawn from `seed`, with the hand-written section
/// `notes`.
pub fn markdown(results: &Results<'_>, seed: u64, command: &str, notes: &str) -> String {
    let &Results { locals, paths, drawn, ref faults } = results;
    let mut text = format!(
        "# Moving files\n\n{ABSTRACT}Written by `{command}` on {}, {}, {}.\n{notes}\n",
        machine::machine(),
        machine::kernel(),
        machine::date()
    );
    text += &targets(locals);
    let on_one_host = [
        (Device::Loopback, "## On one host, through its own sshd on loopback"),
        (Device::Veth, "## On one host, across a veth pair between two network namespaces"),
    ];
    for (device, title) in on_one_host {
        let rows: Vec<_> = locals.iter().filter(|result| result.device == device).collect();
        if !rows.is_empty() {
            text += &moved_on_one_host(title, &rows);
        }
    }
    if !paths.is_empty() {
        text += "## Across emulated paths\n\n\
                 Hosts with their default limits. *Of the path*: goodput, including slow start and the search for \
                 the number of connections, as a share of the payload rate of the path. *Beyond the bytes*: time \
                 in addition to the time that the bytes take at the payload rate. *Beyond loss*: share of segments that were \
                 retransmitted, less those that the path lost at random.\n\n\
                 | path | congestion control | content | seconds | beyond the bytes | Mbit/s | of the path | connections | beyond loss |\n\
                 |---|---|---|---:|---:|---:|---:|---:|---:|\n";
        for result in paths {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.1} | {:.1} s | {:.1} | {:.0} % | {} | {:.2} % |",
                result.path,
                result.congestion,
                result.content,
                result.seconds,
                result.beyond_bytes_s,
                result.goodput_mbit,
                100.0 * result.of_path,
                result.streams,
                100.0 * result.sent_again_beyond_loss
            );
        }
    }
    if !drawn.is_empty() {
        text += &on_drawn_paths(drawn, seed);
    }
    if let Some(faults) = faults {
        text += &interrupted(faults);
    }
    text
}

fn on_drawn_paths(results: &[DrawnResult], seed: u64) -> String {
    let mut text = format!(
        "\n## Push and pull on drawn paths\n\n\
         Every program moves each content once, in turns, on each of {} paths (20 to 300 Mbit/s, 5 to 150 ms, buffers of 0.25 to 2 BDP; \
         seed {seed}). The ratio is the first program's time over the second's, with the start of ssh: median and 95 % \
         quantile over the paths, and their upper limits. *kernel*: `--sizing kernel`; *again*: a second such run, which shows \
         the effect of chance.\n\n\
         | program | over | content | paths | median | 95 % | target |\n|---|---|---|---:|---:|---:|---|\n",
        results.len()
    );
    for (program, reference, target) in COMPARISONS {
        for (content, ratios) in ratios(results, program, reference) {
            let (median, high) = (quantile(&ratios, 0.5), quantile(&ratios, 0.95));
            let target = target.map_or(String::new(), |(middle, upper)| {
                let met = median <= middle && high <= upper;
                let upper = if upper.is_finite() { format!(" / {upper}") } else { String::new() };
                format!("{middle}{upper} {}", if met { "met" } else { "**missed**" })
            });
            let _ = writeln!(
                text,
                "| {program} | {reference} | {content} | {} | {median:.2} | {high:.2} | {target} |",
                ratios.len()
            );
        }
    }
    text
}

/// A quantile of unsorted values, interpolated (Hyndman and Fan's type 7).
fn quantile(values: &[f64], share: f64) -> f64 {
    sweetspot_statistics::quantile(values, share).unwrap_or(f64::NAN)
}

/// Targets on one host, as a Markdown table; a target is omitted if one of its two programs has no
/// result.
fn targets(locals: &[LocalResult]) -> String {
    let (file, small) = (&LARGE_FILE.in_words(), &MANY_FILES.in_words());
    let (iperf3, scp, rsync) = ("iperf3", "scp", "rsync");
    let targets = [
        (file, iperf3, 1.0 / 0.9, "0.9 of iperf3's rate"),
        (file, scp, 1.0 / 3.0, "3 times scp's rate"),
        (small, rsync, 1.0 / 3.0, "a third of rsync's time"),
    ];
    let mut rows = String::new();
    for device in [Device::Loopback, Device::Veth] {
        for (content, peer, limit, words) in targets {
            let of = |program: &str| {
                let is_it = |result: &&LocalResult| {
                    (result.device, &result.content) == (device, content)
                        && result.program.starts_with(program)
                };
                locals.iter().find(is_it).and_then(|result| median(result.seconds.iter().copied()))
            };
            let (Some(copy), Some(peer)) = (of("sweetspot copy"), of(peer)) else { continue };
            let over = copy / peer;
            let met = if over <= limit { "met" } else { "**missed**" };
            let _ = writeln!(
                rows,
                "| {device}: {content} | {words} | {over:.2} of its time, {:.2} times its rate | {met} |",
                1.0 / over
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "## Targets on one host\n\n| content | target | `copy` | |\n|---|---|---|---|\n{rows}\n"
    )
}

fn moved_on_one_host(title: &str, results: &[&LocalResult]) -> String {
    let mut text = format!(
        "{title}\n\n\
         All files in memory (tmpfs). The programs take turns. Seconds, including the start of ssh, and throughput \
         are medians of \
         the runs. CPU time is the near end's.\n\n\
         | content | program | runs | seconds (range) | Gbit/s | CPU, s/GB |\n|---|---|---:|---:|---:|---:|\n"
    );
    for result in results {
        let times: Sorted = result.seconds.iter().copied().collect();
        let [min, seconds, max] = times.quantiles([0.0, 0.5, 1.0]).unwrap_or([f64::NAN; 3]);
        let cpu = median(result.near_cpu.iter().copied()).unwrap_or(f64::NAN);
        let gigabytes = result.bytes as f64 / 1e9;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {seconds:.2} ({min:.2}-{max:.2}) | {:.2} | {:.2} |",
            result.content,
            result.program,
            result.seconds.len(),
            8.0 * gigabytes / seconds,
            cpu / gigabytes
        );
    }
    text + "\n"
}

fn interrupted(result: &FaultResult) -> String {
    let megabytes = |share: f64| {
        let last = result.twice.len().saturating_sub(1) as f64;
        result.twice.get((share * last).round() as usize).copied().unwrap_or(f64::NAN) / 1e6
    };
    let mut text = format!(
        "\n## Interrupted at random\n\n\
         {} transfers of {:.0} MB in 40 files over loopback, each interrupted three times within its first quarter of a \
         second (seed {}) and run again to the end: **{} files wrong or missing, {} partial files left**.\n\n\
         | fault | times |\n|---|---:|\n",
        result.trials,
        result.content as f64 / 1e6,
        result.seed,
        result.wrong,
        result.left
    );
    for (fault, times) in &result.faults {
        let _ = writeln!(text, "| {fault} | {times} |");
    }
    let _ = writeln!(
        text,
        "\nData sent twice for each interruption, by the bytes that the device carried, in the {} trials in which no partial file \
         was damaged: median {:.1} MB, 95 % below {:.1} MB, at most {:.1} MB. This is data that was in flight or \
         not yet written \
         when an end was killed.",
        result.twice.len(),
        megabytes(0.5),
        megabytes(0.95),
        megabytes(1.0)
    );
    text
}
