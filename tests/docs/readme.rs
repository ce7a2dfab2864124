//! The examples of the README, run as they stand.

use crate::scratch::Scratch;

/// The fenced code blocks of one language.
pub(crate) fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(word)) => open = Some((word == language, String::new())),
            (None, None) => {}
            (Some(_), Some(_)) => {
                found.extend(open.take().filter(|(wanted, _)| *wanted).map(|(_, block)| block))
            }
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    found
}

/// A reader goes through the page from top to bottom, so the blocks share one home.
#[test]
fn the_examples_run() {
    let scratch = Scratch::new("readme");
    let blocks = blocks(&crate::read("README.md"), "sh");
    assert!(blocks.len() > 5);
    let mut printed = String::new();
    for block in blocks {
        let output = scratch.command("sh").args(["-e", "-c", &block]).output().unwrap();
        assert!(
            output.status.success(),
            "{}\n{block}\nstdout: {}\nstderr: {}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    // What the comments promise.
    for line in ["it ended with 3", "hello", "part one", "the tests pass", "ended with status 0", "step 2"] {
        assert!(printed.lines().any(|printed| printed == line), "'{line}' was not printed:\n{printed}");
    }
}

#[test]
fn blocks_are_told_apart() {
    let text = "```sh\na\nb\n```\n```text\nc\n```\nd\n```sh\n```\n";
    assert_eq!(blocks(text, "sh"), ["a\nb\n", ""]);
    assert_eq!(blocks(text, "text"), ["c\n"]);
}
