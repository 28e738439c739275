//! The settings of the answer, one a line.

use core::fmt::Display;
use core::str::FromStr;

use sweetspot_units::{Rate, rounded};

use super::settings::FIRST_RECEIVE_BUFFER;
use super::{COMMON_MTU, WindowAdvice, WindowQuestion, to_hold};

impl WindowAdvice {
    /// The settings, one a line.
    pub(super) fn settings_in_lines(&self) -> Vec<String> {
        let s = &self.settings;
        let own = s.so_rcvbuf.get();
        let sender = format!("net.ipv4.tcp_wmem[2] >= {} at the sender", s.tcp_wmem_max.get());
        if !s.autotuning_reaches() {
            return vec![
                format!("SO_RCVBUF = {own} at the receiver (net.core.rmem_max >= {own})"),
                format!("{sender} (all its connections)"),
                format!(
                    "A connection starts with a receive buffer of {FIRST_RECEIVE_BUFFER}, so only SO_RCVBUF holds it to this window."
                ),
            ];
        }
        let mut lines = vec![
            format!("net.ipv4.tcp_rmem[2] >= {} at the receiver", s.tcp_rmem_max.get()),
            sender,
            "Both limit every connection of their host. For one program instead:".to_owned(),
            format!("SO_RCVBUF = {own} (net.core.rmem_max >= {own})"),
        ];
        lines.extend(self.commands());
        lines
    }

    /// The call that prints commands, below a line with their window. That is the whole path's, as the call takes neither buffer, cross
    /// traffic nor loss. Empty if that window does not suit, because the recommended one is smaller.
    fn commands(&self) -> Vec<String> {
        let q = &self.question;
        // Each connection's share was rounded to whole bits per second.
        let n = self.connections;
        let rate = match n {
            1 => q.rate,
            n => Rate::from_f64(rounded(q.rate.as_f64() * n as f64, 9)),
        };
        let bare = WindowQuestion { rate, buffer: None, cross: None, loss: None, ..*q };
        let host = to_hold(&bare).ok().filter(|host| host.connections == n);
        let suits = self.recommended.window >= Some(self.sweet_spot.low) || self.allows_larger();
        let Some(host) = host.filter(|host| suits && host.window >= self.sweet_spot.low) else {
            return Vec::new();
        };
        let rate = as_option(&rate, format!("{}Mbit/s", rate.as_f64() / 1e6));
        let rtt = as_option(&q.rtt, format!("{}ms", q.rtt.as_nanos() as f64 / 1e6));
        let mtu = match q.mtu {
            COMMON_MTU => String::new(),
            mtu => format!(" --path-mtu {}B", mtu.get()),
        };
        let call = format!("sweetspot advise host --rate {rate} --rtt {rtt}{mtu}");
        let whose = if n > 1 { "each connection" } else { "the whole path" };
        vec![
            format!("commands for {}, {whose}, at an MTU of {} B:", host.window, q.mtu.get()),
            call,
        ]
    }
}

/// `value` as the value of an option: as printed, if that is all of it, or else `exact`.
fn as_option<T: Display + FromStr + PartialEq>(value: &T, exact: String) -> String {
    let printed = value.to_string().replace(' ', "");
    if printed.parse::<T>().is_ok_and(|read| read == *value) { printed } else { exact }
}
