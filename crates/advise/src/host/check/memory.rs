//! `tcp_mem`: the memory of all connections together, in pages.

use sweetspot_units::Bytes;

use super::PathTarget;
use crate::host::{Finding, PathEnd, Snapshot};

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
        // Linux tcp_init_mem(): a sixteenth of memory, 3/4 and 3/2 of it beside.
        let limit = pages / 16;
        let wanted = format!("{} {limit} {}", limit / 4 * 3, limit / 4 * 6);
        found.push(Finding::sysctl(end, "net.ipv4.tcp_mem", now, wanted, why));
        return;
    }
    let (Some(target), Some(kernel)) = (target, host.kernel) else { return };
    let each = kernel.era().memory_for(target.window, None);
    let all = Bytes::new(each.get().saturating_mul(target.connections));
    let pressure = Bytes::new(page.get().saturating_mul(mem[1]));
    if all <= pressure {
        return;
    }
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
    if all > Bytes::new(memory.get() / 2) {
        let why = format!("{why}. That is more than half of the host's {memory}: use fewer");
        let what = "net.ipv4.tcp_mem".to_owned();
        found.push(Finding {
            what,
            end,
            why,
            now,
            wanted: "fewer connections, or more memory".to_owned(),
            gain: Some(target.rate().saturating_sub(share)),
            cost: None,
            command: "# no setting helps: the windows together exceed the memory".to_owned(),
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
