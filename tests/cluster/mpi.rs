//! `mpirun -n N awari run`: ranks that are processes build the files of one machine, also after kills and stops. Needs
//! `--features mpi`.

use game::PositionSet;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tests::Random;
use tests::needs::Need;
use tests::{awari, root};

/// Kills in one build, unless the environment says `AWARI_KILLS`.
const KILLS: u64 = 10;

/// Time after which a job counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A manifest and its run directory.
pub(super) struct MpiBuild {
    directory: tempfile::TempDir,
    positions: &'static str,
    method: &'static str,
    stones: u32,
    /// Interval of snapshots.
    snapshot: &'static str,
}

impl MpiBuild {
    pub(super) fn new(positions: &'static str, method: &'static str, stones: u32) -> MpiBuild {
        MpiBuild { directory: tempfile::tempdir().unwrap(), positions, method, stones, snapshot: "10 min" }
    }

    /// The same build, with a snapshot at every opportunity.
    fn careful(self) -> MpiBuild {
        MpiBuild { snapshot: "0 s", ..self }
    }

    pub(super) fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn command(&self, ranks: Option<usize>) -> Command {
        let mut command = match ranks {
            None => Command::new(awari()),
            Some(ranks) => {
                let mut command = mpirun();
                command.args(["-n", &ranks.to_string(), awari()]);
                command
            }
        };
        self.add_arguments(&mut command);
        command
    }

    /// Writes the manifest, and returns its path.
    pub(super) fn write_manifest(&self) -> PathBuf {
        let manifest = self.directory.path().join("manifest.toml");
        let text = format!(
            "[game]\npositions = \"{}\"\n[build]\nstones = \"0..{}\"\nmethod = \"{}\"\nthreads = 1\nsnapshot = \"{}\"\n\
             [store]\nkeep = \"all\"\n",
            self.positions, self.stones, self.method, self.snapshot
        );
        fs::write(&manifest, text).unwrap();
        manifest
    }

    /// Adds the arguments of the run, after the launcher's.
    fn add_arguments(&self, command: &mut Command) {
        command.arg("run").arg(self.write_manifest()).arg("--dir").arg(self.run()).args(["--progress", "none"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Runs to the end, and returns the files.
    pub(super) fn finish(&self, ranks: Option<usize>) -> Files {
        let output = ended(self.command(ranks).spawn().unwrap());
        assert!(output.status.success(), "{ranks:?} ranks: {}", stderr_of(&output));
        self.files()
    }

    pub(super) fn files(&self) -> Files {
        let mut files = Files::new();
        let planes = (0..=self.stones).map(|stones| format!("planes/{stones:02}"));
        for folder in stages::kinds::folders().into_iter().map(str::to_owned).chain(planes) {
            let Ok(entries) = fs::read_dir(self.run().join(folder)) else { continue };
            for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
                files.insert(path.strip_prefix(self.run()).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
        files
    }

    /// Returns the processes of this job, found by their command lines.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().map_while(Result::ok) {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(words) = fs::read(entry.path().join("cmdline")) else { continue };
            let mut words = words.split(|&byte| byte == 0);
            let is_awari = words.next() == Some(awari().as_bytes());
            let run = self.run();
            let run = run.to_str().unwrap().as_bytes();
            if is_awari && words.any(|word| word.strip_prefix(b"--dir=").unwrap_or(word) == run) {
                found.push(process);
            }
        }
        found
    }
}

/// Waits for a job.
fn ended(child: Child) -> Output {
    ended_within(child, PATIENCE).unwrap_or_else(|output| panic!("the job hangs: {}", stderr_of(&output)))
}

/// Waits for a job; kills one that takes longer, and returns its output as the error.
fn ended_within(child: Child, patience: Duration) -> Result<Output, Output> {
    let process = child.id();
    let reader = std::thread::spawn(move || child.wait_with_output().unwrap());
    let end = Instant::now() + patience;
    let hangs = loop {
        if reader.is_finished() || Instant::now() > end {
            break !reader.is_finished() && (signal_group(process, "KILL") || signal(process, "KILL"));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let output = reader.join().unwrap();
    if hangs { Err(output) } else { Ok(output) }
}

pub(super) fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Signals all processes of a group; false if the process leads none.
fn signal_group(leader: u32, name: &str) -> bool {
    kill(&format!("-{leader}"), name)
}

pub(super) fn signal(process: u32, name: &str) -> bool {
    kill(&process.to_string(), name)
}

fn kill(target: &str, name: &str) -> bool {
    let kill = Command::new("kill").args([&format!("-{name}"), "--", target]).stderr(Stdio::null()).status();
    kill.unwrap().success()
}

/// The launcher, with what Open MPI needs to start any number of ranks.
fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    let version = Command::new("mpirun").arg("--version").output().unwrap();
    if String::from_utf8_lossy(&version.stdout).contains("Open MPI") {
        command.args(["--allow-run-as-root", "--oversubscribe"]);
    }
    command
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn processes_build_the_files_of_one_machine() {
    if !Need::Mpirun.is_met() {
        return;
    }
    let cases = [
        ("all", "sweep", 10),
        ("reachable", "sweep", 11),
        ("all", "counting", 8),
        ("reachable", "counting", 9),
        ("all", "two-bit", 8),
        ("reachable", "one-bit", 9),
        ("all", "one-bit-dual", 8),
    ];
    for (positions, method, stones) in cases {
        let has_bounds = !matches!(method, "sweep" | "counting");
        let expected = MpiBuild::new(positions, if has_bounds { method } else { "sweep" }, stones).finish(None);
        assert_eq!(has_bounds, expected.contains_key(Path::new("planes/08/02.lost")));
        for ranks in 1..=5 {
            let build = MpiBuild::new(positions, method, stones);
            assert!(build.finish(Some(ranks)) == expected, "{positions}, {method}, {ranks} ranks");
            let status = Command::new(awari()).arg("status").arg("--dir").arg(build.run()).output().unwrap();
            let status = String::from_utf8_lossy(&status.stdout).into_owned();
            // Captures, verification and statistics of large databases, and the stages of the solver: those
            // of bounds of large databases only, which count for the statistics.
            let set: PositionSet = positions.parse().unwrap();
            let shared: Vec<u32> = (0..=stones).filter(|&stones| set.positions(stones) >= 1 << 16).collect();
            let solved = if has_bounds { shared.iter().map(|n| 3 * n + 2).sum() } else { stones + 1 };
            let others = if has_bounds { 2 } else { 3 } * shared.len() as u32;
            let together = format!("{} stages done by up to {ranks} ranks: ", solved + others);
            assert_eq!(status.contains(&together), ranks > 1, "{status}");
        }
    }
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn killed_ranks_lose_nothing() {
    if Need::Mpirun.is_met() {
        killed("sweep");
    }
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn killed_counting_ranks_lose_nothing() {
    if Need::Mpirun.is_met() {
        killed("counting");
    }
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn killed_ranks_of_bounds_lose_nothing() {
    if Need::Mpirun.is_met() {
        killed("two-bit");
    }
}

fn killed(method: &'static str) {
    let kills = std::env::var("AWARI_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    // Bounds have many more stages. Those of 8 stones are shared by all ranks.
    let stones = if method == "two-bit" { 8 } else { 11 };
    let new = || MpiBuild::new("all", method, stones).careful();
    let expected = new().finish(None);
    let mut random = Random::of(&[7]);
    let mut build = new();
    let started = Instant::now();
    assert!(new().finish(Some(2)) == expected);
    let undisturbed = started.elapsed().as_micros() as u64;
    let mut killed = 0;
    let mut most = undisturbed;
    while killed < kills {
        let ranks = 2 + random.below(3) as usize;
        let job = build.command(Some(ranks)).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(most)));
        let members = build.ranks();
        let was_there = !members.is_empty() && signal(members[random.below(members.len() as u64) as usize], "KILL");
        let output = ended_within(job, PATIENCE / 2).unwrap_or_else(|output| {
            // Open MPI 4.1 hangs if a rank dies while it connects to the launcher: kill it too.
            assert!(
                was_there && stderr_of(&output).contains("PMIX ERROR: UNREACHABLE"),
                "the job hangs: {}",
                stderr_of(&output)
            );
            build.ranks().into_iter().for_each(|process| {
                signal(process, "KILL");
            });
            output
        });
        if was_there && !output.status.success() {
            killed += 1;
        } else if output.status.success() {
            // The build was done before the kill: start again, and kill earlier.
            assert!(build.finish(Some(2)) == expected, "after {killed} kills");
            build = new();
            most = (most / 4 * 3).max(undisturbed / 8);
        }
    }
    assert!(build.finish(Some(3)) == expected, "after {killed} kills");
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn a_stopped_job_resumes() {
    if !Need::Mpirun.is_met() {
        return;
    }
    let build = MpiBuild::new("all", "sweep", 11);
    let job = build.command(Some(3)).spawn().unwrap();
    let end = Instant::now() + PATIENCE;
    // Once there is a journal, every rank handles the signal.
    while !build.run().join("journal").exists() {
        assert!(Instant::now() < end, "the job never begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    let first = build.ranks().into_iter().min().unwrap();
    assert!(signal(first, "USR1"));
    let output = ended(job);
    if output.status.success() {
        return;
    }
    assert!(stderr_of(&output).contains("to resume:"), "{}", stderr_of(&output));
    assert!(build.finish(Some(2)) == MpiBuild::new("all", "sweep", 11).finish(None));
}

/// Whether a process catches SIGTERM.
fn catches_term(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> 14 & 1 == 1)
}

/// A signal while the first rank waits in MPI for the others.
#[test]
#[ignore = "slow tier: jobs of processes"]
fn a_job_stops_before_all_ranks_have_started() {
    if !Need::Mpirun.is_met() {
        return;
    }
    let build = MpiBuild::new("all", "sweep", 9);
    let mut alone = Command::new(awari());
    build.add_arguments(&mut alone);
    let go = build.directory.path().join("go");
    let late = format!("while [ ! -e '{}' ]; do sleep 0.05; done; exec \"$@\"", go.display());
    let mut command = mpirun();
    command.args(["-n", "1", awari()]).args(alone.get_args());
    command.args([":", "-n", "1", "sh", "-c", &late, "sh", awari()]).args(alone.get_args());
    let job = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + PATIENCE;
    let first = loop {
        if let Some(first) = build.ranks().into_iter().find(|&process| catches_term(process)) {
            break first;
        }
        assert!(Instant::now() < end, "the first rank catches no signal");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(signal(first, "TERM"));
    fs::write(&go, "").unwrap();
    let output = ended(job);
    assert_eq!(output.status.code(), Some(75), "{}", stderr_of(&output));
    assert!(stderr_of(&output).contains("to resume:"), "{}", stderr_of(&output));
}

/// `awari stop`, from a process that is no part of the job.
#[test]
#[ignore = "slow tier: jobs of processes"]
fn a_job_obeys_a_stop_request() {
    const STOPPED: i32 = 75;
    if !Need::Mpirun.is_met() {
        return;
    }
    // If the job ends before it reads the request, repeat with a longer one.
    for stones in 13..18 {
        let build = MpiBuild::new("all", "sweep", stones);
        let mut job = build.command(Some(3)).spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        let asked = loop {
            // Until the journal has the run, there is none to be stopped.
            let asked = Command::new(awari()).arg("stop").arg("--dir").arg(build.run()).output().unwrap();
            if asked.status.success() || job.try_wait().unwrap().is_some() {
                break asked;
            }
            assert!(Instant::now() < end, "nothing runs: {}", stderr_of(&asked));
            std::thread::sleep(Duration::from_millis(20));
        };
        let output = ended(job);
        if output.status.success() {
            continue;
        }
        assert!(asked.status.success() && stderr_of(&asked).contains("was asked to stop"), "{}", stderr_of(&asked));
        assert_eq!(output.status.code(), Some(STOPPED), "{}", stderr_of(&output));
        assert_eq!(stderr_of(&output).matches("to resume:").count(), 1, "{}", stderr_of(&output));
        assert!(build.ranks().is_empty(), "ranks are left");
        assert!(!build.run().join("stop").exists(), "the request is removed");
        assert!(build.finish(Some(2)) == MpiBuild::new("all", "sweep", stones).finish(None));
        return;
    }
    panic!("no job takes long enough to be stopped");
}

/// One stage by three ranks of a build of two, and the logs of both jobs.
#[test]
#[ignore = "slow tier: jobs of processes"]
fn a_stage_is_rerun_by_all_ranks() {
    if !Need::Mpirun.is_met() {
        return;
    }
    let build = MpiBuild::new("all", "two-bit", 9);
    build.finish(Some(2));
    let rerun = |scratch: Option<&str>| {
        let mut command = mpirun();
        command.args(["-n", "3", awari(), "stage"]).arg(build.write_manifest()).arg("process:9:3");
        command.arg("--dir").arg(build.run()).args(["--progress", "none"]);
        command.args(scratch.map(|name| format!("--scratch={}", build.directory.path().join(name).display())));
        ended(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let output = rerun(Some("again"));
    assert!(output.status.success(), "{}", stderr_of(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains(" identical "), "{output:?}");
    assert!(stderr_of(&rerun(None)).contains("give --scratch DIR"));

    let logs = Command::new(awari()).args(["status", "--logs", "--dir"]).arg(build.run()).output().unwrap();
    let logs = String::from_utf8_lossy(&logs.stdout).into_owned();
    let times: Vec<&str> = logs.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(times.is_sorted(), "{logs}");
    assert!(
        logs.contains(" 1 rank-0001: INFO process:9:3 begins") && logs.contains(" 0 run: INFO process:9:3: "),
        "{logs}"
    );
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn an_error_is_reported_once() {
    if !Need::Mpirun.is_met() {
        return;
    }
    let build = MpiBuild::new("some", "sweep", 5);
    let output = ended(build.command(Some(3)).spawn().unwrap());
    assert!(!output.status.success());
    assert_eq!(stderr_of(&output).matches("game.positions").count(), 1, "{}", stderr_of(&output));
    assert!(!Path::new(&build.run()).join("databases").exists());
}

/// Three ranks in network namespaces of their own, one millisecond from each other.
#[test]
#[ignore = "slow tier: jobs of processes"]
fn ranks_in_namespaces_build_the_files_of_one_machine() {
    if !Need::Namespaces.is_met() {
        return;
    }
    let script = root().join("tests/cluster/namespaces/run.sh");
    let build = MpiBuild::new("all", "sweep", 9);
    let mut command = Command::new(script);
    command.args(["0.001", awari()]);
    build.add_arguments(&mut command);
    // A group of its own, so that a job that hangs is killed with the launcher that the script starts.
    let output = ended(command.process_group(0).spawn().unwrap());
    assert!(output.status.success(), "{}: {output:?}", output.status);
    assert!(build.files() == MpiBuild::new("all", "sweep", 9).finish(None));
}
