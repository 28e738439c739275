use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::{AttachError, SocketError};
use crate::handle::SizedSocket;
use crate::options::Options;
use crate::report::Report;

/// A tokio stream that is sized until it is dropped.
#[derive(Debug)]
pub struct SizedStream<S> {
    // Dropped first, while the socket is still open.
    sized: SizedSocket,
    stream: S,
}

impl<S: AsFd> SizedStream<S> {
    /// Starts sizing the socket of `stream`.
    pub fn new(stream: S, options: Options) -> Result<SizedStream<S>, AttachError> {
        Ok(SizedStream { sized: SizedSocket::attach(&stream, options)?, stream })
    }
}

impl<S> SizedStream<S> {
    /// The socket's state when it was last sampled.
    pub fn report(&self) -> Result<Report, SocketError> {
        self.sized.report()
    }

    /// The wrapped stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Lifts every limit and returns the stream.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SizedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SizedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
