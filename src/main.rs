//! The Rust runtime looks up the bounds of the stack in /proc/self/maps before `main`, which takes an eighth of a
//! bare program's start. Where the C library can hand over the arguments without it, `main` is our own.

#![cfg_attr(all(target_os = "linux", target_env = "gnu", not(feature = "portable")), no_main)]

#[cfg(all(target_os = "linux", target_env = "gnu", not(feature = "portable")))]
// SAFETY: the one `main` of the program, with a signature the C library calls it by.
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    outlive::sys::start::without_runtime();
    end(outlive::run())
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(feature = "portable"))))]
fn main() {
    end(outlive::run())
}

#[allow(clippy::disallowed_methods, reason = "this is where the process ends")]
fn end(status: u8) -> ! {
    std::process::exit(status.into())
}
