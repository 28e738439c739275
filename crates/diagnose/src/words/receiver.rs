//! The receiver's limits as sentences.

use sweetspot_units::Bytes;

use crate::explained::allowed;
use crate::quantities::{in_bytes, in_rate, ms, times};
use crate::{Class, Evidence, Reader, WindowClamp};

pub fn receiver_window(percent: f64, e: &Evidence) -> String {
    let mut words = format!("{percent} % of the time limited by the receiver's window");
    if let Some(((window, rtt), rate)) =
        e.window.zip(e.window_round.or(e.rtt)).zip(allowed(Class::ReceiverWindow, e))
    {
        let mean = if e.largest_window == Some(window) { "" } else { " on average" };
        let is_usual = e.rtt.is_none_or(|usual| ms(usual) == ms(rtt));
        // In a capture, rounds may begin behind data in flight, so their mean duration can differ
        // from the median RTT.
        let at = if is_usual || e.is_sampled { "at" } else { "per round of" };
        let window = in_bytes(window);
        words += &format!(": {window}{mean} {at} {} allow {}", ms(rtt), in_rate(rate));
    }
    words += ".";
    if e.fills_window && e.others_fill_path {
        words += " Other connections keep a queue, which lengthens the round trip.";
    }
    if let Some(clamp) = WindowClamp::binding(e) {
        words += &clamp.words();
    } else if e.has_small_buffer() {
        words += " The window scale was 0: the program set a small SO_RCVBUF before connect or \
                  listen, or a device on the path removed the option.";
    } else if e.reader == Reader::Late {
        words += " Its program often reads late, and unread data keeps the window small.";
    } else if e.reader == Reader::Unknown {
        words += " Either its buffer is small, or its program reads slowly.";
    }
    words
}

pub fn receiver_application(percent: f64, e: &Evidence) -> String {
    let by_reader = format!("{percent} % of the time limited by the receiving application: ");
    if let Some(unread) = e.unread.filter(|_| e.bytes == Bytes::ZERO) {
        let closed = if e.is_closed { ", and its window is closed" } else { "" };
        let hangs =
            e.hangs_for.map_or(String::new(), |time| format!("it read nothing for {time}: "));
        return format!("{by_reader}{hangs}{} wait unread{closed}.", in_bytes(unread));
    }
    if let Some(time) = e.hangs_for.filter(|_| !e.is_sampled) {
        return format!(
            "{by_reader}it read nothing. When the capture ended, its window had been closed for {time}."
        );
    }
    if let Some(time) = e.hangs_for {
        return format!(
            "{by_reader}it reads nothing. Its window has been closed for {time} and still is."
        );
    }
    if e.is_closed && e.bytes == Bytes::ZERO {
        return format!("{by_reader}its window is closed, because data lies unread.");
    }
    // A window of zero is mentioned only if the receiver advertised one.
    let shrank = e.min_window.filter(|min| *min > Bytes::ZERO || e.zero_windows > 0);
    let shrank = match (shrank, e.largest_window) {
        (Some(min), Some(largest)) if min < largest => {
            format!(", so its window shrank to {} (largest: {})", in_bytes(min), in_bytes(largest))
        }
        _ => String::new(),
    };
    let closes = if shrank.is_empty() { ", so its window closed" } else { " and closed" };
    let closed = times(closes, e.zero_windows);
    format!("{by_reader}it reads more slowly than data arrives{shrank}{closed}.")
}
