//! Paragraphs of the help of several verbs, for `concat!`.

macro_rules! progress_help {
    () => {
        "\
Progress lines end with the state of the window: measuring the path, holding the
window at the capacity, trying another window or rate, or open (left to
congestion control). sobas (socket buffer auto-sizing) limits the window only
where it has measured that this costs no rate."
    };
}

macro_rules! ticket_help {
    () => {
        "\
Connections are encrypted and authenticated (TLS 1.3). Anyone who has a
ticket can use it, so keep it secret; only a service (serve --clients) asks for
a key as well."
    };
}

/// The members of a [`TransferSummary`](sweetspot_control::TransferSummary) and of its series.
macro_rules! members_help {
    () => {
        "\
Members of --json, for `copy`, `send`, `receive` and `serve`:
  role, peer, name   sender or receiver; the other end; the file's name
  client             with serve --clients, the client's name
  sizing, congestion the window's sizing; the sender's congestion control
  bytes, seconds, goodput_bps
                     content moved, the whole time, and their ratio
  segments, retransmitted_segments
                     as the sender's kernel counted them
  rtt_min_s, rtt_median_s, rtt_p99_s, rtt_source
                     round trips, from probes or from the kernel
  probes             sent, answered, lost_forward, lost_reverse, fallback
  window_final_bytes the last advertised window
  hash, hash_ok      BLAKE3 of a single file; true
  files              written, unchanged, updated, failed, deleted
  failures           the first hundred files that failed, with reasons
  streams, reconnects
                     most connections at once; times that it resumed
  dry_run            true in a dry run, which also has:
  would_move, would_change, would
                     entries as text; with path, kind and bytes; counted
  resumed_bytes, present_bytes, saved_bytes
                     left by an interruption; there before; compressed
  grown, skipped, deleted
                     names: grew while sent; pipes and devices; --delete
  special_bits_dropped
                     entries that lost set-ID or sticky bits
  limits             settings of either host that slowed the transfer
  clamp_method       how the window was limited
  cpu_seconds        of this end

Names in _s are seconds, in _bps bit/s; an unknown value is null. After a
failure, the object has error instead; if every file failed, it also has
failures and failed. A signal ends the program without an object. `serve` and
`send --offer` first print ticket or code, and expires_unix_s.

Members of --series, a line every 50 ms and for each event:
  transfer, t_s      number of the transfer in `serve`; its time
  bytes, goodput_bps content so far; rate since the line before
  window_bytes, rtt_s, cwnd_bytes, pacing_bps, phase
  retransmitted, segments, timeouts
                     counts so far; the last two at the sender
  event, reason, rate_bps, congestion_to
                     in an event's line"
    };
}

macro_rules! members_pointer {
    () => {
        "`sweetspot send --help` ends with the members of --json and --series."
    };
}

pub(crate) use {members_help, members_pointer, progress_help, ticket_help};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sweetspot_control::series::{SeriesEvent, SeriesRow};
    use sweetspot_control::{DryRunCounts, DryRunEntry, DryRunKind, TransferSummary};

    use crate::verbs::members::listed;
    use crate::verbs::transfer::words::tests::outcome;

    fn names(object: &impl serde::Serialize) -> Vec<String> {
        let object = serde_json::to_value(object).unwrap();
        object.as_object().unwrap().keys().cloned().collect()
    }

    /// A summary in which every member is set, including those that are left out when empty.
    fn full() -> TransferSummary {
        let names = || vec!["x".to_owned()];
        TransferSummary {
            client: Some("ann".into()),
            dry_run: true,
            would_move: names(),
            would_change: vec![DryRunEntry {
                path: "x".into(),
                kind: DryRunKind::File,
                bytes: None,
            }],
            would: Some(DryRunCounts::default()),
            deleted: names(),
            skipped: names(),
            special_bits_dropped: 1,
            resumed_bytes: 1,
            present_bytes: 1,
            grown: names(),
            ..outcome(Default::default())
        }
    }

    fn full_series() -> Vec<String> {
        let row = SeriesRow { segments: Some(1), timeouts: Some(1), ..SeriesRow::default() };
        let event = SeriesEvent {
            t_s: 0.0,
            event: "x".into(),
            window_bytes: Some(1),
            rate_bps: Some(1.0),
            rtt_s: Some(1.0),
            reason: Some("x".into()),
            congestion_to: Some("x".into()),
        };
        [names(&row), names(&event), vec!["transfer".to_owned()]].concat()
    }

    /// The code decides: the help and docs/formats.md name all members that it writes, and the help names no
    /// others.
    #[test]
    fn the_help_lists_exactly_the_json_members() {
        let help = members_help!();
        let (json, series) = help.split_once("Members of --series").unwrap();
        let set = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>();
        assert_eq!(listed(json), set(names(&full())));
        assert_eq!(listed(series), set(full_series()));
        let page = include_str!("../../../../../docs/formats.md");
        let begin = page.find("## A transfer\n").unwrap();
        let end = page.find("## Events of `tune`").unwrap();
        for name in [names(&full()), full_series()].concat() {
            let written = page[begin..end].contains(&format!("`{name}`"))
                || page[begin..end].contains(&format!("`{name}[]`"));
            assert!(written, "docs/formats.md lacks {name}");
        }
    }
}
