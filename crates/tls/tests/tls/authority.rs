use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use tls::{Client, ClientFiles, Server, ServerFiles};

/// One that signs certificates, and a folder with its own and with those.
pub(crate) struct Authority {
    pub(crate) folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("there are no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("there are keys");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs");
        let authority = Self { folder: tempfile::tempdir().expect("a folder"), issuer };
        authority.write("ca.crt", &authority.issuer.pem());
        authority
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("it can be written");
        path
    }

    /// Signs a certificate for `host`, valid in these years, and writes `NAME.crt` and `NAME.key`.
    pub(crate) fn sign(&self, name: &str, host: &str, years: (i32, i32)) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new([host.to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().expect("there are keys");
        let signed = params.signed_by(&key, &self.issuer).expect("it signs");
        let certificate = self.write(&format!("{name}.crt"), &signed.pem());
        (certificate, self.write(&format!("{name}.key"), &key.serialize_pem()))
    }

    /// A server that is called `server`; with `clients` it wants to see a certificate of its own
    /// authority.
    pub(crate) fn server(&self, clients: bool) -> Server {
        let (certificate, key) = self.sign("server", "server", (2020, 2200));
        let clients = clients.then(|| self.path("ca.crt"));
        Server::load(&ServerFiles { certificate, key, clients }).expect("the files are right")
    }

    /// A client that trusts this authority, and shows a certificate that `signer` has signed.
    pub(crate) fn client(&self, signer: Option<&Authority>) -> Client {
        let own = signer.map(|signer| signer.sign("client", "client", (2020, 2200)));
        let files = ClientFiles { ca: self.path("ca.crt"), own };
        Client::load(&files).expect("the files are right")
    }
}
