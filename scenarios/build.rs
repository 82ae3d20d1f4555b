//! Tells the binary what made it: commit, compiler, lock file. A repro names them, and a mismatch is announced.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::process::Command;

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

fn main() {
    println!("cargo:rerun-if-changed=../Cargo.lock");
    println!("cargo:rerun-if-changed=../.git/HEAD");
    println!("cargo:rerun-if-changed=../.git/logs/HEAD");
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=MIRRORLAB_BUILD_COMMIT={commit}");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let toolchain = output(&compiler, &["--version"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=MIRRORLAB_BUILD_RUSTC={toolchain}");
    let mut hasher = DefaultHasher::new();
    std::fs::read("../Cargo.lock").unwrap_or_default().hash(&mut hasher);
    println!("cargo:rustc-env=MIRRORLAB_BUILD_LOCK={:016x}", hasher.finish());
}
