/// Profiles that are part of the program: name and text.
pub(super) const BUILTIN: &[(&str, &str)] = &[
    ("moke", include_str!("../../profiles/moke.toml")),
    ("ideal", include_str!("../../profiles/ideal.toml")),
    ("pm983-kv", include_str!("../../profiles/pm983-kv.toml")),
    ("lightstore", include_str!("../../profiles/lightstore.toml")),
    ("cnex-oc", include_str!("../../profiles/cnex-oc.toml")),
    ("970pro", include_str!("../../profiles/970pro.toml")),
    ("zn540", include_str!("../../profiles/zn540.toml")),
];

/// Returns the names of the built-in profiles.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|&(name, _)| name)
}
