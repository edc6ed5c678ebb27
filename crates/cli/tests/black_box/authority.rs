use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use tempfile::TempDir;

/// One that signs certificates, and a folder with its own, `ca.crt`, and with those.
pub(crate) struct Authority {
    pub(crate) folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// With a certificate for `server`, which is at 127.0.0.1, and one for `client`.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).expect("there are no names");
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there are keys");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs");
        let authority = Self { folder: tempfile::tempdir().expect("a folder"), issuer };
        fs::write(authority.path("ca.crt"), authority.issuer.pem()).expect("it is written");
        authority.sign("server", (2020, 2200));
        authority.sign("client", (2020, 2200));
        authority
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a name of ours").to_owned()
    }

    /// Signs a certificate that is valid in these years, `NAME.crt`, with `NAME.key`.
    pub(crate) fn sign(&self, name: &str, years: (i32, i32)) {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().expect("there are keys");
        let signed = params.signed_by(&key, &self.issuer).expect("it signs");
        fs::write(self.path(&format!("{name}.crt")), signed.pem()).expect("it is written");
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).expect("it is written");
    }
}
