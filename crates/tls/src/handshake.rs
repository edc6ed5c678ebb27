use base::Nanos;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Why two ends do not come together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoHandshake {
    /// The peer has taken too long.
    #[error("the other end did not finish its handshake within {0}")]
    Late(Nanos),
    /// The peer has gone.
    #[error("the other end left amid the handshake")]
    Left,
    /// This end was shut down.
    #[error("the connection was closed amid the handshake")]
    Closed,
    /// One of the two does not accept the other, or what it said.
    #[error("{}", words(.0))]
    Refused(Error),
}

/// Returns the error in words that need no knowledge of TLS.
pub(crate) fn words(error: &Error) -> String {
    let words = match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the other end does not speak TLS"
        }
        // With a bad signature it is another CA of the same name.
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "the certificate of the other end is not signed by the CA that was given",
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "the certificate of the other end is that of another name or address",
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the certificate of the other end has expired",
        Error::AlertReceived(AlertDescription::CertificateRequired)
        | Error::NoCertificatesPresented => "who connects has to show a certificate",
        Error::AlertReceived(AlertDescription::UnknownCA) => {
            "the other end does not trust the CA of the certificate that it was shown"
        }
        other => return format!("the handshake failed: {other}"),
    };
    words.to_owned()
}
