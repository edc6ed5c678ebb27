//! Passes the level of optimisation to the program, which says so beside times of this machine.

fn main() {
    let level = std::env::var("OPT_LEVEL").expect("cargo sets OPT_LEVEL for build scripts");
    println!("cargo::rustc-env=OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
