//! Advice about the settings of this host: the verb `advise host` without a command line.

use pyo3::prelude::*;
use sweetspot_advise::host::{Device, HostQuestion, Snapshot, advise};

use crate::studies::{bad, optional, value};

/// A path to another host, and the known settings of that host, as strings with units.
#[derive(FromPyObject)]
pub struct HostPath {
    rate: Option<String>,
    rtt: Option<String>,
    peer: Option<String>,
    path_mtu: Option<String>,
    peer_mtu: Option<String>,
    rcvbuf: Option<String>,
    connections: u64,
    peer_sysctl: Option<String>,
    peer_kernel: Option<String>,
}

/// The report of ``sweetspot advise host`` on this host: in words, as JSON, and as a sysctl.d file.
#[pyfunction]
pub fn advise_host(path: HostPath) -> PyResult<(String, String, String)> {
    let asked_receive_buffer = optional("rcvbuf", path.rcvbuf.as_ref())?;
    let address = path.peer.as_ref().map(|text| value("peer", text)).transpose()?;
    let here = Snapshot { asked_receive_buffer, ..sweetspot_watch::settings(address) };
    let kernel = optional("peer_kernel", path.peer_kernel.as_ref())?;
    let peer = path.peer_sysctl.map(|text| Snapshot::of_peer(&text, kernel, &here));
    let mut peer = peer.transpose().map_err(bad)?;
    if let Some(mtu) = optional("peer_mtu", path.peer_mtu.as_ref())? {
        let device = Device { name: "its device".to_owned(), mtu: Some(mtu), ..Device::default() };
        peer.get_or_insert_default().device = Some(device);
    }
    let path_mtu = match address {
        None => optional("path_mtu", path.path_mtu.as_ref())?,
        Some(address) => {
            let mtu = sweetspot_linux::host::path_mtu(address);
            Some(mtu.map_err(|error| bad(format!("peer: {address}: {error}")))?)
        }
    };
    let (rate, rtt) = (optional("rate", path.rate.as_ref())?, optional("rtt", path.rtt.as_ref())?);
    let question =
        HostQuestion { here, peer, path: rate.zip(rtt), path_mtu, connections: path.connections };
    let advice = advise(&question).map_err(bad)?;
    Ok((advice.text(false, 80), advice.json().to_string(), advice.sysctl_file()))
}
