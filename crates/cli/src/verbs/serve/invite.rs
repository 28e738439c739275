use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_linux::{clock, file};
use sweetspot_protocol::clients::{Client, ClientError, Clients, Credential, Rights, check_name};
use sweetspot_protocol::{DEFAULT_PORT, Ticket, TicketProof};
use sweetspot_transfer::{draw_code, draw_secret};
use sweetspot_units::{Bytes, Duration};

use super::{
    advertised, code_address, identity_file, in_whole_units, lifetime, service_identity,
    state_directory,
};
use crate::verbs::{Ending, Fallible};
use sweetspot_program::print::{Shown, system};
use sweetspot_program::usage_error::UsageError;

/// `sweetspot serve invite` as typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot serve invite --clients clients --dir /srv/in/ann \\
      --to nas.example.org ann
      prints a ticket that lets ann send once, within a day
  sweetspot serve invite --clients clients --dir /srv/in/ann \\
      --to nas.example.org --spoken-code --quota 10GB ann
      prints a code to say on the telephone: nas.example.org/1-crisp-lemon-orbit

You can edit or remove the line that it adds to the clients file; a running
`sweetspot serve --clients` notices within a second.")]
pub struct ServeInviteArguments {
    /// Name of the client
    #[arg(value_parser = client_name)]
    name: String,
    /// Clients file of `sweetspot serve --clients`
    #[arg(long, value_name = "FILE")]
    clients: PathBuf,
    /// Directory of the client; the service creates it, but not its parent
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Host name or address at which clients reach the service, and its port unless that is 7411
    #[arg(long, value_name = "HOST[:PORT]", value_hint = clap::ValueHint::Hostname)]
    to: String,
    /// The client's rights: read, write, overwrite (includes write), dotfiles
    #[arg(long, value_name = "LIST", default_value = "write")]
    rights: Rights,
    /// Maximum size of the client's directory
    #[arg(long, value_name = "SIZE")]
    quota: Option<Bytes>,
    /// How long the ticket or code is valid
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = lifetime)]
    lifetime: Duration,
    /// Admit the client for any number of transfers, not only one
    #[arg(long, conflicts_with = "spoken_code")]
    many: bool,
    /// Print a short code to read out instead of a ticket; one wrong attempt invalidates it
    #[arg(long)]
    spoken_code: bool,
    /// Directory of the running service's key: its --state [default: as for serve]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print one JSON object: the ticket or the code, and when it expires
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: ServeInviteArguments) -> Ending {
    let (host, port) = advertised("--to", &arguments.to)?;
    let port = port.unwrap_or(DEFAULT_PORT);
    let state = arguments.state.as_deref();
    let is_new = !identity_file(state)?.exists();
    let identity = service_identity(state)?;
    let expires = Ticket::expiry(clock::wall(), arguments.lifetime);
    let directory = std::path::absolute(&arguments.dir)?;
    // The service creates its client's directory, but not the parent: without that, it would refuse every
    // transfer.
    if let Some(above) = directory.parent().filter(|above| !above.is_dir()) {
        let what = if above.exists() { "is not a directory" } else { "does not exist" };
        return Err(format!("{} {what}; create the directory first", above.shown()).into());
    }
    if directory.exists() && !directory.is_dir() {
        let wrong = format!("--dir {}: that is a file; name a directory", directory.shown());
        return Err(UsageError::new(wrong).into());
    }
    let (mut file, before) = open_alone(&arguments.clients)?;
    // The service also ignores wrong lines.
    let (existing, wrong) = Clients::read(before.as_bytes());
    for error in wrong {
        note!(
            "sweetspot: {}: {error}; fix that line: it admits no client",
            arguments.clients.shown()
        );
    }
    if existing.list.iter().any(|client| client.name == arguments.name) {
        let (name, file) = (&arguments.name, arguments.clients.shown());
        err!("sweetspot: {name} already has a line in {file}, which stays valid");
    }
    let credential = if arguments.spoken_code {
        free_code(&existing)?
    } else {
        Credential::Secret(draw_secret()?)
    };
    let client_name = arguments.name;
    let client = Client {
        credential: credential.clone(),
        name: client_name.clone(),
        directory,
        quota: arguments.quota,
        rights: arguments.rights,
        expires: Some(expires),
        once: !arguments.many,
    };
    let line = client.to_string();
    // Rejects values that would be read back differently.
    if line.parse::<Clients>().map_err(|e| e.reason)?.list != [client.clone()] {
        return Err("the name or the directory cannot be written on one line; choose others".into());
    }
    let end_of_last = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    file.write_all(format!("{end_of_last}{line}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| unusable(&arguments.clients, &error))?;
    let (name, invitation) = match credential {
        Credential::Code(code) => ("code", code_address(&host, port, &code).to_string()),
        Credential::Secret(secret) => {
            if is_new {
                let directory = state_directory(state)?;
                note!(
                    "sweetspot: no service has used {} yet, so this made a new key; if the service runs with --state, give the same here",
                    directory.shown()
                );
            }
            let fingerprint = identity.public_key().0;
            let proof = TicketProof::Secret { secret, expires };
            ("ticket", Ticket { host, port, fingerprint, proof }.to_string())
        }
        Credential::Key(_) => return Ok(ExitCode::SUCCESS),
    };
    if arguments.json {
        out!(
            "{}",
            serde_json::json!({ name: invitation, "expires_unix_s": expires.as_nanos() / 1_000_000_000 })
        );
    } else {
        out!("{invitation}");
        let within = in_whole_units(arguments.lifetime);
        note!("valid for {within}: give this {name} to {client_name}");
        let given = if name == "code" { "--code CODE" } else { "TICKET" };
        if client.rights.write {
            note!("to send, {client_name} runs: sweetspot send FILE {given}");
        }
        if client.rights.read {
            note!("to fetch the directory, {client_name} runs: sweetspot receive {given}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn client_name(text: &str) -> Result<String, ClientError> {
    check_name(text).map(|()| text.to_owned())
}

/// The clients file and its content; locked, so that no two invitations choose the same number.
fn open_alone(clients: &Path) -> Fallible<(File, String)> {
    let mut options = File::options();
    options.create(true).append(true).mode(0o600);
    let file = options.open(clients).map_err(|error| {
        unusable(clients, &format!("{}; name a file that you may write to", system(&error)))
    })?;
    if !file::try_lock(&file).map_err(|error| unusable(clients, &error))? {
        return Err(unusable(clients, &"another invitation is being written; try again").into());
    }
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        return Err(unusable(clients, &"it will hold a secret; chmod 600 it first").into());
    }
    let before = fs::read_to_string(clients).map_err(|error| unusable(clients, &error))?;
    Ok((file, before))
}

/// A spoken code with a number that no client in the list has.
fn free_code(existing: &Clients) -> Fallible<Credential> {
    let is_free = |number| {
        !existing.list.iter().any(|client| {
            matches!(&client.credential, Credential::Code(code) if code.number() == number)
        })
    };
    Ok(Credential::Code(draw_code(is_free)?))
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> String {
    format!("{}: {why}", path.shown())
}
