//! How a client connects to a server.

use std::thread;

use sweetspot_hostile_peer::Listener;
use sweetspot_protocol::Message;
use sweetspot_transfer::{NullObserver, ReceiveOptions, Target, first_reachable, receive};
use sweetspot_units::Duration;

#[test]
fn a_transfer_uses_the_connection_that_its_listener_answered() {
    let listener = Listener::start();
    let directory = tempfile::tempdir().unwrap();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut raw, _) = listener.welcome();
            raw.send_message(&Message::Failed { reason: "over the first connection".into() });
        });
        let contact = first_reachable(&[listener.ticket()], Duration::from_secs(5)).unwrap();
        let options = ReceiveOptions {
            retry_for: Duration::ZERO,
            ..ReceiveOptions::at(Target::Into(directory.path().to_owned()))
        };
        receive(&contact, &options, &mut NullObserver).unwrap_err()
    });
    assert!(error.to_string().contains("over the first connection"), "{error}");
}
