//! Who listens on a port: nobody tells, and `run` refuses to wait for it.

#[derive(Debug)]
pub struct Listeners;

impl Listeners {
    pub fn on(_: u16) -> Self {
        Self
    }

    pub fn none(&self) -> bool {
        true
    }

    pub fn held_by(&self, _: i32) -> bool {
        false
    }
}
