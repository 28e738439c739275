//! The agreement between a receiver and a sender, before any content moves.

use sweetspot_control::StreamCount;
use sweetspot_linux::tcp::Info;
use sweetspot_linux::{clock, sysctl};
use sweetspot_protocol::{Accept, Message, Offer, PeerText, ReceiverOrder, SenderItem};
use sweetspot_sizing::{Controller, ControllerConfig, KnownPath, Probing, Sizing};
use sweetspot_units::Bytes;

use crate::ends::receive_config::ReceiveConfig;
use crate::files::incoming::{Destination, Policy};
use crate::files::target::Target;
use crate::limits::OFFER_TIMEOUT;
use crate::options::ReceiveOptions;
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::{Result, TransferError};

/// IPv4 and TCP headers with the timestamp option (RFC 7323).
const TCP_HEADERS: Bytes = Bytes::new(52);
pub(crate) fn wait_for_offer(frames: &mut FrameReader, order: &mut ReceiverOrder) -> Result<Offer> {
    frames.wait_for(clock::now() + OFFER_TIMEOUT, |part| match order.handle(part)? {
        SenderItem::Offer(offer) => Ok(Some(offer)),
        SenderItem::Failed(reason) => Err(TransferError::PeerFailed(reason)),
        SenderItem::Refused(reason) => Err(TransferError::Refused(reason)),
        _ => Ok(None),
    })
}

pub(crate) fn stream_count(options: &ReceiveOptions, offer: &Offer) -> StreamCount {
    // Standard output needs the bytes in order, so it uses one connection.
    let chosen = match options.target {
        Target::Output => Some(1),
        _ => options.streams.or(offer.streams),
    };
    StreamCount::new(chosen).greedy(offer.greedy)
}

pub(crate) struct Accepted {
    pub destination: Destination,
    pub policy: Policy,
    pub sizing: Sizing,
    pub controller: Box<dyn Controller + Send>,
    pub probes: bool,
}

impl Accepted {
    pub fn make(
        config: &ReceiveConfig,
        offer: &Offer,
        channel: &Channel,
        can_probe: bool,
    ) -> Result<Accepted> {
        let view = &config.bounds.view;
        let destination = Destination::open(&config.options.target, offer, view)?;
        let asked = offer.sizing.as_ref().map(PeerText::parse::<Sizing>).transpose()?;
        let sizing = config.options.sizing.or(asked).unwrap_or(Sizing::Sobas);
        let controller_config = ControllerConfig {
            size: offer.size.map(Bytes::new),
            ..controller_config(channel, config.options.path.or(offer.path.map(KnownPath::from)))?
        };
        let may_probe = can_probe && config.options.probes && offer.probes;
        let available = if may_probe { sizing } else { sizing.without_probes() };
        // Fails before any content moves if this sizing is unavailable.
        let controller = available.controller(&controller_config)?;
        let probes = may_probe && controller.needs().probes != Probing::Never;
        let policy = Policy {
            replace: config.options.overwrite,
            leave: config.options.leave_existing,
            checksum: offer.checksum,
            dry_run: offer.dry_run,
            attributes: config.options.attributes,
            exact_attributes: config.options.attributes && offer.attributes,
            owners: config.options.owners,
            dotfiles: config.options.dotfiles,
            other_kinds: config.options.overwrite && config.options.other_kinds,
            outward_links: config.options.outward_links,
        };
        Ok(Accepted { destination, policy, sizing, controller, probes })
    }

    pub fn message(&self, options: &ReceiveOptions) -> Message {
        Message::Accept(Accept {
            sizing: self.sizing.to_string().into(),
            congestion: options.congestion.as_deref().map(Into::into),
            probes: self.probes,
        })
    }
}

/// The controller's configuration for this host and this connection.
fn controller_config(channel: &Channel, path: Option<KnownPath>) -> Result<ControllerConfig> {
    let failed = || TransferError::system("reading the socket's limits");
    let info = Info::read(channel.socket()).map_err(failed())?;
    let limits = sysctl::tcp_rmem().map_err(failed())?;
    // The peer's segments are as large as ours, unless the MSS differs by direction.
    let mss = info.snd_mss;
    // The kernel assumes that half of a buffer is window (TCP_DEFAULT_SCALING_RATIO,
    // include/net/tcp.h).
    let max_window = Bytes::new(limits.max.get() / 2);
    Ok(ControllerConfig { mss, packet: mss + TCP_HEADERS, max_window, size: None, path })
}
