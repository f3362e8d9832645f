//! Owns the other side of the tests: a generated authority, a rustls server, and the pipe between it and our client.
//! Start reading at [`Pipe`].

use std::io::{Read, Write};
use std::sync::Arc;

use joust_wire::tls::{
    Resumption, TlsClient, TlsClientConfig, TlsError, TlsEvent, TlsOptions, Versions,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate chain and its key, PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// Signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self::with_key(name, KeyPair::generate().unwrap())
    }

    pub(crate) fn with_key(name: &str, key: KeyPair) -> Self {
        Self(CertifiedIssuer::self_signed(authority_params(name, &[]), key).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_for(names, |_| {})
    }

    /// A certificate whose parameters `change` has changed.
    pub(crate) fn issue_for(
        &self,
        names: &[&str],
        change: impl Fn(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { chain: certificate.pem(), key: key.serialize_pem() }
    }

    pub(crate) fn issue_expired(&self, names: &[&str]) -> Identity {
        self.issue_for(names, |params| params.not_after = date_time_ymd(2020, 1, 1))
    }

    pub(crate) fn issue_for_the_future(&self, names: &[&str]) -> Identity {
        self.issue_for(names, |params| params.not_before = date_time_ymd(4000, 1, 1))
    }
}

fn authority_params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// A self-signed certificate, as a server makes it for trying out.
pub(crate) fn self_signed(names: &[&str]) -> Identity {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    Identity { chain: certificate.pem(), key: key.serialize_pem() }
}

/// The output of `openssl req -x509`: a server's own certificate that is also an authority's.
pub(crate) fn self_signed_authority(names: &[&str]) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = authority_params("self", names).self_signed(&key).unwrap();
    Identity { chain: certificate.pem(), key: key.serialize_pem() }
}

/// The configuration of the server.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) identity: Identity,
    pub(crate) versions: Versions,
    pub(crate) alpn: Vec<&'static str>,
    /// Authority whose client certificates are demanded.
    pub(crate) clients_of: Option<String>,
    /// Whether only P-256 is accepted for the key exchange.
    pub(crate) only_p256: bool,
    /// Tickets after each handshake of TLS 1.3.
    pub(crate) tickets: usize,
}

impl Site {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            versions: Versions::Both,
            alpn: vec![],
            clients_of: None,
            only_p256: false,
            tickets: 2,
        }
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        if self.only_p256 {
            provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::SECP256R1];
        }
        let provider = Arc::new(provider);
        let versions: Vec<&SupportedProtocolVersion> = match self.versions {
            Versions::Both => vec![&version::TLS13, &version::TLS12],
            Versions::Only12 => vec![&version::TLS12],
            Versions::Only13 => vec![&version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .unwrap();
        let builder = match &self.clients_of {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        // Not with_single_cert: one test needs a key that does not match the certificate.
        let mut config = builder.with_cert_resolver(self.resolver());
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.send_tls13_tickets = self.tickets;
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
        Arc::new(config)
    }

    fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        let chain = CertificateDer::pem_slice_iter(self.identity.chain.as_bytes());
        let chain = chain.collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.identity.key.as_bytes()).unwrap();
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
        Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)))
    }
}

/// The options of a client that trusts one authority.
pub(crate) fn trusting(authority: &Authority) -> TlsOptions {
    TlsOptions { ca_pem: Some(authority.pem().into_bytes()), ..TlsOptions::default() }
}

/// One connection between our client and a rustls server, in memory.
pub(crate) struct Pipe {
    pub(crate) client: TlsClient,
    pub(crate) server: ServerConnection,
    /// Number of bytes that the client is fed at once.
    pub(crate) piece: usize,
    /// Plaintext that the client got.
    pub(crate) client_got: Vec<u8>,
    /// Plaintext that the server got.
    pub(crate) server_got: Vec<u8>,
    /// Why the server failed.
    pub(crate) server_error: Option<rustls::Error>,
    /// How often the client reported that the handshake was just completed.
    pub(crate) done_events: usize,
    pub(crate) last: TlsEvent,
}

impl Pipe {
    pub(crate) fn new(
        config: &TlsClientConfig,
        name: &str,
        resumption: Resumption,
        server: &Arc<ServerConfig>,
    ) -> Self {
        Self {
            client: TlsClient::new(config, name, resumption).unwrap(),
            server: ServerConnection::new(Arc::clone(server)).unwrap(),
            piece: usize::MAX,
            client_got: vec![],
            server_got: vec![],
            server_error: None,
            done_events: 0,
            last: TlsEvent::default(),
        }
    }

    /// Carries bytes both ways until neither side has more.
    pub(crate) fn run(&mut self) -> Result<(), TlsError> {
        loop {
            let mut out = Vec::new();
            self.client.take_output(&mut out);
            self.give_server(&out);
            let reply = self.take_from_server();
            for piece in reply.chunks(self.piece) {
                self.last = self.client.feed(piece, &mut self.client_got)?;
                self.done_events += usize::from(self.last.handshake_done_now);
            }
            if out.is_empty() && reply.is_empty() {
                return Ok(());
            }
        }
    }

    pub(crate) fn give_server(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.server.read_tls(&mut bytes).unwrap() > 0 {
            if let Err(error) = self.server.process_new_packets() {
                self.server_error = Some(error);
                return;
            }
            // WouldBlock at the end of the available data is not an error.
            let _ = self.server.reader().read_to_end(&mut self.server_got);
        }
    }

    pub(crate) fn take_from_server(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    pub(crate) fn server_says(&mut self, plain: &[u8]) {
        self.server.set_buffer_limit(None);
        self.server.writer().write_all(plain).unwrap();
    }
}
