//! What this machine can do.

use super::{Ability, can};

pub use super::here::machine::checks;

/// Something that `doctor` looks at.
#[derive(Debug)]
pub struct Check {
    pub what: &'static str,
    pub pass: bool,
    /// What follows if it is not so.
    pub cost: String,
    /// What the build can or cannot do, on whatever machine.
    pub ability: Option<&'static str>,
}

impl Check {
    pub fn new(what: &'static str, pass: bool, cost: &str) -> Self {
        Self { what, pass, cost: cost.to_owned(), ability: None }
    }

    pub fn of_ability(ability: Ability) -> Self {
        Self { ability: Some(ability.name()), ..Self::new(ability.what(), can(ability), ability.cost()) }
    }
}
