//! Identities in TLS: a self-signed certificate on one side, its fingerprint on the other.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme, version::TLS13,
};
use sweetspot_linux::file;
use sweetspot_protocol::{PublicKey, Secret};

use crate::{Result, TransferError};

/// The name in the certificate. Nobody checks it: the ticket's fingerprint identifies the certificate.
const CERTIFICATE_NAME: &str = "sweetspot";
/// The mode of files that hold secrets.
pub(crate) const OWNER_ONLY: u32 = 0o600;

/// A certificate and its private key: the identity of this host or its user.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// Whether a listener asks for the peer's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    /// No certificate: a secret is sufficient.
    Nothing,
    /// The connecting end may present a certificate.
    Certificate,
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity { certificate: self.certificate.clone(), key: self.key.clone_key() }
    }
}

impl Identity {
    /// Generates a new identity.
    pub fn fresh() -> Result<Identity> {
        Identity::from_pem(Identity::draw()?.as_bytes()).map_err(|error| tls_setup(&error))
    }

    /// Generates a new identity as PEM text.
    fn draw() -> Result<String> {
        let made = rcgen::generate_simple_self_signed([CERTIFICATE_NAME.to_owned()]);
        let made = made.map_err(|error| tls_setup(&error))?;
        Ok(made.cert.pem() + &made.signing_key.serialize_pem())
    }

    /// Loads the identity at `path`, or generates one and stores it there, readable only by its owner. Creates the directory
    /// if it is missing.
    pub fn load_or_make(path: &Path) -> Result<Identity> {
        let failed = |source| TransferError::Identity { path: path.to_owned(), source };
        match Identity::load(path).map_err(failed)? {
            Some(identity) => return Ok(identity),
            None => keep(&Identity::draw()?, path).map_err(failed)?,
        }
        // Another process may have stored one first.
        let kept = Identity::load(path).map_err(failed)?;
        kept.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
    }

    fn load(path: &Path) -> io::Result<Option<Identity>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file; name the file of a private key"));
        }
        let mut pem = Vec::new();
        file.read_to_end(&mut pem)?;
        // The file is not an identity, and must stay.
        let other =
            |_| io::Error::other("it holds no sweetspot key; move it away, or name another file");
        let identity = Identity::from_pem(&pem).map_err(other)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(io::Error::other(
                "others may read this private key; chmod 600 it, or remove it",
            ));
        }
        Ok(Some(identity))
    }

    fn from_pem(text: &[u8]) -> Result<Identity, pem::Error> {
        let certificate = CertificateDer::from_pem_slice(text)?;
        let key = PrivateKeyDer::from_pem_slice(text)?;
        Ok(Identity { certificate, key })
    }

    /// The public key that identifies its holder to peers.
    pub fn public_key(&self) -> PublicKey {
        fingerprint(&self.certificate)
    }

    pub(crate) fn listening(&self, client_auth: ClientAuth) -> Result<Arc<ServerConfig>> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| tls_setup(&error))?;
        let builder = match client_auth {
            ClientAuth::Nothing => builder.with_no_client_auth(),
            ClientAuth::Certificate => {
                builder.with_client_cert_verifier(Arc::new(AnyCertificate { provider }))
            }
        };
        let mut config = builder
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(|error| tls_setup(&error))?;
        // A connection is never resumed, so session tickets would be useless.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> PublicKey {
    PublicKey(*blake3::hash(certificate).as_bytes())
}

/// Writes the PEM text of an identity to `path`, unless that exists. Creates the directory if it is missing.
fn keep(pem: &str, path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    match file::create_whole(path, pem.as_bytes(), OWNER_ONLY) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn tls_setup(error: &dyn std::fmt::Display) -> TransferError {
    TransferError::System { what: "preparing TLS", source: io::Error::other(error.to_string()) }
}

/// The connecting end's TLS configuration. It accepts only one certificate, or any if both ends prove a code afterwards. It
/// presents `own` if the peer asks for a certificate.
pub(crate) fn connecting(
    expected: Option<[u8; 32]>,
    own: Option<&Identity>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let verifier = Arc::new(PinnedCertificate { expected, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match own {
        Some(own) => {
            builder.with_client_auth_cert(vec![own.certificate.clone()], own.key.clone_key())?
        }
        None => builder.with_no_client_auth(),
    };
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// Random bytes from the kernel, for `what`.
pub(crate) fn random_bytes<const N: usize>(what: &'static str) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => {
            let source = std::io::Error::other(error.to_string());
            Err(TransferError::System { what, source })
        }
    }
}

/// Generates a new secret.
pub fn draw_secret() -> Result<Secret> {
    Ok(Secret(random_bytes("drawing a secret")?))
}

/// The server name for a pinned connection.
pub(crate) fn server_name() -> Result<ServerName<'static>, Error> {
    ServerName::try_from(CERTIFICATE_NAME).map_err(|e| Error::General(e.to_string()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The part of both verifiers that checks signatures with the provider's algorithms.
macro_rules! signatures_by_tls13 {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("only TLS 1.3 is supported".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

/// Accepts the certificate with the ticket's fingerprint. Its signature is still checked, so presenting a copy of the
/// certificate is not enough.
#[derive(Debug)]
struct PinnedCertificate {
    expected: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // blake3 compares hashes in constant time.
        let expected = self.expected.map(blake3::Hash::from_bytes);
        if expected.is_none_or(|expected| blake3::hash(certificate) == expected) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    signatures_by_tls13!();
}

/// Accepts any certificate if the connecting end holds its key. The server looks up the key afterwards, so that its answer can
/// suggest the next step.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    signatures_by_tls13!();
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    #[test]
    fn an_identity_survives_a_restart_and_is_private_to_its_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state/identity.pem");
        let first = Identity::load_or_make(&path).unwrap();
        assert_eq!(Identity::load_or_make(&path).unwrap().public_key(), first.public_key());
        assert_ne!(Identity::fresh().unwrap().public_key(), first.public_key());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_key_readable_by_others_is_rejected() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("identity.pem");
        Identity::load_or_make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Identity::load_or_make(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_an_identity_is_left_unchanged() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("identity.pem");
        let mut file =
            File::options().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(b"my thesis").unwrap();
        let error = Identity::load_or_make(&path).unwrap_err().to_string();
        assert!(error.contains("name another file"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"my thesis");
    }
}
