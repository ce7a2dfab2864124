//! Names the commit in `--version`, where there is one: a build from a tarball has only its version. Has a release
//! arranged by order.ld (benches/order).

use std::env;
use std::path::Path;
use std::process::Command;

#[allow(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    // A tarball may be unpacked inside another repository, whose commit is none of ours.
    let commit = Path::new(".git").exists().then(commit).flatten();
    let commit = commit.map(|hash| format!("{version} ({hash})"));
    println!("cargo::rustc-env=OUTLIVE_VERSION={}", commit.unwrap_or_else(|| version.to_owned()));
    println!("cargo::rerun-if-changed=order.ld");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    let order = Path::new(env!("CARGO_MANIFEST_DIR")).join("order.ld");
    println!("cargo::rerun-if-env-changed=OUTLIVE_LINK_MAP");
    if let Ok(map) = env::var("OUTLIVE_LINK_MAP") {
        println!("cargo::rustc-link-arg-bins=-Wl,-Map={map}");
    }
    let linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if linux && is("PROFILE", "release") && order.exists() {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", order.display());
    }
}

#[allow(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]
fn commit() -> Option<String> {
    println!("cargo::rerun-if-changed=.git/HEAD");
    println!("cargo::rerun-if-changed=.git/refs/heads");
    let output = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output().ok()?;
    let hash = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| hash.trim().to_owned())
}
