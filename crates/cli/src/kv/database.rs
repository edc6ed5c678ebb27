use crate::output::Failure;
use resp_client::Uri;

/// Returns the database that the target of an export or an import names.
pub(super) fn database(target: &str) -> Result<Uri, Failure> {
    if !Uri::is_meant(target) {
        return Err(Failure::Refused(format!(
            "the target {target:?} is not possible here: use resp://HOST:PORT/DATABASE, which \
             kvasir serve --resp prints, or another Redis server's"
        )));
    }
    target.parse().map_err(Failure::refused)
}
