//! The shape of the code: which crate may use which, where `unsafe` may stand, and what the top level holds.

mod imports;

use proc_macro2::{Ident, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of the workspace and the fuzzer: name, folder, and the crates of the workspace that it may use.
const MAY_USE: [(&str, &str, &str); 22] = [
    ("game", "src/base/game", ""),
    ("chart", "src/base/chart", ""),
    ("disk", "src/base/disk", ""),
    ("store", "src/base/store", "disk"),
    ("pipeline", "src/build/pipeline", "disk"),
    ("solvers", "src/build/solvers", "game messaging store"),
    ("check", "src/build/check", "chart game store"),
    ("search", "src/play/search", "game"),
    ("oracle", "src/play/oracle", "game search store"),
    ("book", "src/book", "chart disk game search"),
    ("awari-db", "src/interface/db", "game disk store search oracle"),
    ("server", "src/interface/server", "game store search oracle book"),
    ("exchange", "src/interface/exchange", "game disk store solvers"),
    ("messaging", "src/base/messaging", ""),
    ("mpi-messaging", "src/base/mpi", "messaging"),
    ("planner", "src/build/planner", "game disk store pipeline solvers check book"),
    ("stages", "stages", "game disk messaging store pipeline planner solvers check search book"),
    (
        "awari",
        "src/interface/cli",
        "chart game disk messaging mpi-messaging store pipeline planner solvers check search oracle book server exchange stages",
    ),
    (
        "tests",
        "tests",
        "game disk messaging store pipeline planner solvers check search oracle awari-db book server stages awari",
    ),
    // A workspace of its own, which maturin builds.
    ("awari-python", "src/interface/python", "awari-db book game"),
    // A workspace of its own, which only a nightly toolchain builds.
    ("fuzz", "tests/fuzz", "tests"),
    (
        "bench",
        "bench",
        "game disk messaging store pipeline planner solvers check search oracle book stages awari tests",
    ),
];

/// Crates that call the operating system, and the crates of the workspace that may use them: `disk` is the
/// only door to files, `server` the only one to the network, `mpi-messaging` to the other machines of a job.
const DOORS: [(&str, &[&str]); 11] = [
    ("rustix", &["disk"]),
    ("libc", &["disk"]),
    ("nix", &["disk"]),
    ("io-uring", &["disk"]),
    // `solvers` and `search` take anonymous memory with it, for large pages.
    ("memmap2", &["disk", "solvers", "search"]),
    ("axum", &["server"]),
    ("hyper", &["server"]),
    ("hyper-util", &["server"]),
    ("tokio", &["server"]),
    ("mpi", &["mpi-messaging"]),
    // SQLite reads and writes its files itself.
    ("rusqlite", &["book"]),
];

/// The files that may hold `unsafe` code. One that is not there yet does not matter; one that is not named here does.
const MAY_HOLD_UNSAFE: [&str; 25] = [
    "src/book/tests/failing_disk.rs",
    "src/interface/cli/signals.rs",
    "src/base/disk/heap.rs",
    "src/base/disk/map.rs",
    "src/base/disk/real/queue_memory.rs",
    "src/base/disk/real/ring.rs",
    "src/base/disk/sigbus.rs",
    "src/build/solvers/huge_pages.rs",
    "src/build/solvers/kernels/apply.rs",
    "src/build/solvers/kernels/bits/x86_64.rs",
    "src/build/solvers/kernels/cpu.rs",
    "src/build/solvers/kernels/scores/x86_64.rs",
    "src/base/mpi/library.rs",
    "src/interface/python/extension/mapped.rs",
    "src/play/search/board.rs",
    "src/play/search/board/avx2.rs",
    "src/play/search/features.rs",
    "src/play/search/features/avx2.rs",
    "src/play/search/inference.rs",
    "src/play/search/inference/avx2.rs",
    "src/play/search/memory.rs",
    "src/base/store/codec/rans/avx512.rs",
    "src/base/store/codec/sparse/avx512.rs",
    "src/base/store/codec/sparse/bmi2.rs",
    "tests/hostile/allocations.rs",
];

/// What the top level holds, dotfiles, build outputs and runs aside.
const TOP_LEVEL: [&str; 13] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
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

/// The files of the project below the root, as `src/base/game/lib.rs`.
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

    let ours: BTreeSet<&str> = MAY_USE.iter().map(|&(name, ..)| name).collect();
    for (crate_name, folder, may_use) in MAY_USE {
        let manifest: toml::Table = read(&root.join(folder).join("Cargo.toml"))
            .parse()
            .unwrap_or_else(|error| panic!("{folder}/Cargo.toml: {error}"));
        // The package of a published crate has a longer name than its library.
        let package = manifest["package"]["name"].as_str();
        let library = manifest.get("lib").and_then(|library| library.get("name")?.as_str());
        let is_published = package == Some(&format!("awari-{crate_name}")) && library == Some(crate_name);
        assert!(package == Some(crate_name) || is_published, "{folder} is {package:?} with the library {library:?}");
        for dependency in dependencies(&manifest, &["dependencies", "dev-dependencies", "build-dependencies"]) {
            let published = dependency.strip_prefix("awari-").filter(|library| ours.contains(library));
            let dependency = published.unwrap_or(&dependency);
            if ours.contains(dependency) {
                assert!(
                    may_use.split(' ').any(|used| used == dependency),
                    "`{crate_name}` uses `{dependency}`; it may use {may_use}"
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

/// The tokens of a Rust file.
fn tokens(path: &Path) -> TokenStream {
    read(path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn has_unsafe(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "unsafe",
        TokenTree::Group(group) => has_unsafe(group.stream()),
        _ => false,
    })
}

/// The root files of a crate's library, programs, tests and benches.
fn root_files(folder: &str) -> BTreeSet<PathBuf> {
    let folder = root().join(folder);
    let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().expect("another test reads it");
    let path_of = |target: &toml::Value| Some(folder.join(target.get("path")?.as_str()?));
    let lists = ["bin", "test", "bench", "example"].into_iter().filter_map(|kind| manifest.get(kind)?.as_array());
    lists.flatten().chain(manifest.get("lib")).filter_map(path_of).collect()
}

#[test]
fn no_files_of_a_crate_form_an_import_cycle() {
    let mut found = String::new();
    for (_, folder, _) in MAY_USE {
        let cycles = root_files(folder).into_iter().flat_map(|root| imports::cycles(&root));
        cycles.for_each(|cycle| found += &format!("{folder}: {cycle}\n"));
    }
    assert!(found.is_empty(), "cycles of imports:\n{found}");
}

/// The root of a crate is its face, and stands above all of its files. None of them goes through it to another.
#[test]
fn no_file_imports_through_the_root_of_its_crate() {
    let folders = MAY_USE.iter().map(|(_, folder, _)| folder);
    let found: Vec<String> =
        folders.flat_map(|folder| root_files(folder)).flat_map(|root| imports::through_root(&root)).collect();
    assert!(found.is_empty(), "import these from the module that declares them:\n{}", found.join("\n"));
}

/// Adds the names of the types that are declared among tokens.
fn add_types(tokens: TokenStream, names: &mut Vec<String>) {
    let declares = |ident: &Ident| ["enum", "struct", "trait", "union"].iter().any(|word| ident == word);
    let mut is_declaration = false;
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) if is_declaration => names.push(ident.to_string()),
            TokenTree::Group(group) => add_types(group.stream(), names),
            _ => {}
        }
        is_declaration = matches!(&token, TokenTree::Ident(ident) if declares(ident));
    }
}

/// Whether a file is Rust of the program, not of the libraries for other programs: these have names and
/// examples of their own.
fn is_internal(path: &str) -> bool {
    let is_library = ["src/interface/db/", "src/interface/python/"].iter().any(|folder| path.starts_with(folder));
    path.ends_with(".rs") && !is_library
}

#[test]
fn a_type_name_has_one_meaning() {
    let root = root();
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in project_files().into_iter().filter(|path| is_internal(path)) {
        let mut types = Vec::new();
        add_types(tokens(&root.join(&path)), &mut types);
        types.into_iter().for_each(|name| declared.entry(name).or_default().push(path.clone()));
    }
    declared.retain(|_, paths| paths.len() > 1);
    assert!(declared.is_empty(), "declared more than once: {declared:#?}");
}

#[test]
fn unsafe_code_is_in_listed_files_only() {
    let root = root();
    let found: BTreeSet<String> = project_files()
        .into_iter()
        .filter(|path| path.ends_with(".rs"))
        .filter(|path| has_unsafe(tokens(&root.join(path))))
        .collect();
    let may: BTreeSet<String> = MAY_HOLD_UNSAFE.iter().map(|&path| path.to_owned()).collect();
    let more: Vec<&String> = found.difference(&may).collect();
    assert!(more.is_empty(), "unsafe code in {more:?}");
    for path in may.difference(&found) {
        assert!(!root.join(path).exists(), "{path} holds no unsafe code: remove it from the list");
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

/// `cargo fmt` leaves comments alone. Rows of tables, and the help of the command line, which clap wraps, may be
/// longer.
#[test]
fn comments_fit_the_width_of_the_code() {
    let is_help = |path: &String| path.starts_with("src/interface/cli/args");
    for path in project_files().into_iter().filter(|path| path.ends_with(".rs") && !is_help(path)) {
        for (number, line) in read(&root().join(&path)).lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//") && !line.contains("| ");
            assert!(!is_comment || line.chars().count() <= 120, "{path}:{}: wrap this comment", number + 1);
        }
    }
}

/// Libraries have `doctest = false`, so that the summary of skipped tests comes last: an example of Rust in a
/// comment would never be compiled. The few examples of `src/interface/db` are run after the summary.
#[test]
fn comments_hold_no_rust_examples() {
    for path in project_files().into_iter().filter(|path| is_internal(path)) {
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

#[test]
fn the_architecture_guide_names_files_that_exist() {
    let root = root();
    let guide = read(&root.join("docs/architecture.md"));
    let files = project_files();
    let texts = || guide.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| ["src/", "stages/", "tests/"].iter().any(|folder| text.starts_with(folder));
    assert!(texts().filter(is_path).count() > 40, "the tours name files");
    for path in texts().filter(is_path) {
        assert!(root.join(path).exists(), "docs/architecture.md names {path}");
    }
    // Others are beside one that is named before.
    let is_file = |text: &&str| [".rs", ".js", ".py", ".toml"].iter().any(|extension| text.ends_with(extension));
    for name in texts().filter(is_file).filter(|text| !is_path(text)) {
        let is_it = |path: &String| path == name || path.ends_with(&format!("/{name}"));
        assert!(files.iter().any(is_it), "docs/architecture.md names {name}");
    }
    let sources = files.into_iter().filter(|path| path.ends_with(".rs"));
    let code: String = sources.map(|path| read(&root.join(path))).collect();
    for name in guide.split('`').skip(1).step_by(2).filter_map(|text| text.rsplit_once("::")).map(|(_, name)| name) {
        let is_declared =
            ["fn ", "pub ", "struct ", "enum ", "const "].iter().any(|word| code.contains(&format!("{word}{name}")));
        assert!(is_declared, "docs/architecture.md names {name}");
    }
}

/// The anchors of a chapter, as mdBook and GitHub make them of its headings.
fn anchors(chapter: &str) -> Vec<String> {
    let mut is_code = false;
    let headings = chapter.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_of_the_guide_lead_to_files_and_headings() {
    let root = root();
    let mut texts = Vec::new();
    files(&root.join("docs"), &mut texts);
    texts.retain(|path| path.extension() == Some("md".as_ref()));
    assert!(texts.len() > 10, "the guide has chapters");
    texts.push(root.join("README.md"));
    for path in texts {
        let text = read(&path);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains(':')) {
            let (name, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if name.is_empty() { path.clone() } else { path.with_file_name(name) };
            assert!(file.is_file(), "{} links to {target}", path.display());
            let is_there = anchor.is_empty() || anchors(&read(&file)).iter().any(|found| found == anchor);
            assert!(is_there, "{} links to {target}", path.display());
        }
    }
}

/// The package of a published crate has the texts of its licences: links to those of the repository.
#[test]
fn published_crates_have_their_licences() {
    let manifests: Vec<_> = project_files().into_iter().filter(|path| path.ends_with("Cargo.toml")).collect();
    let published = manifests.iter().filter(|path| read(&root().join(path)).contains("\npublish = true"));
    let mut count = 0;
    for manifest in published {
        count += 1;
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let found = root().join(manifest).with_file_name(name);
            assert_eq!(read(&found), read(&root().join(name)), "{}", found.display());
        }
    }
    assert!(count >= 6, "{count} crates are published");
}

/// Names of the planner that decide or predict. A stage reads its plan.
const DECISIONS: [&str; 5] = ["CostModel", "Load", "Rates", "DatabasePlan::by", "by_each_method"];

#[test]
fn no_stage_asks_the_cost_model() {
    for path in project_files().into_iter().filter(|path| path.starts_with("stages/") && path.ends_with(".rs")) {
        let text = read(&root().join(&path));
        let asks = |name: &&&str| {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            text.match_indices(**name)
                .any(|(at, name)| !text[..at].ends_with(is_word) && !text[at + name.len()..].starts_with(is_word))
        };
        assert_eq!(DECISIONS.iter().find(asks), None, "{path}: stages read a plan, and never decide");
    }
}

/// Text that asks for the kind of a stage, or makes the name of one.
const USES_OF_KINDS: [&str; 3] = ["kind()", "StageName::new(", "kind ="];

/// A kind of stage is known by its name in one module of `stages` only.
#[test]
fn no_file_names_a_kind_of_another_module() {
    let words: Vec<String> =
        stages::kinds::patterns().map(|pattern| pattern.split(':').next().unwrap_or_default().to_owned()).collect();
    assert!(words.len() > 10, "the kinds");
    let mut modules = BTreeMap::new();
    for path in project_files().into_iter().filter(|path| path.ends_with(".rs")) {
        let is_program = path.starts_with("stages/") || path.starts_with("src/");
        let is_toy = path.starts_with("src/build/pipeline/toy.rs") || path.starts_with("src/interface/python");
        if !is_program || is_toy {
            continue;
        }
        let text = read(&root().join(&path));
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in &words {
            let literal = format!("\"{word}\"");
            let declarations = [format!("const KIND: &str = {literal}"), format!("    word: {literal},\n")];
            if declarations.iter().any(|declaration| text.contains(declaration)) {
                assert_eq!(modules.insert(word.clone(), path.clone()), None, "{word} has two modules");
                continue;
            }
            let mut lines = text.lines().filter(|line| line.contains(&literal));
            let line = lines.find(|line| USES_OF_KINDS.iter().any(|text| line.contains(text)));
            assert_eq!(line, None, "{path}: ask `stages::kinds`, which knows stages by name");
        }
    }
    assert_eq!(modules.len(), words.len(), "modules of kinds: {modules:?}");
}

/// The crates that a program needs which reads databases and asks for no feature of `awari-db`.
const READER_CRATES_MAX: usize = 25;

#[test]
fn a_reader_needs_few_crates() {
    let tree = |features: &str| -> BTreeSet<String> {
        let mut tree = Command::new(env!("CARGO"));
        tree.args([
            "tree",
            "--offline",
            "--package",
            "awari-db",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--no-dedupe",
        ]);
        let out = tree.args(["--features", features]).current_dir(root()).output().expect("Cargo runs this test");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let names = String::from_utf8_lossy(&out.stdout);
        names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let needed = tree("");
    assert!(needed.contains("awari-store") && needed.len() <= READER_CRATES_MAX, "{}: {needed:#?}", needed.len());
    let of_features = [("engine", "awari-search"), ("threads", "rayon"), ("zstd", "zstd")];
    for (feature, name) in of_features {
        assert!(!needed.contains(name) && tree(feature).contains(name), "{name}");
    }
    for name in ["io-uring", "serde", "strum", "book", "server"] {
        assert!(!needed.contains(name), "{name}");
    }
}

/// A test that returns early without its [`tests::needs::Need`] would be missing from the closing summary.
#[test]
fn tests_are_skipped_for_a_need_only() {
    let may = ["tests/support/needs.rs", "tests/what_was_skipped.rs", "tests/architecture/main.rs"];
    // Crates that `tests` is built on; the probes of `Need` are theirs.
    let below = ["src/base/disk/real/tests/io_modes.rs", "src/base/mpi/tests/launched.rs"];
    for path in project_files().into_iter().filter(|path| path.ends_with(".rs")) {
        let is_known = may.contains(&path.as_str()) || below.contains(&path.as_str());
        let text = read(&root().join(&path));
        let says_so =
            |line: &str| line.contains("print") && ["skipped", "not tested"].iter().any(|word| line.contains(word));
        assert!(is_known || !text.lines().any(says_so), "{path}: ask a `Need`, which the summary lists");
    }
}
