use crate::diagnosis;

/// The browser's restrictions on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// It has this server's origin and connects only to it.
    Origin,
    /// It has its own origin and connects to nothing, because it reads untrusted captures.
    Sandbox,
}

/// The page may load its own files, compile its own simulator and query its own server.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
     connect-src 'self'; worker-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

impl Isolation {
    /// The header fields of a response. A browser rejects a sandboxed page that isolates its opener.
    pub fn fields(self) -> [(&'static str, String); 5] {
        let (policy, opener) = match self {
            Isolation::Origin => (CONTENT_SECURITY_POLICY.to_owned(), "same-origin"),
            Isolation::Sandbox => {
                let policy = diagnosis::POLICY;
                (format!("sandbox allow-scripts; frame-ancestors 'none'; {policy}"), "unsafe-none")
            }
        };
        [
            ("Cache-Control", "no-store".to_owned()),
            ("Content-Security-Policy", policy),
            ("Cross-Origin-Resource-Policy", "same-origin".to_owned()),
            ("Cross-Origin-Opener-Policy", opener.to_owned()),
            ("Referrer-Policy", "no-referrer".to_owned()),
        ]
    }
}
