//! Notes that the program was built to start soon, not to be measured.

/// Returns the assumption of an experiment that measures times of this machine, unless the build is
/// fully optimised.
pub(super) fn note() -> Option<String> {
    (env!("OPT_LEVEL") != "3").then(|| {
        "this program is not fully optimised, so its times are too long: build it with \
         --profile dist"
            .to_owned()
    })
}
