//! The tokio stream.

#![cfg(feature = "tokio")]

use sweetspot_socket::{Options, SizedStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_sized_stream_reads_and_writes_like_its_inner_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, _) = listener.accept().await.unwrap();
    let mut near = SizedStream::new(near, Options::default()).unwrap();
    let mut far = SizedStream::new(far, Options::default()).unwrap();
    let sent: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    let (data, sending) = (sent.clone(), async move {
        near.write_all(&sent).await.unwrap();
        near.shutdown().await.unwrap();
        near
    });
    let reading = async {
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        received
    };
    let (near, received) = tokio::join!(sending, reading);
    assert!(received == data);
    assert!(far.report().is_ok());
    // The stream stays open after it is no longer sized.
    assert!(near.into_inner().peer_addr().is_ok());
}
