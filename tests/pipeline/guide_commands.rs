//! Every command that the README and the guide show: in a block `sh`, it is run by a test, or the line ends
//! with a comment that begins with `# needs`.
//!
//! Commands of CI are in its scripts. The slow tier runs all others, chapter by chapter.

use crate::help_examples::{Desk, shortened};
use std::collections::BTreeMap;
use std::fs;
use tests::directory::copy;
use tests::needs::Need;
use tests::serve_process::ServeProcess;

/// The languages of blocks.
const LANGUAGES: [&str; 8] = ["sh", "text", "toml", "python", "json", "ini", "nginx", "dockerfile"];

/// The first words of commands that belong into a block `sh`.
const PROGRAMS: [&str; 8] = ["awari ", "cargo ", "pip ", "curl ", "mpirun ", "target/", "mdbook ", "$ "];

/// How the guide runs the program without installing it.
const CARGO_RUN: &str = "cargo run --release -- ";

/// How the guide runs the program that injects faults.
const TORTURE: &str = "target/release/torture";

/// Files of commands that CI runs.
const CI_FILES: [&str; 2] = [".ci/run", ".github/workflows/ci.yml"];

/// Chapters that need the 18 stones of `manifests/small.toml`: a build long enough to kill, and a stage of 18
/// stones. The others build 12.
const WITH_EIGHTEEN_STONES: [&str; 2] = ["tutorial.md", "methods.md"];

/// A command of a chapter.
#[derive(Debug)]
struct ShownCommand {
    /// The number of its last line.
    line: usize,
    command: String,
    /// What it needs, if a comment says so.
    needs: Option<String>,
}

/// The README, and the chapters of the guide.
fn chapters() -> BTreeMap<String, String> {
    let mut chapters = BTreeMap::new();
    let files = fs::read_dir(tests::root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for path in files.chain([tests::root().join("README.md"), tests::root().join("src/interface/python/README.md")]) {
        if path.extension() == Some("md".as_ref()) {
            let name = path.strip_prefix(tests::root()).unwrap().to_str().unwrap();
            chapters.insert(name.trim_start_matches("docs/").to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
    chapters
}

/// The blocks of a chapter: language, and numbered lines.
fn blocks(text: &str) -> Vec<(&str, Vec<(usize, &str)>)> {
    let mut blocks = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                blocks.push((language.trim(), Vec::new()));
            }
        } else if is_open {
            blocks.last_mut().unwrap().1.push((number + 1, line));
        }
    }
    blocks
}

/// The commands of a block; those that end in a backslash go on in the next line.
fn commands(lines: &[(usize, &str)]) -> Vec<ShownCommand> {
    let mut commands = Vec::new();
    let mut begun = String::new();
    for &(line, text) in lines {
        if let Some(start) = text.strip_suffix('\\') {
            begun += start.trim();
            begun.push(' ');
            continue;
        }
        let (command, comment) = text.split_once(" # ").unwrap_or((text, ""));
        let needs = comment.strip_prefix("needs ").map(str::to_owned);
        commands.push(ShownCommand { line, command: std::mem::take(&mut begun) + command.trim(), needs });
    }
    commands
}

/// The words of a line of the shell; quotes and redirections are understood as far as the guide has them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// The calls of the program in a line, each with its arguments.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = words(&line.replace(CARGO_RUN, "awari ").replace(';', " ; "));
    let ends = |word: &String| ["|", "||", "&&", "&", ";", ">", "<"].contains(&word.as_str());
    let parts = words.split(ends);
    let start = |part: &[String]| part.iter().position(|word| word == "awari" || word.ends_with("/awari"));
    parts.filter_map(|part| Some(part[start(part)?..].to_vec())).collect()
}

/// Whether the slow tier runs a command.
fn is_run(command: &str) -> bool {
    ["awari ", "printf ", "curl ", CARGO_RUN, TORTURE].iter().any(|program| command.starts_with(program))
}

/// What is wrong with the commands of a chapter.
fn complaints(chapter: &str, text: &str, ci: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (language, lines) in blocks(text) {
        let first = lines.first().map_or(0, |&(number, _)| number);
        if !LANGUAGES.contains(&language) {
            complaints.push(format!("{chapter}:{first}: a block of {language:?}; known are {LANGUAGES:?}"));
        }
        if language != "sh" {
            let is_command = |(_, line): &&(usize, &str)| PROGRAMS.iter().any(|word| line.starts_with(word));
            for (number, line) in lines.iter().filter(is_command) {
                complaints.push(format!("{chapter}:{number}: a command outside a block of sh: {line}"));
            }
            continue;
        }
        for ShownCommand { line, command, needs } in commands(&lines) {
            for call in calls(&command) {
                if let Err(error) = awari::command().try_get_matches_from(&call) {
                    complaints.push(format!("{chapter}:{line}: {command}: {error}"));
                }
            }
            let is_in_ci = ci.lines().any(|line| line.trim().trim_start_matches("- run: ") == command);
            if needs.is_none() && !is_run(&command) && !is_in_ci {
                complaints.push(format!("{chapter}:{line}: no test runs this; add `# needs ...`: {command}"));
            }
        }
    }
    complaints
}

#[test]
fn commands_of_the_guide_are_run_or_say_what_they_need() {
    let ci: String = CI_FILES.iter().map(|path| fs::read_to_string(tests::root().join(path)).unwrap()).collect();
    let chapters = chapters();
    assert!(chapters.len() > 12);
    let found: Vec<String> = chapters.iter().flat_map(|(name, text)| complaints(name, text, &ci)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (shown, is_fine) in [
        ("```sh\nsomething --new\n```\n", false),
        ("```sh\nsomething --new   # needs something\n```\n", true),
        ("```sh\nawari status --dir runs/small\n```\n", true),
        ("```sh\nawari status --nosuch runs/small\n```\n", false),
        ("```sh\nawari status --nosuch runs/small  # needs luck\n```\n", false),
        ("```text\nawari status --dir runs/small\n```\n", false),
        ("```\nawari status --dir runs/small\n```\n", false),
        ("```sh\ncargo test --workspace\n```\n", true),
        ("```sh\ncargo test --workspace --release\n```\n", false),
    ] {
        assert_eq!(complaints("a chapter", shown, &ci).is_empty(), is_fine, "{shown}");
    }
}

#[test]
#[ignore = "slow tier: every command of the guide, a few minutes"]
fn commands_of_the_guide_work() {
    if !Need::Bash.is_met() || !Need::Curl.is_met() {
        return;
    }
    let built = desk("");
    built.run("awari run manifests/small.toml").is(0);
    for (name, text) in chapters() {
        let blocks = blocks(&text).into_iter().filter(|(language, _)| *language == "sh");
        let shown: Vec<ShownCommand> = blocks.flat_map(|(_, lines)| commands(&lines)).collect();
        let shown: Vec<&ShownCommand> = shown.iter().filter(|it| it.needs.is_none() && is_run(&it.command)).collect();
        let desk = desk(&name);
        if !shown.iter().any(|it| it.command.contains("run manifests/small.toml")) {
            copy(&built.0.path("runs"), &desk.0.path("runs"));
        }
        if let Some(manifest) = manifest_to_save(&text) {
            fs::write(desk.0.path("mine.toml"), manifest).unwrap();
        }
        let mut served = None;
        for ShownCommand { line, command, .. } in shown {
            println!("{name}:{line}:");
            let command = shortened(&command.replace(CARGO_RUN, "awari "));
            let command = command.replace(TORTURE, env!("CARGO_BIN_EXE_torture"));
            if command.split(' ').take(2).eq(["awari", "serve"]) {
                served = Some(ServeProcess::of(desk.shell(&format!("exec {command} --listen 127.0.0.1:0"))));
            } else if let Some(request) = command.strip_prefix("curl ") {
                let address = &served.as_ref().expect("the chapter starts a server").address;
                desk.run(&format!("curl --fail --silent {}", request.replace("127.0.0.1:8080", address))).is(0);
            } else {
                desk.run(&command).is(0);
            }
        }
    }
}

/// A directory with the manifests, of fewer stones, so that each build takes seconds.
fn desk(chapter: &str) -> Desk {
    let desk = Desk::new();
    for (manifest, stones) in [("small", 18), ("workstation", 24), ("low-memory", 20), ("book", 16)] {
        if stones == 18 && WITH_EIGHTEEN_STONES.contains(&chapter) {
            continue;
        }
        let path = desk.0.path(&format!("manifests/{manifest}.toml"));
        let text = fs::read_to_string(&path).unwrap();
        let smaller = text.replace(&format!("stones = \"0..{stones}\""), "stones = \"0..12\"");
        assert_ne!(smaller, text, "{manifest} has other stones");
        fs::write(path, smaller).unwrap();
    }
    desk
}

/// The manifest that a chapter tells the reader to save as `mine.toml`.
fn manifest_to_save(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("as `mine.toml`")?;
    let (_, rest) = rest.split_once("```toml\n")?;
    Some(rest.split_once("```")?.0.to_owned())
}

#[test]
fn commands_are_read_from_blocks() {
    let text = "words\n```sh\nawari run a.toml \\\n    --threads 1   # needs a\nawari gc --dir 'a b' | cat && awari doctor  # ok\n```\n";
    let blocks = blocks(text);
    let shown = commands(&blocks[0].1);
    assert_eq!(
        (shown[0].line, &*shown[0].command, shown[0].needs.as_deref()),
        (4, "awari run a.toml --threads 1", Some("a"))
    );
    assert_eq!(shown[1].needs, None);
    assert_eq!(calls(&shown[1].command), [vec!["awari", "gc", "--dir", "a b"], vec!["awari", "doctor"]]);
}
