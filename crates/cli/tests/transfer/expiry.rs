//! Expiry of a ticket: the server ends, but only after its running transfers.

use sweetspot_hostile_peer::{Dial, Raw, Received};
use sweetspot_protocol::{Message, Role};

use crate::running::{Serve, file, send};

/// A server with a ticket that expires soon, and a connection admitted before that.
fn expiring_in_use(arguments: &[&str]) -> (Serve, Raw) {
    // A busy host may take a while to connect.
    for seconds in (0..7).map(|n| 1 << n) {
        let lifetime = format!("{seconds}s");
        let serve = Serve::start(&[&["--lifetime", &lifetime], arguments].concat());
        let Ok(mut raw) = Raw::dial(&serve.ticket(), &Dial::default()) else { continue };
        let hello = raw.hello();
        raw.send_message(&hello);
        if let Received::Message(Message::Welcome { .. }) = raw.next() {
            return (serve, raw);
        }
    }
    panic!("no server admitted anybody");
}

#[test]
fn an_idle_server_exits_when_its_ticket_expires() {
    for (arguments, what, code) in [
        (&[][..], "ticket", 0),
        // The one transfer never came.
        (&["--once"], "ticket", 1),
        (&["--spoken-code"], "code", 1),
    ] {
        let ended = Serve::start(&[&["--lifetime", "1s"], arguments].concat()).wait();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let words = format!("the {what} has expired; start again for a new one");
        assert!(ended.stderr.contains(&words), "{ended:?}");
    }
}

#[test]
fn a_one_transfer_server_reports_its_expiry_as_json() {
    let ended = Serve::start(&["--lifetime", "1s", "--once", "--json"]).wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let object: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(object["error"].as_str().unwrap().contains("the ticket has expired"), "{ended:?}");
}

#[test]
fn an_expired_ticket_keeps_its_running_transfer_and_admits_no_other() {
    let (mut serve, raw) = expiring_in_use(&["--retry-for", "1s"]);
    serve.read_until("the ticket has expired: running transfers continue");
    let (file, _) = file(10);
    send(file.path(), &serve.ticket, &[]).failed_saying(&["ticket has expired", "new one"]);
    let mut further = raw.join(&serve.ticket(), &Dial::default(), Role::Sender).unwrap();
    let received = further.next();
    assert!(matches!(received, Received::Message(Message::Welcome { .. })), "{received:?}");
    drop((raw, further));
    let ended = serve.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("the ticket has expired; start again"), "{ended:?}");
}

/// The transfer's number is random, and known only to its two ends.
#[test]
fn after_expiry_only_the_broken_transfer_may_reconnect() {
    for arguments in [&["--once"][..], &[]] {
        let (mut serve, raw) = expiring_in_use(arguments);
        serve.read_until("the ticket has expired: running transfers continue");
        let transfer = raw.transfer.clone();
        drop(raw);
        let mut again = Raw::dial(&serve.ticket(), &Dial::default()).unwrap();
        again.transfer = transfer;
        let hello = again.hello();
        again.send_message(&hello);
        let received = again.next();
        assert!(matches!(received, Received::Message(Message::Welcome { .. })), "{received:?}");
        // A measurement is not a transfer, whatever its number.
        let mut other = Raw::dial(&serve.ticket(), &Dial::default()).unwrap();
        for (transfer, measures) in
            [(other.transfer.clone(), false), (again.transfer.clone(), true)]
        {
            other.transfer = transfer;
            let hello = other.hello_with(Role::Sender, false, measures);
            other.send_message(&hello);
            let received = other.next();
            assert!(matches!(received, Received::Message(Message::Refuse { .. })), "{received:?}");
            other = Raw::dial(&serve.ticket(), &Dial::default()).unwrap();
        }
    }
}

#[test]
fn retry_for_bounds_the_wait_for_a_broken_transfer_after_expiry() {
    let (mut serve, raw) = expiring_in_use(&["--once", "--retry-for", "1s"]);
    serve.read_until("the ticket has expired: running transfers continue");
    drop(raw);
    let ended = serve.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("disconnected"), "{ended:?}");
}
