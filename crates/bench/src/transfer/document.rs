use std::fmt::Write;

use sweetspot_comparison::machine;

use super::paths::PathResult;
use super::peers::LocalResult;
use crate::median;

/// The document, by `command`.
pub fn markdown(locals: &[LocalResult], paths: &[PathResult], command: &str) -> String {
    let mut text = format!(
        "# Moving files\n\nWritten by `{command}` on {}, {}, {}; do not edit.\n\n",
        machine::machine(),
        machine::kernel(),
        machine::date()
    );
    if !locals.is_empty() {
        text += "## On one host, through its own sshd on loopback\n\n\
                 All files in memory (tmpfs). Seconds with the start of ssh, medians of the runs; CPU time of the near end.\n\n\
                 | content | program | seconds | Gbit/s | CPU, s/GB |\n|---|---|---:|---:|---:|\n";
        for result in locals {
            let seconds = median(result.seconds.iter().copied()).unwrap_or(f64::NAN);
            let cpu = median(result.near_cpu.iter().copied()).unwrap_or(f64::NAN);
            let gigabytes = result.bytes as f64 / 1e9;
            let _ = writeln!(
                text,
                "| {} | {} | {seconds:.2} | {:.2} | {:.2} |",
                result.content,
                result.program,
                8.0 * gigabytes / seconds,
                cpu / gigabytes
            );
        }
        text += "\n";
    }
    if !paths.is_empty() {
        text += "## Across emulated paths\n\n\
                 Hosts with their stock limits. *Of the path*: goodput, slow start and the search for the number of connections \
                 included, over what the path carries of payload. *Beyond loss*: segments sent again, less those that the \
                 path lost at random, of all.\n\n\
                 | path | congestion control | content | seconds | Mbit/s | of the path | connections | beyond loss |\n\
                 |---|---|---:|---:|---:|---:|---:|---:|\n";
        for result in paths {
            let _ = writeln!(
                text,
                "| {} | {} | {:.2} GB | {:.1} | {:.1} | {:.0} % | {} | {:.2} % |",
                result.path,
                result.congestion,
                result.size as f64 / 1e9,
                result.seconds,
                result.goodput_mbit,
                100.0 * result.of_path,
                result.streams,
                100.0 * result.sent_again_beyond_loss
            );
        }
    }
    text
}
