//! The shape of the code: which crate may use which, where `unsafe` may stand, and what the top level holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the workspace and the one beside it, and which of ours each may use. What is not named here may not be used.
const MAY_USE: [(&str, &str, &[&str]); 15] = [
    ("game", "src/game", &[]),
    ("disk", "src/disk", &[]),
    ("store", "src/store", &["disk"]),
    ("pipeline", "src/pipeline", &["disk"]),
    ("engines", "src/engines", &["game", "ranks", "store"]),
    ("check", "src/check", &["game", "store"]),
    ("oracle", "src/oracle", &["game", "store"]),
    ("exchange", "src/exchange", &["game", "disk", "store", "engines"]),
    ("ranks", "src/ranks", &[]),
    ("processes", "src/processes", &["ranks"]),
    ("stages", "stages", &["game", "disk", "ranks", "store", "pipeline", "engines", "check"]),
    // What the tests of the binary share is a dev-dependency.
    (
        "awari",
        "src/cli",
        &[
            "game",
            "disk",
            "ranks",
            "processes",
            "store",
            "pipeline",
            "engines",
            "check",
            "oracle",
            "exchange",
            "stages",
            "tests",
        ],
    ),
    (
        "tests",
        "tests",
        &["game", "disk", "ranks", "store", "pipeline", "engines", "check", "oracle", "stages", "awari"],
    ),
    // A workspace of its own, which only a nightly toolchain builds.
    ("fuzz", "tests/fuzz", &["tests"]),
    (
        "bench",
        "bench",
        &["game", "disk", "ranks", "store", "pipeline", "engines", "check", "oracle", "stages", "awari"],
    ),
];

/// Crates of others that speak to the operating system, and who may use them: `disk` is the only door to files, `oracle`
/// the only one to the network, `processes` to the other machines of a job.
const DOORS: [(&str, &[&str]); 10] = [
    ("rustix", &["disk"]),
    ("libc", &["disk"]),
    ("nix", &["disk"]),
    ("io-uring", &["disk"]),
    // `engines` takes anonymous memory with it, for large pages.
    ("memmap2", &["disk", "engines"]),
    ("axum", &["oracle"]),
    ("hyper", &["oracle"]),
    ("hyper-util", &["oracle"]),
    ("tokio", &["oracle"]),
    ("mpi", &["processes"]),
];

/// The files that may hold `unsafe` code. One that is not there yet does not matter; one that is not named here does.
const MAY_HOLD_UNSAFE: [&str; 16] = [
    "src/cli/signals.rs",
    "src/disk/bus.rs",
    "src/disk/heap.rs",
    "src/disk/map.rs",
    "src/disk/large.rs",
    "src/disk/uring.rs",
    "src/engines/apply.rs",
    "src/engines/memory.rs",
    "src/engines/simd.rs",
    "src/engines/simd/absent.rs",
    "src/engines/simd/bits.rs",
    "src/engines/simd/rows.rs",
    "src/processes/mpi/library.rs",
    "src/store/codec/rans/avx512.rs",
    "src/store/codec/sparse/avx512.rs",
    "tests/allocations.rs",
];

/// What the top level holds, dotfiles, build outputs and runs aside.
const TOP_LEVEL: [&str; 11] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "stages",
    "manifests",
    "src",
    "tests",
    "bench",
    "docs",
];

/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 8] = ["utils", "util", "common", "helpers", "helper", "manager", "misc", "shared"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the root").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder, build outputs and dotfiles left out.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        let name = name(&path);
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().expect("a listed path has a name").to_string_lossy().into_owned()
}

/// The files of the project below the root, as `src/game/lib.rs`.
fn project_files() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    for folder in ["src", "stages", "tests", "bench", "manifests"] {
        files(&root.join(folder), &mut found);
    }
    let relative = |path: PathBuf| {
        let path = path.strip_prefix(&root).expect("it was found below the root");
        path.to_string_lossy().into_owned()
    };
    found.into_iter().map(relative).collect()
}

/// All dependencies of a manifest, for every target: of every kind, or of all kinds that the program is built from.
fn dependencies(manifest: &toml::Table, kinds: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        match key.as_str() {
            kind if kinds.contains(&kind) => {
                // A renamed dependency is what its package is.
                found.extend(table.iter().map(|(name, spec)| {
                    let package = spec.get("package").and_then(toml::Value::as_str);
                    package.unwrap_or(name).to_owned()
                }));
            }
            "target" => {
                for target in table.values().filter_map(toml::Value::as_table) {
                    found.extend(dependencies(target, kinds));
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn dependencies_point_one_way() {
    let root = root();
    let manifests: BTreeSet<String> = project_files().into_iter().filter(|path| path.ends_with("Cargo.toml")).collect();
    let expected: BTreeSet<String> = MAY_USE.iter().map(|(_, folder, _)| format!("{folder}/Cargo.toml")).collect();
    assert_eq!(manifests, expected, "the crates");

    let ours: BTreeMap<&str, &[&str]> = MAY_USE.iter().map(|&(name, _, uses)| (name, uses)).collect();
    for (crate_name, folder, may_use) in MAY_USE {
        let manifest: toml::Table = read(&root.join(folder).join("Cargo.toml"))
            .parse()
            .unwrap_or_else(|error| panic!("{folder}/Cargo.toml: {error}"));
        assert_eq!(manifest["package"]["name"].as_str(), Some(crate_name), "{folder}");
        for dependency in dependencies(&manifest, &["dependencies", "dev-dependencies", "build-dependencies"]) {
            if ours.contains_key(dependency.as_str()) {
                assert!(
                    may_use.contains(&dependency.as_str()),
                    "`{crate_name}` uses `{dependency}`; it may use {may_use:?}"
                );
            }
        }
        // A test may knock at any door: it drives a browser, say.
        for dependency in dependencies(&manifest, &["dependencies", "build-dependencies"]) {
            let door = DOORS.iter().find(|(name, _)| *name == dependency);
            let is_test = crate_name == "tests" || crate_name == "bench";
            assert!(
                is_test || door.is_none_or(|(_, users)| users.contains(&crate_name)),
                "`{crate_name}` uses `{dependency}`, a door to the operating system that is not its own"
            );
        }
    }
}

/// Rust source without comments, strings and characters, so that what is left is code. Line breaks stay.
fn code_of(source: &str) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if first == '"' {
            quoted(rest)
        } else if let Some(raw) = raw_string(rest).filter(|_| !ends_in_word(&code)) {
            raw
        } else if first == '\'' {
            character(rest).unwrap_or(0)
        } else {
            0
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

fn ends_in_word(code: &str) -> bool {
    code.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a string that starts with a quotation mark.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw string, if one starts here: `r"..."`, `br##"..."##`.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('b').or(text.strip_prefix('c')).unwrap_or(text).strip_prefix('r')?;
    let hashes = after.bytes().take_while(|&byte| byte == b'#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(text.len() - body.len() + length)
}

/// The length of a character literal, if one starts here and not a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next()?;
        let (end, _) = chars.find(|&(_, c)| c == '\'')?;
        return Some(end + 1);
    }
    let (end, last) = chars.next()?;
    (last == '\'').then_some(end + 1)
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

#[test]
fn unsafe_code_stands_in_a_few_files() {
    let root = root();
    let found: BTreeSet<String> = project_files()
        .into_iter()
        .filter(|path| path.ends_with(".rs"))
        .filter(|path| has_word(&code_of(&read(&root.join(path))), "unsafe"))
        .collect();
    let may: BTreeSet<String> = MAY_HOLD_UNSAFE.iter().map(|&path| path.to_owned()).collect();
    let more: Vec<&String> = found.difference(&may).collect();
    assert!(more.is_empty(), "unsafe code in {more:?}");
    for path in may.difference(&found) {
        assert!(!root.join(path).exists(), "{path} holds no unsafe code any more: take it off the list");
    }
}

#[test]
fn what_is_no_code_is_left_out() {
    for hidden in [
        "// unsafe",
        "/* a /* nested */ unsafe */ fn f() {}",
        "let text = \"unsafe \\\" unsafe\";",
        "let text = r#\"an \" unsafe \"#;",
        "let text = br\"unsafe\";",
        "#![deny(unsafe_code)]",
        "#![deny(unsafe_op_in_unsafe_fn)]",
    ] {
        assert!(!has_word(&code_of(hidden), "unsafe"), "{hidden}");
    }
    for shown in [
        "unsafe { f() }",
        "let quote = '\"'; unsafe { f() } // \"",
        "let quote = '\\''; unsafe { f() }",
        "fn f<'a>(x: &'a str) { unsafe {} }",
        "let text = \"\\\\\"; unsafe fn f() {}",
        "let bar = \"r\"; let x = r#unsafe; unsafe impl Send for T {}",
        "/* */ unsafe extern \"C\" {}",
    ] {
        assert!(has_word(&code_of(shown), "unsafe"), "{shown}");
    }
}

#[test]
fn the_top_level_holds_what_it_should() {
    let found = fs::read_dir(root()).expect("the root can be listed");
    let odd: Vec<String> = found
        .map(|entry| name(&entry.expect("the root can be listed").path()))
        .filter(|name| {
            // Build outputs and runs are ignored by git.
            !TOP_LEVEL.contains(&name.as_str()) && !name.starts_with('.') && name != "target" && name != "runs"
        })
        .collect();
    assert!(odd.is_empty(), "the top level holds {odd:?} besides");
}

#[test]
fn names_say_what_is_inside() {
    for path in project_files() {
        for part in path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            assert!(!EMPTY_NAMES.contains(&stem), "{path}: `{stem}` says nothing of what is inside");
        }
    }
}

/// Libraries have `doctest = false`, so that the summary of skipped tests comes last: an example of Rust in a comment would
/// never be compiled.
#[test]
fn no_example_of_rust_stands_in_a_comment() {
    for path in project_files().into_iter().filter(|path| path.ends_with(".rs")) {
        let mut is_open = false;
        for (number, line) in read(&root().join(&path)).lines().enumerate() {
            let text = line.trim_start();
            let text = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
            let Some(language) = text.and_then(|text| text.trim_start().strip_prefix("```")) else { continue };
            is_open = !is_open;
            let is_rust = is_open && (language.is_empty() || language.starts_with("rust"));
            assert!(!is_rust, "{path}:{}: make it a test, or name another language", number + 1);
        }
    }
}

/// A test that returns early without its [`tests::needs::Need`] would be missing from the closing summary.
#[test]
fn tests_are_skipped_by_their_needs_only() {
    let may = ["tests/needs.rs", "tests/what_was_skipped.rs", "tests/architecture.rs"];
    // Crates that `tests` is built on; the probes of `Need` are theirs.
    let below = ["src/disk/real_cases.rs", "src/processes/tests/launched.rs"];
    for path in project_files().into_iter().filter(|path| path.ends_with(".rs")) {
        let is_known = may.contains(&path.as_str()) || below.contains(&path.as_str());
        let text = read(&root().join(&path));
        let says_so =
            |line: &str| line.contains("print") && ["skipped", "not tested"].iter().any(|word| line.contains(word));
        assert!(is_known || !text.lines().any(says_so), "{path}: ask a `Need`, which the summary lists");
    }
}
