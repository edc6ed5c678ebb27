//! `kvasir device`: lists devices and shows their profiles.

use crate::output::{Failure, Output};
use crate::rig::device_failure;
use crate::table;
use node::profile::builtin_names;
use node::{Device, Profile};
use serde::Serialize;

/// Default seed of the other commands.
const SEED: u64 = 1;

/// A built-in device in a list.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    description: String,
    size_bytes: u64,
}

/// The built-in devices.
pub(crate) fn list(is_json: bool) -> Result<Output, Failure> {
    let devices = builtin_names()
        .map(|name| {
            let profile = load(name)?;
            let size_bytes = profile.namespaces.iter().map(|namespace| namespace.size_bytes).sum();
            Ok(Listed { name, description: profile.description, size_bytes })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    if is_json {
        return Ok(Output::json(&devices));
    }
    let rows = devices
        .into_iter()
        .map(|device| vec![device.name.to_owned(), size(device.size_bytes), device.description]);
    Ok(Output::new(table::list(&["device", "size", "what it is"], rows)))
}

/// Returns the text or the values of the profile `name_or_path`.
pub(crate) fn show(name_or_path: &str, is_json: bool) -> Result<Output, Failure> {
    let text = Profile::text(name_or_path).map_err(Failure::refused)?;
    let profile = Profile::parse(name_or_path, &text).map_err(Failure::refused)?;
    Device::check(&profile, SEED).map_err(device_failure)?;
    if is_json {
        return Ok(Output::json(&profile));
    }
    Ok(Output::new(text.into_owned()))
}

/// Returns the device that `name_or_path` describes.
pub(crate) fn load(name_or_path: &str) -> Result<Profile, Failure> {
    Profile::load(name_or_path).map_err(Failure::refused)
}

/// A size in whole decimal GB, as vendors state it.
fn size(bytes: u64) -> String {
    const GB: u64 = 1_000_000_000;
    format!("{} GB", (bytes + GB / 2) / GB)
}
