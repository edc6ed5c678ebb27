//! Path of a figure, as the options that draw one accept it.

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::OsString;
use std::path::PathBuf;

/// Accepts a path that ends in `.svg`, or a path without an extension, such as a pipe.
pub(super) fn figure_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(checked)
}

fn checked(text: OsString) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    match extension {
        Some(other) if !other.eq_ignore_ascii_case("svg") => {
            Err(format!("figures are drawn as SVG, not as {other}: give a path that ends in .svg"))
        }
        _ => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_svg_is_an_extension_of_a_figure() {
        for accepted in ["a.svg", "A.SVG", "figures/a.b.svg", "/dev/null", "a"] {
            assert_eq!(checked(accepted.into()), Ok(accepted.into()));
        }
        for refused in ["a.png", "a.svg.pdf", "a.svgz", "figures.svg/a.b"] {
            assert!(checked(refused.into()).unwrap_err().contains("ends in .svg"), "{refused}");
        }
    }
}
