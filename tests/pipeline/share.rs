//! The manual pages and completions that a release has in its folder `share`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use tests::directory::{CommandResult, TestDirectory, ended};
use tests::needs::Need;

/// Types `awari pro` and a tabulator, as a user whose `fpath` has the folder.
const TYPE_IN_ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($PWD/share/zsh/site-functions \$fpath); autoload -U compinit; compinit -u -D"
zpty -w -n shell $'awari pro\t'
zpty -r -m shell text '*awari probe*' && print completed
zpty -d shell
"#;

/// A directory with the folder `share`, and the program in `bin`.
fn written() -> TestDirectory {
    let place = TestDirectory::new(1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_share-under-test"));
    command.arg(place.path("share"));
    ended(command).is(0);
    fs::create_dir(place.path("bin")).unwrap();
    symlink(tests::awari(), place.path("bin/awari")).unwrap();
    place
}

/// Runs a command in the directory, with the program on the path.
fn run(place: &TestDirectory, words: &[&str]) -> CommandResult {
    let mut command = Command::new("timeout");
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    command.arg("60").args(words).current_dir(place.path("")).env("PATH", path).stdin(Stdio::null());
    ended(command)
}

/// The sections of a page.
fn sections(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix(".SH ")).map(|name| name.trim_matches('"')).collect()
}

#[test]
fn the_program_and_each_subcommand_have_a_manual_page() {
    let place = written();
    let mut program = awari::command().disable_help_subcommand(true);
    program.build();
    assert!(program.get_subcommands().count() > 20);
    let mut expected = Vec::new();
    let of_parts =
        program.get_subcommands().flat_map(clap::Command::get_subcommands).filter(|part| part.get_name() != "help");
    for command in [&program].into_iter().chain(program.get_subcommands()).chain(of_parts) {
        let file = format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()));
        let path = place.path("share/man/man1").join(&file);
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(page.starts_with(".TH awari"), "{file}");
        let mut needed = vec!["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"];
        needed.extend(match (command.get_name(), command.has_subcommands()) {
            ("awari", _) => ["SUBCOMMANDS", "EXIT CODES"],
            (_, true) => ["SUBCOMMANDS", "SEE ALSO"],
            (_, false) => ["GLOBAL OPTIONS", "SEE ALSO"],
        });
        for section in needed {
            assert!(sections(&page).contains(&section), "{file} has no section {section}");
        }
        assert!(["EXAMPLE", "EXAMPLES"].iter().any(|name| sections(&page).contains(name)), "{file}");
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let name = option.get_long().map(|long| format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-")));
            let name = name.unwrap_or_else(|| option.get_value_names().unwrap()[0].to_string());
            assert!(page.contains(&name), "{file} has no {name}");
        }
        expected.push(file);
    }
    expected.sort();
    let mut found: Vec<String> = fs::read_dir(place.path("share/man/man1")).unwrap().map(name).collect();
    found.sort();
    assert_eq!(found, expected);
    if Need::Man.is_met() {
        found.iter().for_each(|file| check_formatted(&place, file));
    }
}

fn name(entry: std::io::Result<fs::DirEntry>) -> String {
    entry.unwrap().file_name().into_string().unwrap()
}

/// Compares a page, as `man` shows it, with the help text.
fn check_formatted(place: &TestDirectory, file: &str) {
    let path = Path::new("share/man/man1").join(file);
    let shown =
        run(place, &["env", "LC_ALL=C.UTF-8", "MANWIDTH=200", "man", "--warnings", "-l", path.to_str().unwrap()]).is(0);
    assert_eq!(shown.err, "", "{file}");
    let command = file
        .strip_suffix(".1")
        .unwrap()
        .split_once('-')
        .map_or("--help".to_owned(), |(_, name)| format!("help {}", name.replacen("book-", "book ", 1)));
    let help = place.awari(&command).is(0).out;
    let (_, examples) = help.split_once("\nExample").unwrap();
    for line in examples.lines().skip(1).take_while(|line| !line.is_empty()) {
        assert!(shown.out.contains(line), "{file} does not show {line}");
    }
}

#[test]
fn completions_work_in_bash() {
    if !Need::Bash.is_met() {
        return;
    }
    let place = written();
    let script = "source share/bash-completion/completions/awari
        COMP_WORDS=(awari pro) COMP_CWORD=1 COMP_TYPE=9
        _clap_complete_awari awari pro awari 2>/dev/null
        complete -p awari
        echo \"${COMPREPLY[@]}\"";
    let shown = run(&place, &["bash", "--norc", "-c", script]).is(0).out;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains("-F _clap_complete_awari awari"), "{shown}");
    assert_eq!(lines[1].trim(), "probe", "{shown}");
}

/// The first completion is that of the function that zsh loads from the file.
#[test]
fn completions_work_in_zsh() {
    if Need::Zsh.is_met() {
        let place = written();
        run(&place, &["zsh", "-f", "-c", TYPE_IN_ZSH]).is(0).shows(&["completed"]);
    }
}

#[test]
fn completions_work_in_fish() {
    if Need::Fish.is_met() {
        let place = written();
        let script = "source share/fish/vendor_completions.d/awari.fish; complete -C 'awari pro'";
        run(&place, &["fish", "--no-config", "-c", script]).is(0).shows(&["probe\t"]);
    }
}
