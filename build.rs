//! Names the commit in `--version`, where there is one: a build from a tarball has only its version.

use std::process::Command;

#[allow(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]
fn main() {
    println!("cargo::rerun-if-changed=.git/HEAD");
    println!("cargo::rerun-if-changed=.git/refs/heads");
    let version = env!("CARGO_PKG_VERSION");
    let commit = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|hash| format!("{version} ({})", hash.trim()));
    println!("cargo::rustc-env=OUTLIVE_VERSION={}", commit.unwrap_or_else(|| version.to_owned()));
}
