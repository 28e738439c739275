//! Downloads with `ureq`; Sweetspot sizes the window of every connection.
//!
//! cargo run --example download -- URL FILE [SIZING]        (sizing: sobas:live unless given; kernel: only watched)

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use sweetspot_socket::{Options, Report, SizedSocket, SocketSizing};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// The most recent state of the connection.
type LastReport = Arc<Mutex<Option<Report>>>;

/// Opens connections and attaches them to the library.
#[derive(Debug)]
struct SizedConnector {
    sizing: SocketSizing,
    report: LastReport,
}

impl Connector for SizedConnector {
    type Out = SizedTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<SizedTransport>, ureq::Error> {
        let stream = TcpStream::connect(&details.addrs[..])?;
        let options = Options { sizing: self.sizing, ..Options::default() };
        let sized = SizedSocket::attach(&stream, options).map_err(io::Error::other)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let report = Arc::clone(&self.report);
        Ok(Some(SizedTransport { sized, stream, buffers, report }))
    }
}

/// A connection of ureq. Fields are dropped in this order, so its limits are lifted before it closes.
#[derive(Debug)]
struct SizedTransport {
    sized: SizedSocket,
    stream: TcpStream,
    buffers: LazyBuffers,
    report: LastReport,
}

impl Transport for SizedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        if let (Ok(now), Ok(mut report)) = (self.sized.report(), self.report.lock()) {
            *report = Some(now);
        }
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.take_error().is_ok_and(|error| error.is_none())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, path, sizing @ ..] = &arguments[..] else { return Err("expected URL FILE".into()) };
    let sizing = sizing.first().map_or("sobas:live", String::as_str).parse()?;

    let report: LastReport = Arc::default();
    let connector = SizedConnector { sizing, report: Arc::clone(&report) };
    let config = ureq::config::Config::builder().proxy(None).build();
    let agent = ureq::Agent::with_parts(config, connector, DefaultResolver::default());
    let mut response = agent.get(url).call()?;
    io::copy(&mut response.body_mut().as_reader(), &mut File::create(path)?)?;
    if let Some(report) = report.lock().ok().and_then(|report| *report) {
        println!("{}, limited by {}", report.phase, report.limiting_factor);
    }
    Ok(())
}
