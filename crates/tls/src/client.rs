use crate::bad_file::BadFile;
use crate::pem::{Own, authorities, provider, refused};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};
use std::path::PathBuf;
use std::sync::Arc;

/// Where it stands whom a client trusts, and what it shows of itself, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The CA by which the server's certificate has to be signed.
    pub ca: PathBuf,
    /// A certificate, as servers have one too, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// Whom a client trusts, and what it shows of itself. Clones are the same.
#[derive(Clone, Debug)]
pub struct Client(Arc<ClientConfig>);

/// What a server is called is no name that a certificate can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a machine that a certificate can have")]
pub struct NoName(pub String);

impl Client {
    /// What `files` have now.
    pub fn load(files: &ClientFiles) -> Result<Self, BadFile> {
        let ClientFiles { ca, own } = files;
        let (certificate, key) =
            own.as_ref().map_or((ca, ca), |(certificate, key)| (certificate, key));
        let bad = |error: Error| refused(error, certificate, key);
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().map_err(bad)?;
        let builder = builder.with_root_certificates(authorities(ca)?);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(_) => {
                let Own { chain, key: own_key } = Own::load(certificate, key)?;
                builder.with_client_auth_cert(chain, own_key).map_err(bad)?
            }
        };
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// A session with a server that is called `host`: a name or an address.
    pub(crate) fn session(&self, host: &str) -> Result<ClientConnection, NoName> {
        let no_name = || NoName(host.to_owned());
        let name = ServerName::try_from(host.to_owned()).map_err(|_| no_name())?;
        ClientConnection::new(self.0.clone(), name).map_err(|_| no_name())
    }
}
