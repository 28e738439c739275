use std::fmt::Write;

use sweetspot_research::page_abstract::Abstract;
use sweetspot_statistics::median;

use super::{End, Round};
use crate::bench::facts::facts;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "which stages of a copy take this machine's CPU time, and how much does `sweetspot copy` add?",
    method: "each stage alone on one thread, for 1 GB in pieces of 256 KiB, alternating with copies of 4 GB through sshd on loopback.",
    result: "the tables have CPU seconds per GB; the last rows compare a copy with the sum of its stages.",
    limitation: "files are in memory, one machine; a copy includes the start of ssh, and its threads share caches.",
    command: "`make bench-stages`",
};

/// The target for the CPU time of a copy relative to the sum of its stages.
const TARGET: f64 = 1.25;

/// The document on these rounds, with the hand-written section `notes`.
pub fn markdown(rounds: &[Round], notes: &str) -> String {
    let command = ("command", "`make bench-stages`".to_owned());
    let facts = facts(&[command, ("rounds", rounds.len().to_string())]);
    let mut text = format!(
        "# Where a copy's CPU time goes\n\n{ABSTRACT}![CPU seconds per GB](../pictures/stages.svg)\n\n{facts}\n"
    );
    for (end, title) in [(End::Sender, "Sender"), (End::Receiver, "Receiver")] {
        let _ = write!(text, "\n## {title}\n\n| stage | CPU, s/GB |\n|---|--:|\n");
        let stages = stages(rounds, end);
        for (name, seconds) in &stages {
            let _ = writeln!(text, "| {name} | {seconds:.3} |");
        }
        let sum: f64 = stages.iter().map(|(_, seconds)| seconds).sum();
        let copy = median(rounds.iter().map(|round| round.copies[end as usize]));
        let copy = copy.unwrap_or(f64::NAN);
        let verdict = if copy <= TARGET * sum { "met" } else { "**missed**" };
        let _ = writeln!(
            text,
            "| sum of the stages | {sum:.3} |\n| **sweetspot copy** | {copy:.3} |\n\n\
             A copy takes {:.2} times the sum of its stages; at most {TARGET} is the target: {verdict}. The start of both \
             programs and of ssh is part of it, {:.2} s for all 4 GB.",
            copy / sum,
            median(rounds.iter().map(|round| round.starts[end as usize])).unwrap_or(f64::NAN)
        );
    }
    text + notes
}

/// The median of each stage at one end, s/GB, in stage order.
fn stages(rounds: &[Round], end: End) -> Vec<(String, f64)> {
    let names = rounds.first().into_iter().flat_map(|round| &round.stages);
    let names = names.filter(|(of, ..)| *of == end).map(|(_, name, _)| name);
    let times = |name: &str| {
        let all = rounds.iter().flat_map(|round| &round.stages);
        median(all.filter(|(of, stage, _)| (*of, stage.as_str()) == (end, name)).map(|(.., s)| *s))
    };
    names.filter_map(|name| Some((name.clone(), times(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_research::notes;

    #[test]
    fn each_end_has_its_stages_their_sum_and_a_verdict() {
        let stage = |end, name: &str, seconds| (end, name.to_owned(), seconds);
        let round = |hash| Round {
            stages: vec![
                stage(End::Sender, "hash", hash),
                stage(End::Sender, "encrypt", 0.2),
                stage(End::Receiver, "hash", hash),
            ],
            copies: [0.5, 0.12],
            starts: [0.1, 0.2],
        };
        let notes = notes::section("By hand.");
        let text = markdown(&[round(0.1), round(0.3), round(0.1)], &notes);
        assert!(text.contains(&notes), "{text}");
        // The median of hash is 0.1, so the sender's sum is 0.3, and 0.5 / 0.3 = 1.67.
        assert!(text.contains("| sum of the stages | 0.300 |"), "{text}");
        assert!(
            text.contains(
                "1.67 times the sum of its stages; at most 1.25 is the target: **missed**"
            )
        );
        assert!(text.contains("1.20 times the sum of its stages; at most 1.25 is the target: met"));
    }
}
