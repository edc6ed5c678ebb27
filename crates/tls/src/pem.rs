use crate::bad_file::{BadFile, Problem};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What an end shows of itself.
pub(crate) struct Own {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// All that is computed is computed by ring.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl Own {
    /// The certificate in one file, with those that lead to its CA behind it, and its key in
    /// another one, or in the same.
    pub(crate) fn load(certificate: &Path, key: &Path) -> Result<Self, BadFile> {
        let chain = certificates(certificate)?;
        for one in &chain {
            check_time(one).map_err(|problem| problem.of(certificate))?;
        }
        Ok(Self { chain, key: private_key(key)? })
    }
}

/// What a configuration that was refused for `error` says of the files that it is of.
pub(crate) fn refused(error: Error, certificate: &Path, key: &Path) -> BadFile {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            Problem::OtherKey(certificate.to_owned()).of(key)
        }
        // What the provider says of keys that it has no use for.
        Error::General(_) => Problem::Unusable(error).of(key),
        error => Problem::Unusable(error).of(certificate),
    }
}

/// Those that a file says to trust: one at least.
pub(crate) fn authorities(path: &Path) -> Result<Arc<RootCertStore>, BadFile> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| Problem::Unusable(error).of(path))?;
    }
    Ok(Arc::new(roots))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadFile> {
    let found = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if found.is_empty() => Err(Problem::NoCertificate.of(path)),
        Ok(found) => Ok(found),
        Err(_) => Err(Problem::Damaged.of(path)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, BadFile> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => Problem::NoKey.of(path),
        _ => Problem::Damaged.of(path),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, BadFile> {
    fs::read(path).map_err(|error| Problem::Unreadable(error).of(path))
}

/// Checks that `certificate` is valid now. Needs no CA: the dates are checked before the signature.
fn check_time(certificate: &CertificateDer<'_>) -> Result<(), Problem> {
    let now = UnixTime::now();
    let algorithms = provider().signature_verification_algorithms.all;
    let parsed = ParsedCertificate::try_from(certificate).map_err(Problem::Unusable)?;
    let no_roots = RootCertStore::empty();
    let verified =
        verify_server_cert_signed_by_trust_anchor(&parsed, &no_roots, &[], now, algorithms);
    let apart = |time: UnixTime| now.as_secs().abs_diff(time.as_secs());
    match verified {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Err(Problem::Expired(apart(not_after)))
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => Err(Problem::NotYet(apart(not_before))),
        _ => Ok(()),
    }
}
