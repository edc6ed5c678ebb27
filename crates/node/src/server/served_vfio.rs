//! The vfio-user sockets of a subsystem, as an operator gives them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How virtual machines write doorbells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doorbells {
    /// By messages, or to their own memory while the reactor polls that. The reactor sleeps when
    /// there is nothing to do.
    #[default]
    Trapped,
    /// To a page that they map and that the reactor polls. It does not sleep while a virtual
    /// machine has enabled its controller.
    Mapped,
}

impl Doorbells {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Trapped, Self::Mapped];

    /// Returns its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trapped => "trapped",
            Self::Mapped => "mapped",
        }
    }
}

/// Longest path of a Unix socket in bytes: `sun_path` without its final zero (unix(7)).
const PATH_BYTES_MAX: usize = 107;

/// Returns the absolute path of the vfio-user socket `path`, because QEMU may run in another
/// folder. Fails with a sentence if it is too long, or one of `others`.
pub fn vfio_user_path<'a>(
    path: &Path,
    others: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<PathBuf, String> {
    let shown = path.display();
    let absolute = std::path::absolute(path)
        .map_err(|error| format!("{shown}: this is not the path of a socket: {error}"))?;
    let length = absolute.as_os_str().as_bytes().len();
    if length > PATH_BYTES_MAX {
        return Err(format!(
            "{shown}: the path of a socket has at most {PATH_BYTES_MAX} bytes, and this one has \
             {length}: use a shorter path, for example in /run"
        ));
    }
    if others.into_iter().any(|other| *other == absolute) {
        return Err(format!("{shown}: this socket is given twice: each needs a path of its own"));
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_a_short_path_of_its_own() {
        let given = |path: &str| vfio_user_path(Path::new(path), []);
        assert_eq!(given("/run/vm1.sock"), Ok("/run/vm1.sock".into()));
        let here = std::env::current_dir().unwrap();
        assert_eq!(given("vm.sock"), Ok(here.join("vm.sock")));
        let longest = format!("/{}", "v".repeat(106));
        assert_eq!(given(&longest), Ok(longest.clone().into()));
        let sentence = format!(
            "{longest}v: the path of a socket has at most 107 bytes, and this one has 108: use a \
             shorter path, for example in /run"
        );
        assert_eq!(given(&format!("{longest}v")), Err(sentence));
        assert!(given("").unwrap_err().starts_with(": this is not the path of a socket: "));
        let twice = vfio_user_path(Path::new("/run/a"), &["/run/b".into(), "/run/a".into()]);
        let sentence = "/run/a: this socket is given twice: each needs a path of its own";
        assert_eq!(twice, Err(sentence.to_owned()));
    }
}
