use crate::bad_file::{BadFile, Problem};
use crate::pem::{Own, authorities, provider, refused};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, ServerConfig, ServerConnection};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a server's certificate and key are, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// The certificate, and behind it those that lead to its CA, if there are any between.
    pub certificate: PathBuf,
    /// Its key, which is in a file without a password.
    pub key: PathBuf,
    /// The CA by which a client's certificate has to be signed. Without one clients need none.
    pub clients: Option<PathBuf>,
}

/// What a server shows of itself, and what it wants to see of clients. Clones are the same.
#[derive(Clone, Debug)]
pub struct Server(Arc<ServerConfig>);

impl Server {
    /// What `files` have now.
    pub fn load(files: &ServerFiles) -> Result<Self, BadFile> {
        let ServerFiles { certificate, key, clients } = files;
        let Own { chain, key: own_key } = Own::load(certificate, key)?;
        let builder = ServerConfig::builder_with_provider(provider());
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|error| bad(error, files))?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = authorities(path)?;
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                let verifier = verifier.map_err(|error| {
                    Problem::Unusable(Error::General(error.to_string())).of(path)
                })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config =
            builder.with_single_cert(chain, own_key).map_err(|error| bad(error, files))?;
        // Who resumed a session would not have to show a certificate, whatever is valid by then.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn session(&self) -> ServerConnection {
        ServerConnection::new(self.0.clone()).expect("nothing of a server's settings can be wrong")
    }
}

fn bad(error: Error, files: &ServerFiles) -> BadFile {
    refused(error, &files.certificate, &files.key)
}
