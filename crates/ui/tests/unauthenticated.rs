//! Clients without a token: nothing hangs, and nothing is disclosed.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use sweetspot_ui::{PageServer, WatchedFile};

type TestResult = Result<(), Box<dyn std::error::Error>>;

struct Page {
    host: String,
    token: String,
}

fn page(watched: Vec<WatchedFile>) -> Page {
    let server = PageServer::start(0, watched).expect("the loopback address can be listened at");
    let mut parts = server.address().trim_start_matches("http://").split('/').map(str::to_owned);
    Page { host: parts.next().expect("a host"), token: parts.next().expect("a token") }
}

impl Page {
    fn connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect(&self.host)
    }

    /// The response to these bytes, as text.
    fn answer(&self, request: &[u8]) -> io::Result<String> {
        let mut stream = self.connect()?;
        stream.write_all(request)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn get(&self, path: &str) -> io::Result<String> {
        self.answer(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host).as_bytes())
    }

    fn own(&self, name: &str) -> io::Result<String> {
        self.get(&format!("/{}/{name}", self.token))
    }
}

fn code(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("nothing")
}

#[test]
fn only_the_token_grants_access() -> TestResult {
    let page = page(Vec::new());
    let whole = page.own("")?;
    assert_eq!(code(&whole), "200");
    assert!(whole.contains("Content-Security-Policy: default-src 'none'"));
    for path in ["/", "/main.js", "/00000000000000000000000000000000/", "/../", "//"] {
        let refused = page.get(path)?;
        assert_eq!(code(&refused), "403", "{path}");
        assert!(refused.contains("the whole address"));
    }
    for name in ["nothing", "../auth.rs", "watch?file=0&from=0", "watch?file=-1", "%00"] {
        assert_eq!(code(&page.own(name)?), "404", "{name}");
    }
    Ok(())
}

#[test]
fn dns_rebinding_is_rejected_even_with_the_token() -> TestResult {
    let page = page(Vec::new());
    let token = &page.token;
    let rebound = format!("GET /{token}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(code(&page.answer(rebound.as_bytes())?), "421");
    Ok(())
}

#[test]
fn an_invalid_request_gets_an_error_and_the_next_one_is_answered() -> TestResult {
    let page = page(Vec::new());
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(20_000));
    let large =
        format!("POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 99999999\r\n\r\n", page.host);
    let cases: [(&[u8], &str); 5] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\n\r\n", "400"),
        (long.as_bytes(), "413"),
        (large.as_bytes(), "413"),
        (b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", "421"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(code(&page.answer(bytes)?), expected, "{}", String::from_utf8_lossy(bytes));
    }
    let delete = format!("DELETE /{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", page.token, page.host);
    assert_eq!(code(&page.answer(delete.as_bytes())?), "405");
    assert_eq!(code(&page.own("")?), "200");
    Ok(())
}

#[test]
fn silent_clients_do_not_block_others() -> TestResult {
    let page = page(Vec::new());
    let silent: Vec<TcpStream> = (0..20).map(|_| page.connect()).collect::<Result<_, _>>()?;
    let mut slow = page.connect()?;
    slow.write_all(b"GET / HT")?;
    assert_eq!(code(&page.own("style.css")?), "200");
    // More than the maximum of 64 connections: the oldest are dropped for a client that has the token.
    let crowd: Vec<TcpStream> = (0..200).map(|_| page.connect()).collect::<Result<_, _>>()?;
    assert_eq!(code(&page.own("style.css")?), "200");
    // Clients that send a request without the token and then neither read nor close: the server would wait for
    // them, too.
    let mut rude: Vec<TcpStream> = (0..200).map(|_| page.connect()).collect::<Result<_, _>>()?;
    for stream in &mut rude {
        // The oldest are disconnected by now.
        let _ =
            stream.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", page.host).as_bytes());
    }
    assert_eq!(code(&page.own("style.css")?), "200");
    drop((silent, slow, crowd, rude));
    Ok(())
}

#[test]
fn the_server_also_answers_questions_with_its_simulator() -> TestResult {
    let page = page(Vec::new());
    let post = |body: &str| {
        let (token, host, length) = (&page.token, &page.host, body.len());
        page.answer(
            format!(
                "POST /{token}/ask HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    };
    let scenario =
        "duration = '1s'\n[path]\nrate = '1Mbit/s'\nrtt = '10ms'\nbuffer = '9pkt'\n[[transfer]]";
    let question = serde_json::json!({ "ask": "run", "scenario": scenario });
    let answer = post(&question.to_string())?;
    assert!(answer.contains("\"goodput_bps\""), "{answer}");
    for wrong in ["", "{}", "[1]", "{\"ask\":\"run\",\"scenario\":\"what\"}", "{\"ask\":\"dance\"}"]
    {
        assert!(post(wrong)?.contains("{\"error\":"), "{wrong}");
    }
    Ok(())
}

#[test]
fn a_growing_file_is_served_from_the_requested_offset() -> TestResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("series.jsonl");
    let page = page(vec![WatchedFile::new(&path)]);
    assert!(page.own("about")?.contains("series.jsonl"));
    assert!(page.own("watch?file=0&from=0")?.contains("Sweetspot-Next: 0"));
    std::fs::write(&path, "{\"t_s\":1}\n{\"t")?;
    let first = page.own("watch?file=0&from=0")?;
    assert!(first.contains("Sweetspot-Next: 10") && first.ends_with("{\"t_s\":1}\n"));
    assert_eq!(code(&page.own("watch?file=0&from=99999999999999999999")?), "404");
    Ok(())
}
