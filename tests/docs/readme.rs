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

/// `make install` lays the documents out as they lie here, with their links.
#[test]
fn links_lead_to_what_is_installed() {
    let makefile = crate::read("Makefile");
    let documents = makefile.lines().find_map(|line| line.strip_prefix("DOCS = ")).unwrap();
    let at_the_top: Vec<&str> = documents.split(' ').filter(|word| crate::path(word).is_file()).collect();
    assert!(at_the_top.contains(&"README.md") && documents.ends_with("$(shell find docs -type f)"));
    let mut pages: Vec<String> = at_the_top.iter().map(|&name| name.to_owned()).collect();
    for directory in ["docs", "docs/recipes"] {
        let entries = std::fs::read_dir(crate::path(directory)).unwrap();
        pages.extend(entries.map(|entry| format!("{directory}/{}", entry.unwrap().file_name().display())));
    }
    let mut links = 0;
    for page in pages.iter().filter(|page| page.ends_with(".md")) {
        for link in crate::read(page).split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let mut path = std::path::PathBuf::from(page);
            path.pop();
            for part in link.split('/') {
                if part == ".." {
                    path.pop();
                } else {
                    path.push(part)
                }
            }
            let installed =
                path.starts_with("docs") || at_the_top.iter().any(|&name| path.as_os_str() == name);
            assert!(installed && crate::path(path.to_str().unwrap()).exists(), "{page}: {link}");
            links += 1;
        }
    }
    assert!(links > 30, "{links}");
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
