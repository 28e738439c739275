use sweetspot_diagnose::live::Sample;
use sweetspot_linux::diag::DiagConnection;
use sweetspot_linux::tcp::options::SendMemory;
use sweetspot_socket::readings::{ExtraInfo, diagnosis};
use sweetspot_units::Time;

/// A sample of a connection read by sock_diag at `at`; `None` if it has no TCP_INFO.
pub fn sample(connection: &DiagConnection, at: Time) -> Option<Sample> {
    let memory = connection.memory.as_ref();
    let extra_info = ExtraInfo {
        model_based: connection.congestion.as_deref() == Some("bbr"),
        memory: memory.map(|m| SendMemory {
            queued: m.queued,
            in_device: m.in_device,
            send_buffer: m.send_buffer,
        }),
        unread: connection.unread,
    };
    Some(diagnosis(connection.info.as_ref()?, &extra_info, at))
}
