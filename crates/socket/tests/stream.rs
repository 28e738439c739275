//! The tokio stream.

#![cfg(feature = "tokio")]

use sweetspot_socket::{Options, SizedStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_sized_stream_reads_and_writes_like_its_inner_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    let mut client = SizedStream::new(client, Options::default()).unwrap();
    let mut server = SizedStream::new(server, Options::default()).unwrap();
    let sent: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    let (data, sending) = (sent.clone(), async move {
        client.write_all(&sent).await.unwrap();
        client.shutdown().await.unwrap();
        client
    });
    let reading = async {
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        received
    };
    let (client, received) = tokio::join!(sending, reading);
    assert!(received == data);
    assert!(server.report().is_ok());
    // The stream stays open after it is no longer sized.
    assert!(client.into_inner().peer_addr().is_ok());
}
