//! What this machine can do.

pub use super::here::machine::checks;

/// Something that `doctor` looks at.
#[derive(Debug)]
pub struct Check {
    pub what: &'static str,
    pub pass: bool,
    /// What follows if it is not so.
    pub cost: String,
}

impl Check {
    pub fn new(what: &'static str, pass: bool, cost: &str) -> Self {
        Self { what, pass, cost: cost.to_owned() }
    }
}
