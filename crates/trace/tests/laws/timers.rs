use sweetspot_trace::flow::{Connection, Hold, Retransmissions, Vantage};
use sweetspot_units::Duration;

use crate::script::Script;

fn ms(n: u64) -> Option<Duration> {
    Some(Duration::from_millis(n))
}

/// The receiver reports a hole at 200 ms, and the sender repairs it at 62 s, captured at the sender and at the receiver, 50 ms
/// away. Only the capture at the sender shows that it sent nothing in between.
#[test]
fn a_long_wait_before_a_single_answered_retransmission_is_a_timeout() {
    let wait = |to_receiver: u64, to_sender: u64| {
        let mut script = Script::opened(to_receiver, 60_000, to_receiver + to_sender);
        let sent = |at: u64| at + 100 - to_receiver;
        (0..4).for_each(|n| script.send(sent(200), n));
        script.ack(sent(200) + to_receiver, 1);
        script.ack(sent(200) + to_receiver, 1);
        script.send(sent(62_000), 1);
        script.ack(sent(62_000) + to_receiver, 4);
        script.end()
    };
    let [at_sender, at_receiver] = [wait(100, 0), wait(0, 100)];
    let of = |connection: &Connection, hold| {
        connection.streams[0].accounts().held(&[hold]).as_secs_f64().round()
    };
    assert_eq!(at_sender.streams[0].round_trips().vantage(), Vantage::Sender);
    assert_eq!([Hold::AfterLoss, Hold::Silent].map(|hold| of(&at_sender, hold)), [62.0, 0.0]);
    assert_eq!([Hold::AfterLoss, Hold::Silent].map(|hold| of(&at_receiver, hold)), [0.0, 62.0]);
    let waits = at_sender.streams[0].timer_waits();
    // The wait begins with the acknowledgements at 300 ms. The retransmission is answered after an RTT.
    assert_eq!((waits.count, Some(waits.time), Some(waits.answer)), (1, ms(61_700), ms(100)));
    assert_eq!(at_sender.streams[0].silence(), None);
    let Retransmissions { recoveries, timeouts, .. } = *at_sender.streams[0].retransmissions();
    assert_eq!((recoveries, timeouts), (0, 1));
}
