use std::io::{self, Write};

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code: RFC 9110 section 15.
    pub code: u16,
    /// Media type of the body.
    pub media_type: &'static str,
    /// Header fields in addition to the common ones.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A response with status 200.
    pub fn ok(media_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { code: 200, media_type, fields: Vec::new(), body: body.into() }
    }

    /// An error response with its reason.
    pub fn refusal(code: u16, why: &str) -> Response {
        let body = format!("{why}\n").into_bytes();
        Response { code, ..Response::ok("text/plain; charset=utf-8", body) }
    }

    /// Writes the response; `with_body` is false for HEAD.
    pub(crate) fn write(&self, to: &mut impl Write, with_body: bool) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             X-Content-Type-Options: nosniff\r\n",
            self.code,
            reason(self.code),
            self.media_type,
            self.body.len()
        );
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        to.write_all(head.as_bytes())?;
        if with_body {
            to.write_all(&self.body)?;
        }
        to.flush()
    }
}

fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        _ => "Service Unavailable",
    }
}
