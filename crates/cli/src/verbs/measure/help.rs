//! The text after the options in the help, with the members of the JSON.

pub const AFTER: &str = "\
Examples:
  At the other end of the path:
    sweetspot serve --dir /tmp
  At yours, with the ticket that it printed:
    sweetspot measure sweetspot1:...
    sweetspot measure sweetspot1:... --scenario path.toml
    sweetspot emulate --path path.toml -- ping -c 3 10.77.0.2
    sweetspot run path.toml
  Without ever filling a queue, or with few bytes:
    sweetspot measure sweetspot1:... --gentle
    sweetspot measure sweetspot1:... --budget 10MB
  As a page with pictures:
    sweetspot measure sweetspot1:... --html path.html
  A day of a path, to simulate later:
    sweetspot measure sweetspot1:... --watch 10min --times 144 \\
      --series day.jsonl --scenario day.toml
  From any TCP server, by its handshakes:
    sweetspot measure example.org:443

Grades, by the increase of the median RTT under load: A+ below 5 ms, A below 30,
B below 60, C below 200, D below 400 ms, otherwise F. Two grades stand for the
ends of the 95 % interval. The load is one TCP connection with the sender's
default congestion control, which the result names. A loss-based one fills the
buffer, and may get a much worse grade than bbr.

Ctrl-C ends the measurement after its present step, which can take 15 seconds,
and prints the results so far. A second one ends it at once, without results.
With --watch, the first one ends it at once; earlier results are in --series.

Units: SIZE is 500kB or 10MB (1 kB is 1000 B); INTERVAL is 30s, 10min or 1h.

Environment: SWEETSPOT_TICKET holds the ticket, out of other users' sight.

Exit codes: 0 the measurement is complete, or its budget is spent; 1 it failed;
2 the command line is wrong; 128+N signal N ended it early.

Members of --json:
  peer, version, took_s
                     the other end, this program's version, the duration
  round_trip         of the idle path, as findings:
    base_s, median_s, variation_s
  changed_s          base RTTs before and after a change of the path, or null
  directions         those measured, each with:
    direction          down (to you) or up (from you)
    capacity_bps, available_bps, buffer_bytes, buffer_s, jitter_s
                       findings
    loss, loss_burst_packets
                       findings: share lost, and packets lost in a row
    loss_packets_sent, loss_packets_lost
                       the packets behind them
    burst_bytes        depth of a token bucket, or null
    pair_mode_bps      the most frequent rate of packet pairs; the sender's own
                       if the capacity is a lower bound
    coalesced          whether packets arrived in groups
    discipline         the queue discipline: value, or unknown
    reordering         of all packets:
      arrived, reordered, extent
    load               the path under load; null if it was not measured:
      congestion, goodput_bps, round_trip_s, round_trips_per_minute
      grade, increase_s, increase_low_s, increase_high_s, retransmitted
    left_out           its skipped measurements, with reasons
  tcp                what both kernels agreed on:
    path_mtu_bytes, segment_bytes, window_scale, sack, timestamps, ecn
  intrusion          the measurement's load on the path:
    bytes, longest_queue_s
  left_out           skipped measurements of the RTT, with reasons
  outlook            simulated transfers:
    congestion         one with each congestion control, with:
      congestion, goodput_bps, goodput_low_bps, goodput_high_bps
      rtt_s, loss_rate
    window, window_bytes
                       the same with a window of the right size; its size
    runs               simulations behind each rate
    assumed, is_upper_bound
                       what was not measured; whether loss is part of it
    contradiction      a sentence if simulation and measurement differ
    unknown            why nothing was simulated
  verdict, verdict_lines
                     --quick: its lines, with | between them, and as a list
  time               --watch: the end of the measurement

Names in _s are seconds, in _bps bit/s. A finding has value, low and high (its
interval, or null) and how (the method). Otherwise it has unknown (the reason),
and low or high if only that bound is known.";
