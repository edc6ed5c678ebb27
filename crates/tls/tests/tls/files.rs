use crate::authority::Authority;
use std::path::{Path, PathBuf};
use tls::{Client, ClientFiles, Server, ServerFiles};

/// What is said of such files of a server.
#[track_caller]
fn said(certificate: &Path, key: &Path, clients: Option<&Path>) -> String {
    let (certificate, key) = (certificate.to_owned(), key.to_owned());
    let clients = clients.map(Path::to_owned);
    let files = ServerFiles { certificate, key, clients };
    Server::load(&files).expect_err("one of them is wrong").to_string()
}

#[test]
fn files_that_are_wrong_are_named_with_what_is_wrong() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("right", "server", (2020, 2200));
    let (_, other) = authority.sign("other", "server", (2020, 2200));
    let (old, old_key) = authority.sign("old", "server", (2001, 2002));
    let (young, young_key) = authority.sign("young", "server", (2190, 2200));
    let text = std::fs::read_to_string(&certificate).unwrap();
    let empty = authority.write("empty", "");
    let prose = authority.write("prose", "This is no certificate.\n");
    let cut = authority.write("cut", &text[..text.len() / 2]);
    let sealed = authority.write(
        "sealed",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let hollow =
        authority.write("hollow", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let mute =
        authority.write("mute", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let missing = authority.path("missing");
    let right = |words: &str, said: String, path: &Path| {
        assert!(said.starts_with(&path.display().to_string()), "{said}");
        assert!(said.contains(words) && !said.contains('\n'), "{said}");
    };
    right("cannot be read: No such file", said(&missing, &key, None), &missing);
    right("cannot be read: No such file", said(&certificate, &missing, None), &missing);
    right("cannot be read", said(&certificate, &key, Some(&missing)), &missing);
    for path in [&empty, &prose, &key] {
        right("no certificate in PEM", said(path, &key, None), path);
        right("no certificate in PEM", said(&certificate, &key, Some(path)), path);
    }
    for path in [&empty, &prose, &certificate, &sealed] {
        right("no private key in PEM", said(&certificate, path, None), path);
    }
    right("is damaged", said(&cut, &key, None), &cut);
    right("cannot be used", said(&hollow, &key, None), &hollow);
    right("cannot be used", said(&certificate, &key, Some(&hollow)), &hollow);
    right("cannot be used", said(&certificate, &mute, None), &mute);
    right("not the one of the certificate in", said(&certificate, &other, None), &other);
    right("has expired (", said(&old, &old_key, None), &old);
    right("not valid yet (", said(&young, &young_key, None), &young);
    // Also one that leads to the CA.
    let chain = text.clone() + &std::fs::read_to_string(&old).unwrap();
    let chain = authority.write("chain", &chain);
    right("has expired (", said(&chain, &key, None), &chain);

    // Both in one file is as good.
    let both = text + &std::fs::read_to_string(&key).unwrap();
    let both = authority.write("both", &both);
    let files = ServerFiles { certificate: both.clone(), key: both, clients: None };
    assert!(Server::load(&files).is_ok());
}

#[test]
fn files_of_a_client_are_looked_at_too() {
    let authority = Authority::new();
    let own = authority.sign("client", "client", (2020, 2200));
    let old = authority.sign("old", "client", (2001, 2002));
    let said = |ca: PathBuf, own: Option<(PathBuf, PathBuf)>| {
        Client::load(&ClientFiles { ca, own }).expect_err("one is wrong").to_string()
    };
    let ca = authority.path("ca.crt");
    assert!(said(authority.path("none"), None).contains("none cannot be read"));
    assert!(said(own.1.clone(), None).contains("client.key has no certificate in PEM"));
    assert!(said(ca.clone(), Some(old)).contains("old.crt has a certificate that has expired"));
    let swapped = said(ca, Some((own.0.clone(), own.0)));
    assert!(swapped.contains("client.crt has no private key in PEM"), "{swapped}");
}
