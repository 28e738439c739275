//! `tcp_mem`: the memory of all connections together, in pages.

use sweetspot_units::{Bytes, Rate};

use crate::host::caps::{self, FlowRole};
use crate::host::target::PathTarget;
use crate::host::{Finding, NO_SETTING, PathEnd, Snapshot};

/// The rate that each connection lacks whatever its buffers, if no setting adds memory.
pub(super) fn lost(host: &Snapshot, end: PathEnd, target: &PathTarget) -> Option<Rate> {
    // The limit is the same in both directions.
    let cap = caps::shared_memory(host, end, FlowRole::Receiver, target)?;
    is_exceeded(host, target).then(|| target.gain_over(cap.window).unwrap_or_default())
}

/// Whether no setting adds memory: the windows together take more than half of the host's.
fn is_exceeded(host: &Snapshot, target: &PathTarget) -> bool {
    let all = caps::lacking_memory(host, target).map(|[all, _]| all);
    all.zip(host.memory).is_some_and(|(all, memory)| all > Bytes::new(memory.get() / 2))
}

pub(super) fn check(
    host: &Snapshot,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let (Some(mem), Some(memory), Some(page)) =
        (host.sysctls.triple("net.ipv4.tcp_mem"), host.memory, host.page)
    else {
        return;
    };
    let now = format!("{} {} {}", mem[0], mem[1], mem[2]);
    let max = page.get().saturating_mul(mem[2]);
    let pages = memory.get() / page.get().max(1);
    if max > memory.get() {
        let why = format!(
            "it counts pages of {page}, so it allows {} on a host of {memory}. Was it set in \
             bytes? The kernel's own default is advised",
            Bytes::new(max)
        );
        // Linux tcp_init_mem(): the middle value is a sixteenth of the memory, the others 3/4 and 3/2 of that.
        let limit = pages / 16;
        let wanted = format!("{} {limit} {}", limit / 4 * 3, limit / 4 * 6);
        found.push(Finding::sysctl(end, "net.ipv4.tcp_mem", now, wanted, why));
        return;
    }
    let Some(target) = target else { return };
    let Some([all, pressure]) = caps::lacking_memory(host, target) else { return };
    let share = target.rate().scaled(pressure.as_f64() / all.as_f64());
    let wanted = all.get().div_ceil(page.get());
    let (who, need) = match target.connections {
        1 => ("1 connection".to_owned(), "needs"),
        n => (format!("{n} connections"), "need"),
    };
    let why = format!(
        "{who} with a window of {} {need} up to {all}; above {pressure} the kernel shrinks buffers",
        target.window
    );
    if is_exceeded(host, target) {
        let why = format!("{why}. That is more than half of the host's {memory}: use fewer");
        let what = "net.ipv4.tcp_mem".to_owned();
        found.push(Finding {
            what,
            end,
            why,
            now,
            wanted: "fewer connections, or more memory".to_owned(),
            gain: None,
            cost: None,
            command: NO_SETTING.to_owned(),
        });
        return;
    }
    let wanted = format!("{} {wanted} {}", wanted / 4 * 3, wanted / 2 * 3);
    found.push(
        Finding::sysctl(end, "net.ipv4.tcp_mem", now, wanted, why)
            .gains(Some(target.rate().saturating_sub(share)))
            .costs(Some(all.saturating_sub(pressure))),
    );
}
