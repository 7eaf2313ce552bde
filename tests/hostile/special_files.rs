//! Commands on run directories in which a file is forged or not a regular file: each ends with an error, none panics.

use disk::{Disk, RealDisk};
use pipeline::directory::Directory;
use pipeline::journal::{Contents, Record};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tests::directory::{TestDirectory, copy, ended};
use tests::hostile::seal_journal;
use tests::needs::Need;

/// A directory with a finished run in `done`, and room for copies of it.
struct FinishedRun(TestDirectory);

impl FinishedRun {
    fn new() -> FinishedRun {
        let place = FinishedRun(TestDirectory::new(3));
        place.0.manifest("[build]\nstones = \"0..3\"\n[run]\ndir = \"done\"\n");
        assert_eq!(place.awari("run m.toml").0, 0);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Runs a command. Asserts that it ends by itself, without a panic or control characters in its output.
    fn awari(&self, line: &str) -> (i32, String) {
        let output = self.0.command(line).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code().unwrap_or_else(|| panic!("{line} ends by itself: {said}"));
        assert!(!said.contains("panicked"), "{line}: {said}");
        for text in [&said, &*String::from_utf8_lossy(&output.stdout)] {
            let command = text.chars().find(|&c| {
                (c.is_control() && !['\n', '\t'].contains(&c))
                    || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            });
            assert_eq!(command, None, "{line}: {}", text.escape_debug());
        }
        (code, said)
    }

    /// A copy of the directory, without one file.
    fn copy_without(&self, file: &str) {
        let _ = fs::remove_dir_all(self.path("odd"));
        copy(&self.path("done"), &self.path("odd"));
        fs::remove_file(self.path("odd").join(file)).unwrap();
    }

    /// Runs all commands that read a run directory.
    fn all_commands(&self) -> Vec<(i32, String)> {
        let commands = [
            "plan m.toml --dir odd",
            "status --dir odd",
            "status --dir odd --json",
            "stats --dir odd",
            "verify --dir odd",
            "probe --dir odd '1 0 0 0 0 0 0 1 0 0 0 1'",
            "run m.toml --dir odd",
            "run m.toml --dir odd --set build.stones=0..4",
        ];
        commands.map(|command| self.awari(command)).to_vec()
    }
}

#[test]
fn special_files_are_named() {
    let place = FinishedRun::new();
    let files = ["databases/03.awari", "journal", "lock", "manifest.toml", "stats/03.json"];
    type Make = fn(&Path);
    let odd: [(&str, Make); 4] = [
        ("folder", |path| fs::create_dir(path).unwrap()),
        ("pipe", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("nothing", |path| symlink("/dev/null", path).unwrap()),
        ("itself", |path| symlink(path.file_name().unwrap(), path).unwrap()),
    ];
    let mut refused = 0;
    for file in files {
        for (what, make) in odd {
            place.copy_without(file);
            make(&place.path("odd").join(file));
            for (code, said) in place.all_commands() {
                if code != 0 {
                    // A folder is passed over where databases are listed: the one is missing.
                    let is_missing =
                        code == 3 && (said.contains("no database of ") || said.contains("which does not exist"));
                    let name = Path::new(file).file_name().unwrap().to_str().unwrap();
                    assert!(said.contains(name) || is_missing, "{file} is {what}: {code}, {said}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 40, "{refused}");
}

/// Special files given as manifests, hardware, openings, games and run directories are named, and never read.
#[test]
fn special_files_that_are_given_are_not_read() {
    let place = FinishedRun::new();
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    for (path, what) in [
        ("/dev/zero", "it is a device"),
        ("/dev/ptmx", "it is a device"),
        ("socket", "it is a socket"),
        ("/proc/self/status", "it is an interface of the kernel"),
    ] {
        for (line, expect) in [
            (format!("run {path}"), 11),
            (format!("plan m.toml --hardware {path}"), 11),
            (format!("match --engine x --engine y --nodes 1 --openings {path}"), 12),
            (format!("analyze {path}"), 12),
        ] {
            let (code, said) = place.awari(&line);
            assert!(code == expect && said.contains(what), "{line}: {code}, {said}");
        }
        for line in [format!("status --dir {path}"), format!("run m.toml --dir {path}")] {
            let (code, said) = place.awari(&line);
            assert!(code == 12 && said.contains("is not a directory"), "{line}: {code}, {said}");
        }
    }
    // A pipe that is given on purpose.
    let piped = place.0.path("m.toml");
    let mut plan = place.0.command("plan /dev/stdin --dir done");
    let mut cat = Command::new("cat").arg(piped).stdout(Stdio::piped()).spawn().unwrap();
    let planned = plan.stdin(cat.stdout.take().unwrap()).output().unwrap();
    assert!(planned.status.success(), "{}", String::from_utf8_lossy(&planned.stderr));
    cat.wait().unwrap();
}

/// A manifest that cannot be read for want of descriptors has no mistakes.
#[test]
fn limits_are_not_mistakes_of_a_manifest() {
    let place = FinishedRun::new();
    for line in ["plan m.toml", "plan m.toml --hardware h.toml"] {
        fs::write(place.path("h.toml"), "").unwrap();
        let script = format!("ulimit -n 4; exec \"$0\" {line}");
        let output =
            Command::new("sh").args(["-c", &script, tests::awari()]).current_dir(place.path("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(12), "{line}: {said}");
        assert!(said.contains("too many open files (ulimit -n)"), "{line}: {said}");
    }
}

/// A file that cannot be opened does not prevent the use of the others.
#[test]
fn other_databases_are_used_beside_one_that_cannot_be_opened() {
    let place = FinishedRun::new();
    place.copy_without("databases/03.awari");
    let database = place.path("odd/databases/03.awari");
    type Make = fn(&Path);
    let odd: [Make; 3] = [
        |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        |path| symlink("absent", path).unwrap(),
        |path| symlink("/dev/null", path).unwrap(),
    ];
    for make in odd {
        make(&database);
        assert_eq!(place.awari("probe --dir odd '0 0 0 0 0 1 1 0 0 0 0 0'").0, 0);
        let (code, said) = place.awari("probe --dir odd '0 0 0 0 0 1 1 1 0 0 0 0'");
        assert!(code == 16 && said.contains("03.awari"), "{code}, {said}");
        let verified = place.0.awari("verify --dir odd").is(16).says(&["03.awari"]);
        assert_eq!(verified.out.matches("verified").count(), 3, "{verified:?}");
        fs::remove_file(&database).unwrap();
    }

    symlink(".", place.path("odd/databases/loop")).unwrap();
    fs::write(place.path("odd/stats/.03.json.tmp-1"), "half").unwrap();
    place.0.awari("gc --dir odd").is(0).shows(&["databases/loop", ".03.json.tmp-1"]);
}

/// Plants links and runs a command. `PID` in the name of a link stands for the process number of the command.
fn run_with_links(place: &FinishedRun, links: &[String], script: &str) -> (Option<i32>, String) {
    let plant = links.iter().map(|link| format!("ln -sf \"$1\" \"{}\"; ", link.replace("PID", "$$")));
    let script = plant.collect::<String>() + "exec \"$0\" " + script;
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, tests::awari()]).arg(place.path("victim"));
    shell.env("TMPDIR", place.path("tmp"));
    let output = shell.current_dir(place.path("")).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Another user who may write to the run directory plants links there.
#[test]
#[ignore = "slow tier: hundreds of commands"]
fn planted_links_change_no_file_elsewhere() {
    let place = FinishedRun::new();
    fs::create_dir(place.path("tmp")).unwrap();
    let more = "run m.toml --dir odd --set build.stones=0..4";
    let names = [
        "journal",
        "lock",
        "heartbeat",
        "stop",
        "manifest.toml",
        "logs/run.log",
        "logs/sweep-04.log",
        ".manifest.toml.tmp-PID",
        ".heartbeat.tmp-PID",
        ".probe.tmp-PID",
        "databases/.04.awari.tmp-PID",
        "stats/.04.json.tmp-PID",
    ];
    for name in names {
        place.copy_without("stats/03.json");
        fs::write(place.path("victim"), b"precious").unwrap();
        for script in [more, "status --dir odd", "doctor --dir odd", "verify --dir odd", more] {
            let (code, said) = run_with_links(&place, &[format!("odd/{name}")], script);
            assert!(code.is_some() && !said.contains("panicked"), "{name}, {script}: {said}");
            assert_eq!(fs::read(place.path("victim")).unwrap(), b"precious", "{name}, {script}: {said}");
        }
    }
    // The default scratch directory of a stage.
    fs::remove_file(place.path("victim")).unwrap();
    fs::create_dir(place.path("victim")).unwrap();
    fs::write(place.path("victim/kept"), b"precious").unwrap();
    let now = disk::clock::now_seconds();
    let links: Vec<String> = (now..now + 20).map(|second| format!("tmp/stage-PID-{second}")).collect();
    let (code, said) = run_with_links(&place, &links, "stage m.toml sweep:3");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::read_dir(place.path("victim")).unwrap().count(), 1);
}

/// A link in place of a subdirectory is followed if it belongs to the user, and refused if it belongs to another one.
#[test]
fn linked_directories_must_belong_to_the_user() {
    let place = FinishedRun::new();
    let more = "run m.toml --dir odd --set build.stones=0..4 --set store.keep=all";
    for folder in ["databases", "captures", "stats", "logs", "snapshots"] {
        for is_own in [true, false] {
            place.copy_without("stats/03.json");
            let (link, elsewhere) = (place.path("odd").join(folder), place.path("elsewhere"));
            let _ = fs::remove_dir_all(&elsewhere);
            fs::create_dir_all(&link).unwrap();
            fs::rename(&link, &elsewhere).unwrap();
            for name in ["04.awari", "04.cap", "04.json", ".05.tmp-7"] {
                fs::write(elsewhere.join(name), b"precious").unwrap();
            }
            symlink(&elsewhere, &link).unwrap();
            if !is_own && std::os::unix::fs::lchown(&link, Some(12_345), None).is_err() {
                assert!(!Need::Root.is_met(), "root can give a link to another user");
                continue;
            }
            let (code, said) = place.awari(more);
            if is_own {
                assert_eq!(code, 0, "{folder}: {said}");
                continue;
            }
            // A run continues without logs.
            let is_needed = folder != "logs";
            assert_eq!(code != 0, is_needed, "{folder}: {said}");
            let named = format!("odd/{folder} is a symbolic link of another user (12345)");
            assert!(!is_needed || said.contains(&named), "{folder}: {said}");
            for name in ["04.awari", "04.cap", "04.json", ".05.tmp-7"] {
                assert_eq!(fs::read(elsewhere.join(name)).unwrap(), b"precious", "{folder}: {said}");
            }
        }
    }
}

/// A directory with other files is not a run directory, and none of them is changed.
#[test]
fn files_of_others_are_kept() {
    let place = FinishedRun::new();
    let names = ["manifest.toml", "lock", "journal", "heartbeat", "a.txt"];
    let mine = place.path("mine");
    fs::create_dir_all(mine.join("src")).unwrap();
    names.iter().chain(&["src/x"]).for_each(|name| fs::write(mine.join(name), "my own").unwrap());
    let commands = [
        "run m.toml --dir mine",
        "status --dir mine",
        "doctor --dir mine",
        "stop --dir mine",
        "gc --dir mine --delete",
        "restore --from archives --dir mine",
        "stage m.toml sweep:3 --scratch mine",
    ];
    assert_eq!(place.awari("archive --dir done --out archives").0, 0);
    for command in commands {
        let (code, said) = place.awari(command);
        let word = command.split(' ').next().unwrap();
        let is_refused = said.contains("mine holds files that are not awari's (a.txt, heartbeat, journal, and 3 more)");
        assert!(is_refused || !["run", "restore", "stage"].contains(&word), "{command:?}: {said}");
        assert!(code != 0 || word == "status", "{command:?}: {code}, {said}");
        assert_eq!(fs::read_dir(&mine).unwrap().count(), names.len() + 1, "{command:?}");
        for name in names {
            assert_eq!(fs::read(mine.join(name)).unwrap(), b"my own", "{command:?}");
        }
    }
    // The manifest that is to be run lies there, too.
    fs::create_dir(place.path("other")).unwrap();
    fs::copy(place.path("m.toml"), place.path("other/manifest.toml")).unwrap();
    let (code, said) = place.awari("run other/manifest.toml --dir other");
    assert!(code == 12 && said.contains("other holds files that are not awari's (manifest.toml)"), "{code}: {said}");
    // In a run directory it is kept.
    place.copy_without("stats/03.json");
    fs::copy(place.path("m.toml"), place.path("odd/manifest.toml")).unwrap();
    let (code, said) = place.awari("run odd/manifest.toml --dir odd");
    assert!(code == 0 && said.contains("kept as odd/manifest.toml.kept-1"), "{code}: {said}");
    assert_eq!(fs::read(place.path("odd/manifest.toml.kept-1")).unwrap(), fs::read(place.path("m.toml")).unwrap());
}

/// Every option that writes a file or directory for the user.
#[test]
fn outputs_replace_regular_files_only() {
    let place = FinishedRun::new();
    fs::write(place.path("file"), "old").unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    symlink("file", place.path("link")).unwrap();
    symlink("absent", place.path("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let report = |out: &str| place.awari(&format!("report --dir done -o {out}"));
    for (out, expect) in [
        ("no/where/page.html", "there is no directory no/where; create it with: mkdir -p no/where"),
        ("folder", "it is a directory"),
        ("dangling", "it is a symbolic link to absent, which is absent"),
        ("pipe", "nothing reads from it"),
    ] {
        let (code, said) = report(out);
        assert!(code == 12 && said.contains(expect), "{out}: {code}, {said}");
    }
    let full = report("/dev/full");
    assert!(full.0 == 12 && full.1.contains("no space left to write /dev/full"), "{full:?}");
    for out in ["/dev/null", "/dev/stdout", "/dev/fd/1", "link", "page.html"] {
        assert_eq!(report(out).0, 0, "{out}");
    }
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(fs::read(place.path("file")).unwrap().starts_with(b"<!DOCTYPE html>"), "the link leads there");
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    // Into a pipe with a reader, and appended to a file that the shell has opened.
    let script = "echo begun > log && \"$0\" report --dir done -o /dev/stdout >> log && \
                  (cat pipe > piped & \"$0\" report --dir done -o /dev/fd/3 3> pipe && wait)";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, tests::awari()]).current_dir(place.path("")).stderr(Stdio::null());
    assert!(shell.status().unwrap().success());
    assert!(fs::read(place.path("log")).unwrap().starts_with(b"begun\n<!DOCTYPE html>"));
    assert!(fs::read(place.path("piped")).unwrap().starts_with(b"<!DOCTYPE html>"));

    let mut play = place.0.command("play --dir done --position '1 0 0 0 0 0 0 1 0 0 0 1'");
    fs::write(place.path("said"), "save no/where.ogn\nsave pipe\nsave kept.ogn\nquit\n").unwrap();
    play.stdin(fs::File::open(place.path("said")).unwrap());
    ended(play).is(0).shows(&["there is no directory no;", "nothing reads from it", "saved in kept.ogn"]);

    for command in ["export --format raw", "archive"] {
        let out = |out: &str, force: bool| {
            let force = if force { "--force" } else { "" };
            place.awari(&format!("{command} --dir done --out {out} {force}"))
        };
        let (code, said) = out("no/where", false);
        assert!(code == 12 && said.contains("there is no directory no; create it with: mkdir -p no"), "{said}");
        let (code, said) = out("file", false);
        assert!(code == 12 && said.contains("file"), "{code}: {said}");
        assert_eq!(out("made", false).0, 0);
        let name = fs::read_dir(place.path("made")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
        for plant in ["../link", "../pipe", "../absent"] {
            fs::remove_file(&name).unwrap();
            symlink(plant, &name).unwrap();
            for force in [false, true] {
                let (code, said) = out("made", force);
                assert!(code == 12 && said.contains("it is a symbolic link"), "{plant}: {code}, {said}");
            }
        }
        fs::remove_dir_all(place.path("made")).unwrap();
    }
    assert!(!place.path("no").exists() && !place.path("absent").exists());
}

/// A change to a value of a record.
type Change = Box<dyn Fn(&mut Value)>;

/// Applies a change to every number and text of every record.
fn forged(bytes: &[u8], change: &dyn Fn(&mut Value)) -> Vec<u8> {
    fn walk(value: &mut Value, change: &dyn Fn(&mut Value)) {
        match value {
            Value::Object(fields) => {
                // These identify the record, or have fewer than 64 bits.
                let kept = ["run", "kind", "stage", "artifact", "name", "version", "pid", "threads", "millis"];
                let changed = |key: &str| !kept.contains(&key);
                fields.iter_mut().filter(|(key, _)| changed(key)).for_each(|(_, value)| walk(value, change));
            }
            Value::Array(values) => values.iter_mut().for_each(|value| walk(value, change)),
            _ => change(value),
        }
    }
    let mut forged = Vec::new();
    for entry in Contents::decode(bytes).entries {
        let mut record = serde_json::to_value(entry).unwrap();
        walk(&mut record, change);
        let payload = serde_json::to_vec(&record).unwrap();
        forged.extend([&b"\xFFJR\x01"[..], &(payload.len() as u32).to_le_bytes(), &[0; 8], &payload].concat());
    }
    seal_journal(&mut forged);
    forged
}

#[test]
fn forged_journals_do_no_harm() {
    let place = FinishedRun::new();
    let journal = fs::read(place.path("done/journal")).unwrap();
    let integers = [0, 1 << 32, 1 << 63, u64::MAX];
    let floats = [f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0];
    let text = "\x1b[2J\u{202e}\n\0\u{e9}".repeat(900);
    let set_integer = |to: u64| move |value: &mut Value| *value = if value.is_u64() { to.into() } else { value.take() };
    let set_float = |to: f64| move |value: &mut Value| *value = if value.is_f64() { to.into() } else { value.take() };
    let set_text = move |value: &mut Value| {
        // Digests, names and ends must stay valid.
        if value.as_str().is_some_and(|was| was.len() != 64 && !was.contains('/') && was != "done") {
            *value = text.clone().into();
        }
    };
    let mut changes: Vec<Change> = vec![Box::new(set_text)];
    integers.into_iter().for_each(|to| changes.push(Box::new(set_integer(to))));
    floats.into_iter().for_each(|to| changes.push(Box::new(set_float(to))));
    for change in changes {
        place.copy_without("journal");
        let forged = forged(&journal, &*change);
        let (before, after) = (Contents::decode(&journal).entries.len(), Contents::decode(&forged).entries.len());
        assert_eq!(before, after, "forged records count");
        fs::write(place.path("odd/journal"), forged).unwrap();
        for (code, said) in place.all_commands() {
            assert!([0, 10].contains(&code), "{code}: {said}");
        }
    }
}

/// Terminal control sequences in every text that a command may print.
#[test]
fn file_contents_print_no_control_characters() {
    let evil = "\u{1b}[31m\u{1b}]0;x\u{7}\r\u{8}\u{7f}\u{9b}2J\u{202e}\u{2066}";
    let quoted = serde_json::to_string(&format!("{evil}\n")).unwrap();
    let place = FinishedRun::new();
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    let mut game = format!("[Event \"{evil}\"]\n[{evil} \"x\"]\n\n1. F4 {evil}\n");
    // Where it is cut is where its reader stops.
    for _ in 0..2 {
        fs::write(place.path("game.ogn"), &game).unwrap();
        for more in ["", "--json"] {
            place.awari(&format!("analyze --dir done game.ogn {more}"));
        }
        game = format!("[Event \"{evil}\"]\n\nF4 *\n");
    }
    // Manifests, with what is unknown, mistaken and broken.
    for text in [
        format!("[build]\nstones = \"0..3\"\n{quoted} = 1\n[{quoted}]\nx = 1\n"),
        format!(
            "[build]\nstones = {quoted}\nmethod = {quoted}\nmemory = {quoted}\n[build.methods]\n{quoted} = {quoted}\n"
        ),
        format!("[build]\nstones = \"0..3\"\n[run]\ndir = {quoted}\n"),
        format!("{evil} = 1\n"),
        format!("[build\nstones = \"{evil}\"\n"),
    ] {
        fs::write(place.path("evil.toml"), text).unwrap();
        for command in ["plan", "run"] {
            place.awari(&format!("{command} evil.toml"));
        }
        place.awari("plan m.toml --hardware evil.toml");
        place.copy_without("manifest.toml");
        fs::copy(place.path("evil.toml"), place.path("odd/manifest.toml")).unwrap();
        place.awari("status --dir odd");
        place.awari("gc --dir odd");
    }
    place.awari(&format!("plan m.toml --set 'build.{evil}={evil}' --set 'build.stones={evil}'"));
    place.awari(&format!("probe --dir done '{evil}'"));
    place.awari(&format!("analyze --dir done '{evil}'"));
    place.awari(&format!("status --dir '{evil}'"));

    // What a run directory holds: damage and a failure in its journal, names, notes, a heartbeat and a log.
    place.copy_without("lock");
    let (disk, odd) = (RealDisk::default(), place.path("odd"));
    let mut directory = Directory::open(&disk, &odd, evil, &|| Ok(true)).unwrap();
    let records = [
        Record::RunStarted {
            command: evil.to_owned(),
            program: evil.to_owned(),
            host: evil.to_owned(),
            pid: std::process::id(),
            threads: 1,
            memory_bytes: 1,
            manifest: disk::Digest::of(b""),
            killed: None,
        },
        Record::DamageFound { artifact: "databases/03.awari".parse().unwrap(), what: evil.to_owned(), silent: false },
        Record::StageFailed { stage: "sweep:3".parse().unwrap(), message: evil.to_owned() },
        Record::StageStarted { stage: "sweep:3".parse().unwrap(), reason: evil.to_owned() },
    ];
    records.into_iter().for_each(|record| directory.journal().append(record).unwrap());
    let run = directory.journal().run();
    drop(directory);
    for name in [format!("databases/{evil}.awari"), format!("captures/{evil}"), format!("04{evil}.awari")] {
        let path = place.path("odd").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes("done/databases/03.awari")).unwrap();
    }
    let mut forged = bytes("done/databases/02.awari");
    forged[20..40].copy_from_slice(&evil.as_bytes()[..20]);
    fs::write(place.path("odd/databases/02.awari"), forged).unwrap();
    let now = disk::clock::now_seconds();
    let beat = format!(
        "{{\"run\":{run},\"at\":{now},\"stage\":\"sweep:3\",\"number\":1,\"steps\":1,\"done\":1,\"total\":2,\"unit\":{quoted},\
         \"seconds\":1.0,\"advanced_at\":{now},\"stage_left_seconds\":1.0,\"run_left_seconds\":1.0,\"memory_bytes\":1}}"
    );
    fs::write(place.path("odd/heartbeat"), beat).unwrap();
    fs::write(place.path("odd/stop"), quoted.as_bytes()).unwrap();
    let look = || {
        let commands = [
            "plan m.toml --dir odd",
            "plan m.toml --dir odd --json",
            "plan m.toml --dir odd --all",
            "explain m.toml --dir odd sweep:3",
            "explain m.toml --dir odd sweep:3 --json",
            "status --dir odd",
            "status --dir odd --json",
            "report --dir odd -o -",
            "gc --dir odd",
            "gc --dir odd --json",
            "stop --dir odd",
            "stats --dir odd",
            "verify --dir odd",
            "probe --dir odd '1 0 0 0 0 0 0 1 0 0 0 1'",
            "probe --dir odd '0 0 0 0 0 0 0 1 0 0 0 1' --json",
            "export --dir odd --format raw --out out",
            "archive --dir odd --out out",
            "doctor --dir odd --bytes 0",
            "stage m.toml --dir odd sweep:3",
            "run m.toml --dir odd --until capture:0",
        ];
        commands.map(|command| place.awari(command))
    };
    let said = look();
    assert!(said[12].0 == 16, "{said:?}");
    // A process that holds the lock, with a note of its own.
    let lock = disk.lock(&place.path("odd/lock"), evil).unwrap();
    fs::write(place.path("odd/lock"), format!("process 1 on {evil} since {evil}: {evil}\n")).unwrap();
    assert!(look().iter().any(|(code, _)| *code == 13));
    drop(lock);
    place.awari("run m.toml --dir odd --progress json");
    // The logs are read in a terminal too.
    for entry in fs::read_dir(place.path("odd/logs")).unwrap() {
        let text = String::from_utf8(fs::read(entry.unwrap().path()).unwrap()).unwrap();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{}", text.escape_debug());
    }
}
