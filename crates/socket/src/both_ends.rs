use std::fmt;
use std::sync::{Arc, Mutex};

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd, RawFd};

#[cfg(target_os = "linux")]
use sweetspot_linux::tcp::options;
#[cfg(target_os = "linux")]
use sweetspot_linux::udp::Udp;
#[cfg(target_os = "linux")]
use sweetspot_protocol::INVITATION_BYTES;
use sweetspot_protocol::{Invitation, InvitationError};

#[cfg(target_os = "linux")]
use crate::descriptor::connection_at;
#[cfg(target_os = "linux")]
use crate::error::AttachError;
#[cfg(target_os = "linux")]
use crate::link::SocketLink;

/// This end's part in sizing a connection from both ends, for [`Options::both_ends`](crate::Options::both_ends).
///
/// The host is the end that can be reached by UDP. It creates an invitation, a string of
/// [`INVITATION_BYTES`](crate::INVITATION_BYTES) bytes, and sends it in the program's own protocol. The guest joins with this
/// string. Either end may send data, or both. If datagrams do not get through, or the peer does not join, the socket is sized
/// from one end.
///
/// The string contains a key. Send it where others cannot read it: within TLS, if the connection uses TLS.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use sweetspot_socket::{BothEnds, INVITATION_BYTES, Options, SizedSocket};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(listener.local_addr()?)?;
/// let (mut served, _) = listener.accept()?;
///
/// // At the server:
/// let (both_ends, invitation) = BothEnds::invite(&served)?;
/// let options = Options { both_ends: Some(both_ends), ..Options::default() };
/// let sized = SizedSocket::attach(&served, options)?;
/// served.write_all(&invitation)?;
///
/// // At the client:
/// let mut invitation = [0; INVITATION_BYTES];
/// client.read_exact(&mut invitation)?;
/// let options = Options { both_ends: Some(BothEnds::join(&invitation)?), ..Options::default() };
/// let sized_too = SizedSocket::attach(&client, options)?;
/// # drop((sized, sized_too));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones share this part, which can serve only one socket.
#[derive(Clone)]
pub struct BothEnds(Arc<Mutex<Option<Part>>>);

/// A part that has not been used for a socket.
enum Part {
    /// Its port is open.
    #[cfg(target_os = "linux")]
    Host(Invitation, Udp),
    Guest(Invitation),
}

impl BothEnds {
    /// Invites the peer of a connected TCP socket. Opens a UDP port at the socket's own address; it accepts datagrams only
    /// from the peer's address.
    #[cfg(target_os = "linux")]
    pub fn invite(socket: &impl AsFd) -> Result<(BothEnds, [u8; INVITATION_BYTES]), AttachError> {
        BothEnds::invite_descriptor(socket.as_fd().as_raw_fd())
    }

    /// As [`BothEnds::invite`], for bindings of other languages, which have a descriptor number.
    #[cfg(target_os = "linux")]
    pub fn invite_descriptor(fd: RawFd) -> Result<(BothEnds, [u8; INVITATION_BYTES]), AttachError> {
        let system = |call| move |source| AttachError::System { call, source };
        let ends = connection_at(fd)?.with(|fd| options::ends(fd));
        let ends = ends.map_err(|_| AttachError::Closed)?.map_err(|_| AttachError::NotConnected)?;
        let (local, _) = ends.ok_or(AttachError::NotConnected)?;
        let udp = Udp::bind_at(local.ip()).map_err(system("bind"))?;
        let mut key = [0; 16];
        let drawn = getrandom::fill(&mut key);
        drawn.map_err(|error| system("getrandom")(std::io::Error::other(error.to_string())))?;
        let port = udp.local_address().map_err(system("getsockname"))?.port();
        let invitation = Invitation { port, key };
        let bytes = invitation.to_bytes();
        Ok((BothEnds::of(Part::Host(invitation, udp)), bytes))
    }

    /// Joins the end that created this invitation. Nothing is sent before the socket is attached.
    pub fn join(invitation: &[u8]) -> Result<BothEnds, InvitationError> {
        Ok(BothEnds::of(Part::Guest(Invitation::from_bytes(invitation)?)))
    }

    fn of(part: Part) -> BothEnds {
        BothEnds(Arc::new(Mutex::new(Some(part))))
    }

    /// Takes the link for the socket being attached. Fails if another socket has taken it before.
    #[cfg(target_os = "linux")]
    pub(crate) fn take(&self) -> Result<SocketLink, AttachError> {
        let mut part = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match part.take().ok_or(AttachError::UsedInvitation)? {
            Part::Host(invitation, udp) => Ok(SocketLink::host(invitation, udp)),
            Part::Guest(invitation) => Ok(SocketLink::guest(invitation)),
        }
    }
}

impl fmt::Debug for BothEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BothEnds").finish_non_exhaustive()
    }
}
