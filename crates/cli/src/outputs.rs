//! Checks the files that a command writes beside its output, before the command's long work.

use crate::output::Failure;
use crate::path::shown;
use std::fs::{self, File};
use std::io::{self, ErrorKind, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Refuses output files that cannot be written, or that are the same as another output, one of
/// `inputs`, or standard output. Leaves existing contents unchanged and creates no file.
pub(crate) fn check(outputs: &[&Path], inputs: &[&Path]) -> Result<(), Failure> {
    let mut taken: Vec<Identity> = inputs.iter().filter_map(|path| Identity::of(path)).collect();
    taken.extend(Identity::of_stdout());
    for path in outputs {
        check_writable(path).map_err(|error| {
            Failure::Refused(format!("{} cannot be written: {error}", shown(path)))
        })?;
        // Several outputs may go to /dev/null.
        let Some(identity) = Identity::of(path).filter(|_| *path != Path::new("/dev/null")) else {
            continue;
        };
        if taken.contains(&identity) {
            return Err(Failure::Refused(format!(
                "{} is also another input or output of this command",
                shown(path)
            )));
        }
        taken.push(identity);
    }
    Ok(())
}

fn check_writable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => File::options().append(true).open(path).map(drop),
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // Opening and closing a pipe here would end its reader's input.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            File::options().write(true).create_new(true).open(path)?;
            fs::remove_file(path)
        }
        Err(error) => Err(error),
    }
}

/// Identifies a file independently of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    Existing { device: u64, inode: u64 },
    New { folder: PathBuf, name: PathBuf },
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        if let Ok(found) = fs::metadata(path) {
            return Some(Self::Existing { device: found.dev(), inode: found.ino() });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Self::New { folder, name: path.file_name()?.into() })
    }

    fn of_stdout() -> Option<Self> {
        let copy = stdout().as_fd().try_clone_to_owned().ok()?;
        let found = File::from(copy).metadata().ok()?;
        Some(Self::Existing { device: found.dev(), inode: found.ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::tempdir;

    fn refusal(outputs: &[&Path], inputs: &[&Path]) -> Option<String> {
        match check(outputs, inputs) {
            Ok(()) => None,
            Err(Failure::Refused(sentence)) => Some(sentence),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_file_by_two_names_is_refused() {
        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("old"), "kept").unwrap();
        symlink(path("old"), path("link")).unwrap();
        let [old, link, new, same] = ["old", "link", "new", "./new"].map(path);
        assert_eq!(refusal(&[&old, &new], &[]), None);
        for (outputs, inputs) in [
            (vec![&*old, &*link], vec![]),
            (vec![&*new, &*same], vec![]),
            (vec![&*link], vec![&*old]),
        ] {
            let sentence = refusal(&outputs, &inputs).unwrap();
            assert!(sentence.contains("is also another input or output"), "{sentence}");
        }
        assert_eq!(fs::read_to_string(old).unwrap(), "kept");
        assert!(!new.exists(), "nothing is left behind");
    }

    #[test]
    fn unwritable_outputs_are_refused() {
        let folder = tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("none/file")] {
            assert!(refusal(&[&path], &[]).unwrap().contains("cannot be written"));
        }
        let null = Path::new("/dev/null");
        assert_eq!(refusal(&[null, null], &[]), None);
    }
}
