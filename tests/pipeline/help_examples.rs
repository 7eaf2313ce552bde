//! Runs every example of every help text in a shell, in order, in a directory with the manifests of the repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tests::directory::{CommandResult, TestDirectory, copy, ended, ended_child};
use tests::needs::Need;
use tests::serve_process::ServeProcess;

/// Eight stones.
const GAME: &str = "[Event \"an example\"]\n[FEN \"0-1-0-2-0-1-1-0-2-0-1-0-20-20-S\"]\n\n1. D2 a1 2. F2x2\n";

/// Stub of `sbatch`, which checks that its argument is a script.
const SBATCH: &str = "#!/bin/sh\nfor last; do :; done\ntest -f \"$last\" || last=/dev/stdin\nbash -n \"$last\"\n";

/// Time after which a process counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

fn awari(line: &str) -> String {
    let mut command = Command::new(tests::awari());
    command.args(line.split(' '));
    ended(command).is(0).out
}

/// The names of the subcommands, and of theirs, from the lists of the help.
fn subcommands() -> Vec<String> {
    let names = listed(&awari("--help"));
    let all = names.into_iter().flat_map(|name| {
        let parts = listed(&awari(&format!("{name} --help")));
        let parts = parts.into_iter().map(|part| format!("{name} {part}"));
        [name.clone()].into_iter().chain(parts).collect::<Vec<_>>()
    });
    all.collect()
}

/// The names in the list of a help text; none without a list.
fn listed(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

/// The examples in a help text.
fn examples(help: &str) -> Vec<String> {
    let heading = ["\nExamples:\n", "\nExample:\n"].into_iter().find_map(|heading| help.split_once(heading));
    let (_, rest) = heading.unwrap_or_else(|| panic!("no examples in {help}"));
    let lines: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
    let mut commands: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix("    "), commands.last_mut()) {
            (Some(more), Some(command)) => {
                assert!([" \\", " |", " &&"].iter().any(|end| command.ends_with(end)), "{command} is not continued");
                *command = format!("{} {more}", command.strip_suffix(" \\").unwrap_or(command));
            }
            _ => commands.push(line.trim().to_owned()),
        }
    }
    let is_command =
        |line: &String| ["awari ", "curl ", "printf ", "source "].iter().any(|word| line.starts_with(word));
    assert!(commands.iter().all(is_command), "too long, or not a command: {commands:?}");
    commands
}

/// A directory as that of the repository is after the first command of the README.
pub(crate) struct Desk(pub(crate) TestDirectory);

impl Desk {
    /// The manifests, and the program on the path.
    pub(crate) fn new() -> Desk {
        let place = TestDirectory::new(1);
        let manifests = tests::root().join("manifests");
        copy(&manifests, &place.path("manifests"));
        fs::create_dir(place.path("bin")).unwrap();
        symlink(tests::awari(), place.path("bin/awari")).unwrap();
        fs::write(place.path("bin/sbatch"), SBATCH).unwrap();
        fs::set_permissions(place.path("bin/sbatch"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path("game.ogn"), GAME).unwrap();
        Desk(place)
    }

    /// The same with the runs of another.
    fn with_runs_of(other: &Desk) -> Desk {
        let desk = Desk::new();
        copy(&other.0.path("runs"), &desk.0.path("runs"));
        desk
    }

    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        let path = format!("{}:{}", self.0.path("bin").display(), std::env::var("PATH").unwrap());
        command.args(["-c", line]).current_dir(self.0.path("")).env("PATH", path).env_remove("AWARI_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, line: &str) -> CommandResult {
        println!("{line}");
        ended(self.shell(line))
    }

    /// A run of `manifests/small.toml` under way.
    fn start(&self, options: &str) -> Child {
        let run = self.shell(&format!("exec awari run manifests/small.toml --threads 1 {options}")).spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        while !self.run("awari status --dir runs/small --json").out.contains("\"running\"") {
            assert!(Instant::now() < end, "the run never begins");
            std::thread::sleep(Duration::from_millis(20));
        }
        run
    }
}

/// The examples of the program itself, which build databases; each subcommand has some of its own.
#[test]
fn every_subcommand_has_examples() {
    for name in subcommands() {
        let work = format!("awari {name}");
        let examples = examples(&awari(&format!("{name} --help")));
        assert!(examples.iter().any(|line| line.contains(&work)), "no example of {name} is one: {examples:?}");
    }
    if Need::Bash.is_met() {
        let desk = Desk::new();
        for line in examples(&awari("--help")) {
            desk.run(&line).is(0);
        }
    }
}

#[test]
#[ignore = "slow tier: a hundred commands"]
fn every_example_of_every_help_text_works() {
    if !Need::Bash.is_met() {
        return;
    }
    let built = Desk::new();
    for line in examples(&awari("--help")) {
        built.run(&line).is(0);
    }
    for name in subcommands() {
        let desk = Desk::with_runs_of(&built);
        let examples = examples(&awari(&format!("{name} --help")));
        if name.starts_with("book ") {
            desk.run("awari book expand --dir runs/quickstart --positions 300 --nodes 2000").is(0);
        }
        match name.as_str() {
            "serve" => serve(&desk, &examples),
            _ => examples.iter().for_each(|line| example(&desk, line)),
        }
    }
}

fn example(desk: &Desk, line: &str) {
    if line.contains("awari stop") {
        let run = desk.start("");
        desk.run(line).is(0);
        ended_child(run).is(75);
    } else if line.contains("--watch") {
        let run = desk.start("--until sweep:13");
        desk.run(line).is(0);
        ended_child(run).is(0);
    } else if line == "awari restore --from archives --dir runs/again" {
        desk.run("awari archive --dir runs/quickstart --out archives").is(0);
        desk.run(line).is(0);
    } else {
        desk.run(&shortened(line)).is(0);
    }
}

/// A command that takes seconds: certificates of few stones, plans of a job of fewer, a build of fewer, and a
/// small book.
pub(crate) fn shortened(command: &str) -> String {
    if command.starts_with("awari verify ") && command.ends_with(" --certify") {
        return command.replace(" --stones 0..12", "") + " --stones 0..8";
    }
    let mut command = command.to_owned();
    for (long, short) in [
        ("--stones 0..48 --ranks 64", "--stones 0..36 --ranks 64"),
        ("--stones 42..48 --ranks 64", "--stones 30..36 --ranks 64"),
        ("--stones 40..42 --ranks 64", "--stones 34..36 --ranks 64"),
        ("awari.toml --ranks 72", "awari.toml --ranks 72 --set build.stones=0..30"),
        ("build.stones=0..15", "build.stones=0..12"),
        ("process:15:", "process:12:"),
        ("run manifests/book.toml", "run manifests/book.toml --set book.positions=1000 --set book.search=nodes=2000"),
    ] {
        command = command.replace(long, short);
    }
    command
}

/// Starts the servers on free ports, and sends them the requests of the examples with `curl`.
fn serve(desk: &Desk, examples: &[String]) {
    let (servers, questions): (Vec<&String>, Vec<&String>) =
        examples.iter().partition(|line| line.starts_with("awari serve "));
    assert!(!servers.is_empty() && !questions.is_empty());
    for line in servers {
        let line = match line.split_once(" --listen ") {
            Some((line, address)) => format!("{line} --listen {}:0", address.split(':').next().unwrap()),
            None => format!("{line} --listen 127.0.0.1:0"),
        };
        let served = ServeProcess::of(desk.shell(&format!("exec {line}")));
        for question in &questions {
            let (url, query) = question.strip_prefix("curl -G http://").unwrap().split_once(" -d ").unwrap();
            let (_, path) = url.split_once('/').unwrap();
            assert_eq!(served.json(&format!("/{path}?{query}"))["stones"], 3, "{question}");
        }
    }
}
