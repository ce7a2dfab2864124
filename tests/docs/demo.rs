//! The picture in the README shows what happens.

use crate::scratch::Scratch;

#[test]
fn the_picture_is_of_what_happens() {
    let scratch = Scratch::new("demo");
    let script = crate::path("docs/demo.py");
    // Where there is no Python, CI has it.
    let Ok(drawn) = scratch.command("python3").arg(script).arg("--check").output() else { return };
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
}
