//! The MPI communicator: runs the example `exchange` with a launcher.

#![allow(clippy::unwrap_used)]

use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than any case takes: a longer one hangs.
const HANGS: Duration = Duration::from_secs(120);

/// Outcome of a job.
struct JobOutcome {
    success: bool,
    output: String,
}

fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join("exchange");
    assert!(
        program.exists(),
        "{} is missing: `cargo test -p mpi-messaging --features mpi` builds it",
        program.display()
    );
    program
}

/// Returns the launcher of the MPI that the program was built with. The launcher of another MPI would start unconnected
/// ranks.
fn launcher() -> Option<Command> {
    let library = mpi_messaging::MpiCommunicator::library();
    let (names, arguments): (&[&str], &[&str]) = if library.contains("Open MPI") {
        (&["mpirun.openmpi", "mpirun"], &["--allow-run-as-root", "--oversubscribe"])
    } else if library.contains("MPICH") {
        (&["mpirun.mpich", "mpiexec.hydra", "mpirun"], &[])
    } else {
        (&["mpirun"], &[])
    };
    let path = std::env::var_os("PATH")?;
    let found = names.iter().find_map(|name| {
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
    });
    let Some(found) = found else {
        // Not with `println!`, which libtest captures.
        let _ = writeln!(io::stderr(), "skipped: src/base/mpi/tests/launched.rs: no launcher {names:?} for {library}");
        return None;
    };
    let mut command = Command::new(found);
    command.args(arguments);
    Some(command)
}

/// Runs a case with `ranks` ranks, if there is a launcher.
fn run(case: &str, ranks: usize) -> Option<JobOutcome> {
    let mut command = launcher()?;
    // Output goes to a file: a pipe could fill up, or be held open by a process that outlives the launcher.
    let mut output = tempfile::tempfile().unwrap();
    let mut job = command
        .args(["-n", &ranks.to_string()])
        .arg(program())
        .arg(case)
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = job.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > HANGS {
            job.kill().unwrap();
            job.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let mut text = Vec::new();
    output.rewind().unwrap();
    output.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let Some(status) = status else { panic!("`{case}` with {ranks} ranks hangs:\n{text}") };
    Some(JobOutcome { success: status.success(), output: text })
}

/// Checks that all ranks finish, and that the launcher reports success.
fn check_done(case: &str, ranks: usize) {
    let Some(outcome) = run(case, ranks) else { return };
    assert!(outcome.success, "`{case}` with {ranks} ranks:\n{}", outcome.output);
    for rank in 0..ranks {
        let line = format!("rank {rank} of {ranks} is done");
        assert!(outcome.output.contains(&line), "`{case}`, no `{line}`:\n{}", outcome.output);
    }
}

/// Checks that the job ends with a failure.
fn check_broken(case: &str, ranks: usize) -> Option<String> {
    let outcome = run(case, ranks)?;
    let done = outcome.output.contains("is done");
    assert!(!outcome.success && !done, "`{case}` with {ranks} ranks:\n{}", outcome.output);
    Some(outcome.output)
}

#[test]
fn ranks_exchange_messages() {
    for ranks in 1..=4 {
        check_done("exchange", ranks);
    }
}

#[test]
fn any_thread_may_call() {
    check_done("threads", 2);
}

#[test]
fn a_rank_that_polls_is_not_silent() {
    check_done("compute", 3);
}

#[test]
fn a_rank_that_left_is_gone() {
    for ranks in 2..=4 {
        check_done("leave", ranks);
        check_done("unread", ranks);
    }
}

#[test]
fn a_rank_that_exits_hangs_no_other() {
    for ranks in 2..=3 {
        check_broken("fail", ranks);
        // The launcher of MPICH ends the others at once, but calls the job a success if this exit code says so.
        if let Some(outcome) = run("exit", ranks) {
            assert!(!outcome.output.contains("is done"), "`exit` with {ranks} ranks:\n{}", outcome.output);
        }
    }
}

#[test]
fn a_rank_that_panics_hangs_no_other() {
    if let Some(output) = check_broken("panic", 3) {
        assert!(output.contains("of this rank, on purpose"), "{output}");
    }
}

#[test]
fn a_silent_rank_hangs_no_other() {
    if let Some(output) = check_broken("silent", 3) {
        assert!(output.contains("no message from rank 2 for 2 s"), "{output}");
    }
}

#[test]
fn without_a_launcher_there_is_no_job() {
    let mut command = Command::new(program());
    for name in ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"no ranks, and "), "{}", String::from_utf8_lossy(&output.stdout));
}
