//! Routes requests to responses.

use std::sync::{Mutex, PoisonError};

use sweetspot_http::{BadRequest, Request, Response, Site};

use crate::assets::{ASSETS, SIMULATOR};
use crate::auth::{Token, is_own_host};
use crate::diagnosis::served_page;
use crate::isolation::Isolation;
use crate::watched::WatchedFile;

/// The content that the server offers.
#[derive(Debug)]
pub struct Page {
    pub token: Token,
    pub port: u16,
    pub watched: Vec<WatchedFile>,
    /// Locked while the server's own simulator runs: one run at a time.
    pub running: Mutex<()>,
}

const JSON: &str = "application/json";

impl Site for Page {
    fn answer(&self, request: Result<&Request, BadRequest>) -> Response {
        let (isolation, mut response) = match request {
            Ok(request) => self.route(request),
            Err(bad) => (Isolation::Origin, Response::refusal(bad.code(), &bad.to_string())),
        };
        response.fields.extend(isolation.fields());
        response
    }

    /// Whether a request comes from the page: it names this server as host and has the token.
    fn admits(&self, request: &Request) -> bool {
        is_own_host(&request.host, self.port) && self.token.strip(&request.path).is_some()
    }
}

impl Page {
    fn route(&self, request: &Request) -> (Isolation, Response) {
        let name = self.token.strip(&request.path);
        let response = match (is_own_host(&request.host, self.port), name) {
            (false, _) => {
                Response::refusal(421, "this server answers only at 127.0.0.1; use that address")
            }
            (true, None) => {
                Response::refusal(403, "open the whole address that sweetspot ui printed")
            }
            (true, Some(name)) => match (request.method.as_str(), name) {
                ("POST", "ask") => self.run(request),
                ("GET" | "HEAD", "about") => self.about(),
                ("GET" | "HEAD", "watch") => self.watch(&request.query),
                ("GET" | "HEAD", "diagnose.html") => {
                    let page = Response::ok("text/html; charset=utf-8", served_page());
                    return (Isolation::Sandbox, page);
                }
                ("GET" | "HEAD", _) => file(name),
                _ => Response::refusal(405, "this page does not support that method"),
            },
        };
        (Isolation::Origin, response)
    }

    fn run(&self, request: &Request) -> Response {
        let _turn = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        Response::ok(JSON, sweetspot_wasm::answer(&String::from_utf8_lossy(&request.body)))
    }

    /// The watched files, and whether the page has its own simulator.
    fn about(&self) -> Response {
        let name = |watched: &WatchedFile| watched.path().display().to_string();
        let about = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "simulator": !SIMULATOR.is_empty(),
            "watched": self.watched.iter().map(name).collect::<Vec<_>>(),
        });
        Response::ok(JSON, about.to_string())
    }

    /// `file=N&from=BYTE`: the next lines of watched file N.
    fn watch(&self, query: &str) -> Response {
        let number = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(k, _)| *k == key).and_then(|(_, value)| value.parse::<u64>().ok())
        };
        let file = number("file").and_then(|n| self.watched.get(usize::try_from(n).ok()?));
        let (Some(file), Some(from)) = (file, number("from")) else {
            return Response::refusal(404, "no such file is watched");
        };
        match file.lines(from) {
            Ok(lines) => {
                let mut response = Response::ok("application/x-ndjson", lines.text);
                response.fields.push(("Sweetspot-Next", lines.next.to_string()));
                response.fields.push(("Sweetspot-Anew", lines.is_reset.to_string()));
                response
            }
            Err(error) => Response::refusal(503, &format!("{}: {error}", file.path().display())),
        }
    }
}

fn file(name: &str) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name && !asset.content.is_empty()) {
        Some(asset) => {
            let mut response = Response::ok(asset.media_type, asset.content);
            if asset.is_gzip {
                response.fields.push(("Content-Encoding", "gzip".to_owned()));
            }
            response
        }
        None => Response::refusal(404, "there is no such page here"),
    }
}
