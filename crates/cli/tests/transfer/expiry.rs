//! A ticket that expires: the server ends, but not before the transfers that run.

use sweetspot_hostile_peer::{Dial, Heard, Raw};
use sweetspot_protocol::{Message, Role};

use crate::running::{Serve, file, send};

/// A server with a ticket that expires soon, and a connection that it admitted.
fn expiring_in_use(arguments: &[&str]) -> (Serve, Raw) {
    // A busy host takes its time to connect.
    for seconds in (0..7).map(|n| 1 << n) {
        let lifetime = format!("{seconds}s");
        let serve = Serve::start(&[&["--lifetime", &lifetime], arguments].concat());
        let Ok(mut raw) = Raw::dial(&serve.ticket(), &Dial::default()) else { continue };
        let hello = raw.hello();
        raw.say(&hello);
        if let Heard::Message(Message::Welcome { .. }) = raw.next() {
            return (serve, raw);
        }
    }
    panic!("no server admitted anybody");
}

#[test]
fn an_idle_server_ends_with_its_ticket() {
    for (arguments, what, code) in [
        (&[][..], "ticket", 0),
        // The one transfer did not come.
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
fn a_transfer_outlives_the_ticket_which_admits_nobody_else() {
    let (mut serve, raw) = expiring_in_use(&[]);
    serve.read_until("the ticket has expired: running transfers go on");
    let (file, _) = file(10);
    send(file.path(), &serve.ticket, &[]).failed_saying(&["ticket has expired", "new one"]);
    let mut further = raw.join(&serve.ticket(), &Dial::default(), Role::Sender).unwrap();
    let heard = further.next();
    assert!(matches!(heard, Heard::Message(Message::Welcome { .. })), "{heard:?}");
    drop((raw, further));
    let ended = serve.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("the ticket has expired; start again"), "{ended:?}");
}

/// The server would turn it away: it does not wait for it, as it would for 15 minutes before.
#[test]
fn a_transfer_that_breaks_after_the_expiry_is_not_waited_for() {
    let (mut serve, raw) = expiring_in_use(&["--once"]);
    serve.read_until("the ticket has expired: running transfers go on");
    drop(raw);
    let ended = serve.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("disconnected"), "{ended:?}");
}
