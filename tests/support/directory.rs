//! A temporary directory in which tests run the program, and the result of a command.

use crate::awari;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The exit codes of the manual.
const EXIT_CODES: [i32; 13] = [0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 75, 130];

/// A temporary directory with a manifest `m.toml` that builds into `run`.
pub struct TestDirectory(tempfile::TempDir);

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct CommandResult {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl TestDirectory {
    /// A manifest for databases of 0 to `stones` stones.
    pub fn new(stones: u32) -> TestDirectory {
        let place = TestDirectory(tempfile::tempdir().unwrap());
        place.manifest(&format!(
            "[build]\nstones = \"0..{stones}\"\nmemory = \"256 MiB\"\nthreads = 2\n\n\
             [check]\nverify = \"full\"\n\n[run]\ndir = \"run\"\n"
        ));
        place
    }

    /// The same, with the databases built.
    pub fn built(stones: u32) -> TestDirectory {
        let place = TestDirectory::new(stones);
        place.awari("run m.toml").is(0);
        place
    }

    /// Writes the manifest.
    pub fn manifest(&self, text: &str) {
        fs::write(self.path("m.toml"), text).unwrap();
    }

    /// The path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program with arguments, to be run in the directory. Spaces separate arguments, but not within single quotes.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(awari());
        for (number, part) in line.split('\'').enumerate() {
            if number % 2 == 0 {
                command.args(part.split(' ').filter(|word| !word.is_empty()))
            } else {
                command.arg(part)
            };
        }
        command.current_dir(self.0.path()).stdin(Stdio::null()).env_remove("AWARI_DIR");
        command
    }

    /// Runs the program.
    pub fn awari(&self, line: &str) -> CommandResult {
        ended(self.command(line))
    }

    /// Runs a shell script, which finds the path of the program in `$AWARI`.
    pub fn shell(&self, script: &str) -> CommandResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("AWARI", awari()).current_dir(self.0.path());
        ended(command)
    }

    /// Starts a build; its events can be read.
    pub fn start(&self, options: &str) -> (Child, impl Iterator<Item = Value> + use<>) {
        let mut command = self.command(&format!("run m.toml --progress json {options}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()))
    }

    /// All files below a directory with their bytes.
    pub fn files(&self, directory: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        walk(&self.path(directory), &mut |path| drop(files.insert(path.to_owned(), fs::read(path).unwrap()))).unwrap();
        files
    }

    /// Flips the lowest bit of a byte of a file.
    pub fn flip(&self, file: &str, byte: usize) {
        let mut bytes = fs::read(self.path(file)).unwrap();
        bytes[byte] ^= 1;
        fs::write(self.path(file), bytes).unwrap();
    }
}

/// Visits all files and links below a directory; an absent one has none.
///
/// # Errors
/// When a directory cannot be read.
pub fn walk(directory: &Path, visit: &mut dyn FnMut(&Path)) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() { walk(&entry.path(), visit)? } else { visit(&entry.path()) }
    }
    Ok(())
}

/// Copies a directory, without empty ones below it.
pub fn copy(from: &Path, to: &Path) {
    let mut copy_file = |path: &Path| {
        let copy = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(path, copy).unwrap();
    };
    walk(from, &mut copy_file).unwrap();
}

/// Runs a command to its end.
pub fn ended(mut command: Command) -> CommandResult {
    CommandResult::of(command.output().unwrap())
}

/// Waits for a child; the result holds what it printed and the caller has not read.
pub fn ended_child(child: Child) -> CommandResult {
    CommandResult::of(child.wait_with_output().unwrap())
}

impl CommandResult {
    fn of(output: Output) -> CommandResult {
        CommandResult {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn is(self, code: i32) -> CommandResult {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Asserts an exit code that the manual documents, no panic, and a message with any code but success and a stop.
    #[track_caller]
    pub fn checked(self, what: &str) -> CommandResult {
        let code = self.code.unwrap_or_else(|| panic!("{what}: killed, {self:?}"));
        assert!(EXIT_CODES.contains(&code), "{what}: {self:?}");
        assert!(!self.err.contains("panicked"), "{what}: {self:?}");
        let has_message = ["awari: ", "error: "].iter().any(|word| self.err.contains(word));
        assert!(code == 0 || code == 75 || has_message, "{what}: {self:?}");
        self
    }

    /// Asserts that standard error contains each of these.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> CommandResult {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {}", self.err);
        }
        self
    }

    /// Asserts that standard output contains each of these.
    #[track_caller]
    pub fn shows(self, parts: &[&str]) -> CommandResult {
        for part in parts {
            assert!(self.out.contains(part), "{part:?} is not in {}", self.out);
        }
        self
    }

    /// Asserts that standard output is the table of `awari verify` with these statuses.
    #[track_caller]
    pub fn prints(self, statuses: &[(u32, &str)]) -> CommandResult {
        let lines: Vec<String> = statuses.iter().map(|(stones, status)| format!("{stones},{status}\n")).collect();
        assert_eq!(self.out, format!("stones,status\n{}", lines.concat()), "{}", self.err);
        self
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Sends a signal, such as `TERM`, to a child.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Returns what stands between two texts.
///
/// # Panics
/// If one of them is missing.
#[track_caller]
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before} is not in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("{after} is not in {rest}")).0
}
