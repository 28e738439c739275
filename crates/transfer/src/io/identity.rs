//! Who is who in TLS: a self-signed certificate on one side, its fingerprint on the other.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
    version::TLS13,
};

use crate::TransferError;

/// The name in the certificate. Nobody checks it: the fingerprint in the ticket names this very
/// certificate.
const CERTIFICATE_NAME: &str = "sweetspot";

/// A receiver's certificate, made afresh at every start.
pub(crate) struct Identity {
    pub config: Arc<ServerConfig>,
    /// BLAKE3 of the certificate's DER form.
    pub fingerprint: [u8; 32],
}

impl Identity {
    pub fn new() -> Result<Identity, String> {
        let made = rcgen::generate_simple_self_signed([CERTIFICATE_NAME.to_owned()])
            .map_err(|e| format!("making a certificate failed: {e}"))?;
        let certificate = made.cert.der().clone();
        let fingerprint = *blake3::hash(&certificate).as_bytes();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
            .map_err(|e| format!("making a key failed: {e}"))?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| e.to_string())?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(|e| e.to_string())?;
        // One connection per transfer: session tickets would never be used.
        config.send_tls13_tickets = 0;
        Ok(Identity { config: Arc::new(config), fingerprint })
    }
}

/// A sender's configuration that takes one certificate and no other.
pub(crate) fn pinned(fingerprint: [u8; 32]) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let verifier = Arc::new(PinnedCertificate { fingerprint, provider: Arc::clone(&provider) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// Bytes from the kernel's generator; `what` they are drawn for.
pub(crate) fn random_bytes<const N: usize>(what: &'static str) -> Result<[u8; N], TransferError> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => {
            let source = std::io::Error::other(error.to_string());
            Err(TransferError::System { what, source })
        }
    }
}

/// The name that a pinned connection is opened under.
pub(crate) fn server_name() -> Result<ServerName<'static>, Error> {
    ServerName::try_from(CERTIFICATE_NAME).map_err(|e| Error::General(e.to_string()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Takes the certificate of the ticket's fingerprint; its signature is still checked, so that
/// showing a copy of the certificate is not enough.
#[derive(Debug)]
struct PinnedCertificate {
    fingerprint: [u8; 32],
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
        // blake3's comparison of hashes takes constant time.
        if blake3::hash(certificate) == blake3::Hash::from(self.fingerprint) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".into()))
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
}
