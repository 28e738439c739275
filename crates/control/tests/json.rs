//! The JSON that programs read: its names stay the same when names in the code change.

use sweetspot_control::{OwnAccount, TransferSummary};
use sweetspot_protocol::{
    FileCounts, PeerText, ProbeSummary, ReceiverSummary, Role, RttSource, SenderSummary,
};
use sweetspot_units::{Bytes, Duration};

/// 1000 bytes sent in one second over a connection that followed `reconnects` others.
fn own_account(name: &PeerText, reconnects: u32) -> OwnAccount<'_> {
    OwnAccount {
        role: Role::Sender,
        peer: "192.0.2.1:7411".parse().unwrap(),
        name,
        sizing: "sobas",
        bytes: Bytes::new(1000),
        took: Duration::from_secs(1),
        cpu: Duration::ZERO,
        reconnects,
        failures: &[],
    }
}

#[test]
fn the_transfer_summary_keeps_its_documented_json_names() {
    let file = "f".into();
    let own = own_account(&file, 0);
    let receiver = ReceiverSummary {
        hash: Some("00".into()),
        files: FileCounts { written: 1, unchanged: 0, updated: 0, failed: 0, deleted: 0 },
        content_bytes: 1000,
        resumed_bytes: 0,
        streams: 1,
        rtt_s: Some([0.01, 0.02, 0.03]),
        rtt_source: RttSource::Probes,
        probes: ProbeSummary::default(),
        window_final_bytes: Some(5),
        clamp_method: None,
        limits: Vec::new(),
    };
    let sender = SenderSummary {
        congestion: "cubic".into(),
        segments: 1,
        retransmitted_segments: 0,
        limits: Vec::new(),
        saved_bytes: 0,
        unlisted: 0,
    };
    let summary = TransferSummary::new(own, receiver, Some(sender));
    // 1000 bytes in a second are 8000 bits per second.
    let expected = concat!(
        r#"{"role":"sender","peer":"192.0.2.1:7411","name":"f","sizing":"sobas","congestion":"cubic","#,
        r#""bytes":1000,"saved_bytes":0,"seconds":1.0,"goodput_bps":8000.0,"segments":1,"retransmitted_segments":0,"#,
        r#""rtt_min_s":0.01,"rtt_median_s":0.02,"rtt_p99_s":0.03,"rtt_source":"probes","#,
        r#""probes":{"sent":0,"answered":0,"lost_forward":0,"lost_reverse":0,"fallback":false},"#,
        r#""window_final_bytes":5,"hash":"00","hash_ok":true,"limits":[],"clamp_method":null,"#,
        r#""cpu_seconds":0.0,"files":{"written":1,"unchanged":0,"updated":0,"failed":0,"deleted":0},"streams":1,"#,
        r#""reconnects":0,"failures":[]}"#
    );
    assert_eq!(serde_json::to_string(&summary).unwrap(), expected);
    let name = |source| serde_json::to_string(&source).unwrap();
    assert_eq!(
        [RttSource::Kernel, RttSource::Unmeasured].map(name),
        [r#""kernel""#, r#""unmeasured""#],
        "the source of the round-trip times"
    );
}

#[test]
fn earlier_connections_count_in_bytes_time_and_rate() {
    let file = "f".into();
    let own = own_account(&file, 1);
    let receiver = ReceiverSummary {
        hash: None,
        files: FileCounts::default(),
        content_bytes: 1000,
        resumed_bytes: 500,
        streams: 1,
        rtt_s: None,
        rtt_source: RttSource::Probes,
        probes: ProbeSummary::default(),
        window_final_bytes: None,
        clamp_method: None,
        limits: Vec::new(),
    };
    let last = TransferSummary::new(own, receiver, None);
    let whole = last.after(Bytes::new(3000), Duration::from_secs(2));
    // 4000 bytes in two seconds are 16000 bits per second.
    assert_eq!((whole.bytes, whole.seconds, whole.goodput_bps), (4000, 2.0, 16_000.0));
    assert_eq!(whole.resumed_bytes, 500);
}
