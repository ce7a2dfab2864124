#[allow(clippy::disallowed_methods, reason = "this is where the process ends")]
fn main() {
    std::process::exit(outlive::run().into());
}
