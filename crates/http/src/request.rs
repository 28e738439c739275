use thiserror::Error;

/// Maximum length of a request's head: request line and header fields.
pub const MAX_HEAD_BYTES: usize = 8 << 10;
/// Maximum length of a request's body.
pub const MAX_BODY_BYTES: usize = 256 << 10;
const MAX_HEADER_FIELDS: usize = 64;

/// A complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query: the part after `?`.
    pub query: String,
    /// The `Host` field.
    pub host: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Result of parsing a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedRequest {
    /// The request is not complete.
    Partial,
    /// The request is complete.
    Whole(Request),
}

/// The reason why bytes are not a valid request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadRequest {
    /// Not HTTP, or without a `Host` field.
    #[error("expected an HTTP/1.1 request")]
    Garbage,
    /// The request exceeds a limit.
    #[error("the request is too long")]
    TooLong,
    /// A body without a `Content-Length`.
    #[error("the request needs a Content-Length")]
    NoLength,
    /// The request did not arrive in time.
    #[error("the request took too long")]
    TooSlow,
}

impl BadRequest {
    /// The response's status code: RFC 9110 section 15.5.
    pub fn code(self) -> u16 {
        match self {
            BadRequest::Garbage => 400,
            BadRequest::TooSlow => 408,
            BadRequest::NoLength => 411,
            BadRequest::TooLong => 413,
        }
    }
}

/// Parses the bytes received so far.
pub fn parse(bytes: &[u8]) -> Result<ParsedRequest, BadRequest> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADER_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => {
            return Ok(ParsedRequest::Partial);
        }
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(BadRequest::TooLong),
        Err(_) => return Err(BadRequest::Garbage),
    };
    let (Some(method), Some(target)) = (head.method, head.path) else {
        return Err(BadRequest::Garbage);
    };
    let field = |name: &str| {
        let mut all = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        let value = all.next().map(|field| std::str::from_utf8(field.value).map(str::trim));
        // A proxy could use the other one of two different values.
        if all.next().is_some() { Err(BadRequest::Garbage) } else { Ok(value) }
    };
    if field("transfer-encoding")?.is_some() {
        return Err(BadRequest::NoLength);
    }
    let body: usize = match field("content-length")? {
        None => 0,
        Some(value) => value.ok().and_then(|v| v.parse().ok()).ok_or(BadRequest::Garbage)?,
    };
    if body > MAX_BODY_BYTES {
        return Err(BadRequest::TooLong);
    }
    let Some(Ok(host)) = field("host")? else { return Err(BadRequest::Garbage) };
    let Some(body) = bytes.get(length..length + body) else { return Ok(ParsedRequest::Partial) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(ParsedRequest::Whole(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        host: host.to_owned(),
        body: body.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &[u8] =
        b"POST /a/b?c=d HTTP/1.1\r\nhost: 127.0.0.1:1\r\nContent-Length: 3\r\n\r\nxyz";

    #[test]
    fn a_request_is_complete_only_with_its_last_byte() {
        for end in 0..WHOLE.len() {
            assert_eq!(parse(&WHOLE[..end]), Ok(ParsedRequest::Partial), "{end}");
        }
        let Ok(ParsedRequest::Whole(request)) = parse(WHOLE) else { panic!("it is whole") };
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/a/b", "c=d"));
        assert_eq!((request.host.as_str(), &request.body[..]), ("127.0.0.1:1", &b"xyz"[..]));
    }

    #[test]
    fn oversized_malformed_and_ambiguous_requests_are_rejected() {
        let with = |fields: &str| parse(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
        assert_eq!(with(""), Err(BadRequest::Garbage));
        assert_eq!(with("Host: a\r\nHost: b\r\n"), Err(BadRequest::Garbage));
        assert_eq!(with("Host: a\r\nContent-Length: -1\r\n"), Err(BadRequest::Garbage));
        assert_eq!(with("Host: a\r\nContent-Length: 999999999\r\n"), Err(BadRequest::TooLong));
        assert_eq!(with("Host: a\r\nTransfer-Encoding: chunked\r\n"), Err(BadRequest::NoLength));
        assert_eq!(with(&"A: b\r\n".repeat(65)), Err(BadRequest::TooLong));
        assert_eq!(parse(&[b'a'; MAX_HEAD_BYTES + 1]), Err(BadRequest::TooLong));
        assert_eq!(parse(b"\x16\x03\x01\x02\x00\x01"), Err(BadRequest::Garbage));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_corrupted_request_causes_no_panic(
            at in 0..WHOLE.len(), wrong in proptest::collection::vec(any::<u8>(), 1..9)
        ) {
            let mut bytes = WHOLE.to_vec();
            bytes.splice(at..at, wrong);
            let _ = parse(&bytes);
        }
    }
}
