use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Tested, stdout, sweetspot};

/// One program at a time: what one test measures is not another's.
static ALONE: Mutex<()> = Mutex::new(());

/// Says that it is over, also when a test fails: the writer would go on for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `look` while a program of ours writes a little, pauses, and writes again.
fn while_somebody_writes_slowly(look: impl FnOnce(&TcpStream) -> Tested) -> Tested {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    let ours = near.try_clone()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| while matches!(far.read(&mut [0; 65_536]), Ok(n) if n > 0) {});
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) && near.write_all(&[0; 1000]).is_ok() {
                thread::park_timeout(Duration::from_millis(20));
            }
            let _ = near.shutdown(std::net::Shutdown::Write);
        });
        let _over = Over(&over);
        look(&ours)
    })
}

#[test]
fn a_slow_writer_is_the_application_by_process_and_by_address() -> Tested {
    while_somebody_writes_slowly(|socket| {
        let end = socket.local_addr()?.to_string();
        for target in [end.clone(), std::process::id().to_string()] {
            let output = sweetspot(&["diagnose", &target, "--for", "1s", "--json"])?;
            let json: Value = serde_json::from_slice(&output.stdout)?;
            let flows = json["flows"].as_array().ok_or("no flows")?;
            let flow = flows.iter().find(|f| f["source"] == end.as_str()).ok_or("not ours")?;
            assert_eq!(flow["verdict"]["class"], "application", "{flow}");
            assert!(flow["goodput_bps"].as_f64() > Some(1e5), "{flow}");
        }
        Ok(())
    })
}

#[test]
fn top_lists_a_connection_with_who_has_it_and_what_limits_it() -> Tested {
    while_somebody_writes_slowly(|socket| {
        let end = socket.local_addr()?.to_string();
        let arguments = ["top", "--once", "--interval", "500ms", "--filter", &end];
        let output = sweetspot(&[&arguments[..], &["--json"]].concat())?;
        let json: Value = serde_json::from_slice(&output.stdout)?;
        let all = json["connections"].as_array().ok_or("no connections")?;
        let ours = all.iter().find(|c| c["local"] == end.as_str()).ok_or("not ours")?;
        assert_eq!(ours["pid"].as_u64(), Some(std::process::id().into()));
        assert_eq!(ours["limited_by"], "application", "{ours}");
        let text = stdout(&sweetspot(&arguments)?);
        assert!(text.contains("limited by") && text.contains("application"), "{text}");
        Ok(())
    })
}
