//! Commands under limits of the system: every one ends by itself, with a message and a documented exit code.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use tests::directory::{TestDirectory, ended, ended_child, signal};
use tests::needs::Need;

/// A user with no other processes, so that their number is known.
const USER: &str = "61743";

/// Commands of every kind over a directory `run` that is built.
const COMMANDS: [&str; 10] = [
    "run m.toml --dir other --set build.method=sweep --set build.stones=0..9",
    "run m.toml --force sweep:5",
    "stage m.toml sweep:5",
    "verify --dir run",
    "stats --dir run",
    "status --dir run",
    "probe --dir run '0 0 0 0 1 2 1 0 0 0 0 1'",
    "export --dir run --format raw --out out",
    "archive --dir run --out out",
    "plan m.toml --force sweep:5",
];

/// Runs every command under limits of one kind. Returns the number of failures.
fn under(place: &TestDirectory, limits: &[String]) -> usize {
    let fresh = || ["other", "out"].iter().for_each(|made| drop(fs::remove_dir_all(place.path(made))));
    for command in COMMANDS {
        fresh();
        place.shell(&format!("\"$AWARI\" {command}")).is(0);
    }
    let mut refused = 0;
    for limit in limits {
        // Skip limits under which the program cannot be loaded.
        let loaded = place.shell(&format!("exec {limit} \"$AWARI\" --version"));
        if loaded.code.is_none_or(|code| code == 127) {
            continue;
        }
        for command in COMMANDS {
            fresh();
            let what = format!("{limit} {command}");
            let ended = place.shell(&format!("exec {limit} \"$AWARI\" {command}")).checked(&what);
            refused += usize::from(ended.code != Some(0));
        }
    }
    refused
}

fn each(limit: &str, values: &[u64]) -> Vec<String> {
    values.iter().map(|value| format!("prlimit --{limit}={value}")).collect()
}

#[test]
fn limited_file_size() {
    let place = TestDirectory::built(5);
    assert!(under(&place, &each("fsize", &[0, 1, 100, 1000, 4096, 20_000])) > 20);
    let small = "exec prlimit --fsize=8192 \"$AWARI\" run m.toml --dir small";
    place.shell(small).is(14).says(&["ulimit -f", "small"]);
    // Files of the run each fit.
    place.awari("run m.toml --dir small").is(0);
    place.shell("exec prlimit --fsize=10 \"$AWARI\" stats --dir run > table").is(12).says(&["stdout"]);
}

#[test]
#[ignore = "slow tier: hundreds of commands"]
fn little_memory() {
    let place = TestDirectory::built(5);
    let mebibytes = [1, 4, 8, 16, 28, 32, 36, 40, 48, 64, 100, 200, 500, 1000].map(|size| size << 20);
    assert!(under(&place, &each("as", &mebibytes[4..])) > 5);
    assert!(under(&place, &each("data", &mebibytes[..8])) > 3);
    // A line of stdin of any length.
    for command in ["play", "engine"] {
        let endless =
            format!("head -c 400M /dev/zero | tr '\\0' a | (ulimit -v 300000; \"$AWARI\" {command} --dir run)");
        let ended = place.shell(&endless).is(0);
        assert!(ended.out.contains("more than 65536 bytes") && ended.out.len() < 1000, "{command}: {ended:?}");
    }
    // Known before anything starts.
    let large = "--set build.stones=0..19 --set build.method=sweep --memory 2GiB --dir large";
    let large = place.shell(&format!("exec prlimit --as=300000000 \"$AWARI\" run m.toml {large}"));
    large.is(12).says(&["of memory", "are available"]);
    assert!(!place.path("large/databases").exists());
}

#[test]
fn few_threads() {
    let place = TestDirectory::built(5);
    // The root user has no such limit.
    if !Need::Root.is_met() {
        return;
    }
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(place.path("run"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(place.shell(&format!("chmod -R a+rwX . && chown -R {USER} run")).code == Some(0));
    let limit = |threads: u64| format!("setpriv --reuid={USER} --clear-groups prlimit --nproc={threads}");
    let limits: Vec<String> = (1..=7).map(limit).collect();
    assert!(under(&place, &limits) > 10);
    for threads in 1..=3 {
        let serve = format!("exec {} \"$AWARI\" serve --dir run --listen 127.0.0.1:0", limit(threads));
        let ended = place.shell(&serve).checked(&serve).is(12).says(&["thread", "ulimit -u"]);
        assert_eq!(ended.out, "", "no address was printed");
        let run = format!("exec {} \"$AWARI\" run m.toml --force sweep:5", limit(threads));
        place.shell(&run).is(12).says(&["ulimit -u"]);
    }
}

#[test]
#[ignore = "slow tier: hundreds of commands"]
fn few_files_little_stack_and_time() {
    let place = TestDirectory::built(5);
    assert!(under(&place, &each("nofile", &[4, 5, 6, 7, 8, 10, 12, 16, 24])) > 10);
    let stacks = each("stack", &[40_000, 64 << 10, 100 << 10, 300 << 10]);
    assert_eq!(under(&place, &stacks), stacks.len() * COMMANDS.len());
    place.shell("exec prlimit --stack=65536 \"$AWARI\" stats --dir run").is(12).says(&["ulimit -s", "512 KiB"]);
    under(&place, &each("memlock", &[0, 4096]));
    // The soft limit asks to stop, long before the hard one kills.
    let long = "run m.toml --set build.stones=0..20 --set build.method=sweep --memory 2GiB --dir long";
    let stopped = place.shell(&format!("exec prlimit --cpu=2:60 \"$AWARI\" {long}"));
    stopped.is(75).says(&["stop"]);
}

/// The test file of `doctor` has no name that could be left behind.
#[test]
fn a_killed_doctor_leaves_nothing_behind() {
    let place = TestDirectory::new(1);
    fs::create_dir(place.path("empty")).unwrap();
    let empty = place.path("empty").canonicalize().unwrap();
    let mut command = place.command("doctor --dir empty --bytes 1GiB");
    let mut doctor = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let open = format!("/proc/{}/fd", doctor.id());
    let is_in_use = || {
        let mut open = fs::read_dir(&open).into_iter().flatten().flatten();
        open.any(|file| fs::read_link(file.path()).is_ok_and(|path| path.starts_with(&empty)))
    };
    while !is_in_use() {
        assert!(doctor.try_wait().unwrap().is_none(), "it ended before");
    }
    doctor.kill().unwrap();
    doctor.wait().unwrap();
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn arguments_that_are_not_utf8() {
    let place = TestDirectory::built(3);
    let odd = OsStr::from_bytes(b"odd \xff\x1b[31m");
    let folder = place.path(".").join(odd);
    fs::create_dir(&folder).unwrap();
    fs::copy(place.path("m.toml"), folder.join("m.toml")).unwrap();
    let awari = |arguments: &[&[u8]]| {
        let mut command = place.command("");
        command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
        let ended = ended(command).checked(&format!("{arguments:?}"));
        assert!(!(ended.err.clone() + &ended.out).contains('\x1b'), "{ended:?}");
        ended
    };
    let path = b"odd \xff\x1b[31m/m.toml";
    // The manifest may stand anywhere; its directory stands in the manifest.
    awari(&[b"run", path]).is(0);
    awari(&[b"status", b"--dir", b"run"]).is(0).shows(&["run 1"]);
    awari(&[b"run", path, b"--dir", b"new"]).is(0);
    awari(&[b"status", b"--dir", b"new"]).is(0).shows(&[r"$'odd \xff\x1b[31m/m.toml'"]);
    awari(&[b"run", b"m.toml", b"--dir", b"\xff"]).is(2).says(&["not UTF-8"]);
    awari(&[b"slurm-script", path, b"--nodes", b"2"]).is(2);
    for arguments in [
        &[&b"\xff"[..]][..],
        &[b"run", b"m.toml", b"--until", b"\xff"],
        &[b"run", b"m.toml", b"--set", b"run.dir=\xff"],
        &[b"run", b"m.toml", b"--set=\xff=1"],
        &[b"plan", b"m.toml", b"--hardware", b"\xff"],
        &[b"probe", b"--dir", b"run", b"\xff"],
        &[b"analyze", b"--dir", b"run", b"\xff"],
        &[b"verify", b"--dir", b"\xff"],
        &[b"status", b"--dir", b"\xff"],
        &[b"serve", b"--dir", b"\xff"],
        &[b"stats", b"--dir", b"run", b"--format", b"\xff"],
        &[b"completions", b"\xff"],
    ] {
        assert_ne!(awari(arguments).code, Some(0), "{arguments:?}");
    }
    awari(&[b"stage", b"m.toml", b"sweep:3", b"--progress", b"json", b"--scratch", b"\xff"])
        .is(0)
        .shows(&["\"directory\":\"\u{fffd}"]);
    assert!(fs::rename(place.path("run"), folder.join("run")).is_ok());
    let moved = b"odd \xff\x1b[31m/run";
    for command in [&b"verify"[..], b"stats", b"status", b"gc"] {
        awari(&[command, b"--dir", moved]).is(0);
    }
    // JSON has no such bytes, and no such characters.
    fs::write(folder.join("run/databases").join(odd), "").unwrap();
    for command in [&[&b"status"[..]][..], &[b"gc"], &[b"doctor", b"--bytes", b"0"]] {
        awari(&[command, &[b"--json", b"--dir", moved]].concat()).is(0).shows(&["odd \u{fffd}\\u001b[31m"]).json();
    }
    // A very long one.
    awari(&[b"run", b"m.toml", b"--set", &[&b"build."[..], &b"x".repeat(100_000)].concat(), b"--set", b"x=1"]);
}

#[test]
fn missing_outputs_and_environment() {
    let place = TestDirectory::built(3);
    fs::write(place.path("game.ogn"), "[FEN \"0-0-0-0-0-1-1-0-0-0-0-1-22-23-S\"]\nF1 *\n").unwrap();
    let printing = [
        "stats --dir run",
        "stats --dir run --format csv",
        "stats --dir run --format json",
        "status --dir run",
        "status --dir run --json",
        "plan m.toml",
        "explain m.toml sweep:3",
        "verify --dir run",
        "probe --dir run '0 0 0 0 0 1 1 0 0 0 0 1'",
        "report --dir run -o -",
        "gc --dir run",
        "doctor --dir run --bytes 0",
        "analyze --dir run game.ogn",
        "completions bash",
        "slurm-script m.toml --nodes 2",
        "--help",
        "run --help",
        "--version",
    ];
    for command in printing {
        let shell =
            |script: &str| place.shell(&script.replace("AWARI", &format!("\"$AWARI\" {command}"))).checked(command);
        shell("AWARI > /dev/full").is(12).says(&["stdout"]);
        shell("AWARI 2> /dev/full > /dev/null").is(0);
        shell("AWARI >&-").is(0);
        shell("AWARI <&- 2>&- > /dev/null").is(0);
        // The reader closes the pipe immediately.
        shell("{ AWARI; echo \"code $?\" >&2; } | true; sleep 0.01").says(&["code 0"]);
    }
    // A run continues when its events cannot be written, and reports that.
    let lost = place.shell("\"$AWARI\" run m.toml --progress json --force sweep:3 > /dev/full");
    let lost = lost.is(12).says(&["cannot write the result to stdout", "the run continues", "stones 0..3"]);
    assert_eq!(lost.err.matches("stdout").count(), 1, "{lost:?}");
    place.awari("plan m.toml --check").is(0);
    place.shell("\"$AWARI\" stage m.toml sweep:3 --progress json 2>&1 > /dev/full | grep 'the run continues'").is(0);
    for surroundings in
        ["env -i", "env TERM=dumb COLUMNS=0 LINES=0", "env LC_ALL=C LANG=xx", "env TMPDIR=/nowhere HOME="]
    {
        for command in COMMANDS {
            place.shell(&format!("{surroundings} \"$AWARI\" {command}")).checked(&format!("{surroundings} {command}"));
        }
    }
    for command in ["slurm-script ../m.toml --nodes 2", "run ../m.toml", "status --dir .", "stats --dir run"] {
        let gone = format!("mkdir gone; cd gone; rmdir ../gone; exec \"$AWARI\" {command}");
        assert_ne!(place.shell(&gone).checked(&gone).code, Some(0), "{gone}");
    }
}

#[test]
fn variables_of_a_finished_job_are_ignored() {
    let place = TestDirectory::built(3);
    for left in [
        "PMI_RANK=1",
        "PMI_RANK=1 PMI_SIZE=2",
        "PMI_RANK=1 PMI_SIZE=2 PMI_FD=77",
        "OMPI_COMM_WORLD_RANK=1",
        "PMIX_RANK=1",
        "SLURM_PROCID=1",
    ] {
        place.shell(&format!("{left} \"$AWARI\" verify --dir run")).is(0).shows(&["3,verified"]);
        place.shell(&format!("{left} \"$AWARI\" run m.toml")).is(0).says(&["nothing to do"]);
    }
    // In a running job, it is an error.
    let rank = |rank: u32| format!("PMI_RANK={rank} PMI_SIZE=2 PMI_FD=0 \"$AWARI\" verify --dir run < /dev/null");
    place.shell(&rank(0)).is(0).shows(&["3,verified"]);
    let other = place.shell(&rank(1)).is(0).says(&["rank 1 is idle: only `awari run`"]);
    assert_eq!(other.out, "");
}

#[test]
fn a_closed_terminal_stops_a_run() {
    if !Need::Hangup.is_met() {
        return;
    }
    let place = TestDirectory::new(11);
    let (child, mut events) = place.start("--threads 1");
    assert!(events.any(|event| event["event"] == "stage-started" && event["stage"] == "sweep:9"));
    signal(&child, "HUP");
    assert_eq!(events.last().unwrap()["how"], "stopped");
    ended_child(child).is(75).says(&["stopped after"]);
    // Except under nohup.
    let script =
        "trap '' HUP; \"$AWARI\" run m.toml --dir ignored --set build.stones=0..8 & sleep 0.05; kill -HUP $!; wait $!";
    place.shell(script).is(0);
}

/// File systems with space but no inode, and read-only ones with a finished build.
#[test]
#[ignore = "slow tier: mounts file systems"]
fn file_systems_that_refuse_files_are_named() {
    if !Need::LoopDevice.is_met() {
        return;
    }
    let place = TestDirectory::built(6);
    fs::create_dir(place.path("full")).unwrap();
    let mounted = |script: &str| place.shell(&format!("unshare --mount --propagation private sh -ec '{script}'"));
    let full = mounted("mount -t tmpfs -o nr_inodes=12 tmpfs full; $AWARI run m.toml --dir full/run --progress none");
    assert!([Some(12), Some(14)].contains(&full.code), "{full:?}");
    assert!(full.err.contains("no inode left to ") && !full.err.contains("no space"), "{}", full.err);
    let read_only = "mount --bind run run; mount -o remount,ro,bind run; $AWARI run m.toml";
    mounted(read_only).is(0).says(&["nothing to do: "]);
    mounted(&format!("{read_only} --set build.stones=0..7")).is(12).says(&["the file system is read-only"]);
}
