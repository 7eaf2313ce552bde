//! `awari slurm-script`: the text of the script, and its actions after the ranks have ended.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tests::directory::{CommandResult, TestDirectory, ended};
use tests::needs::Need;

/// A program on the path of a script.
fn stub(place: &TestDirectory, name: &str, script: &str) {
    fs::create_dir_all(place.path("bin")).unwrap();
    let path = place.path("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a script with stubs of Slurm, in another directory. `None` without bash.
fn run(place: &TestDirectory, script: &str) -> Option<CommandResult> {
    fs::write(place.path("job.sh"), script).unwrap();
    if !Need::Bash.is_met() {
        return None;
    }
    let bash = |options: &[&str]| {
        let mut command = Command::new("bash");
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        command.args(options).arg(place.path("job.sh")).current_dir("/").env("PATH", path).env("SLURM_JOB_ID", "4711");
        ended(command)
    };
    bash(&["-n"]).is(0);
    Some(bash(&[]))
}

#[test]
fn a_stopped_job_is_requeued() {
    let place = TestDirectory::new(3);
    let script = place.awari("slurm-script m.toml --nodes 2").is(0).out;
    for (code, requeue, expected) in [(0, 0, 0), (75, 0, 0), (75, 1, 75), (14, 0, 14), (130, 0, 130)] {
        stub(&place, "srun", &format!("echo srun; exit {code}"));
        stub(&place, "scontrol", &format!("echo scontrol \"$@\"; exit {requeue}"));
        let Some(job) = run(&place, &script) else { return };
        let called = if code == 75 { "srun\nscontrol requeue 4711\n" } else { "srun\n" };
        assert_eq!((job.code, job.out.as_str()), (Some(expected), called), "{job:?}");
    }
}

/// The ranks get the arguments of the command line and its working directory, with any characters in its name.
#[test]
fn a_job_builds_what_the_command_line_says() {
    let place = TestDirectory::new(9);
    let manifest = "it's a \"$(manifest)\".toml";
    fs::rename(place.path("m.toml"), place.path(manifest)).unwrap();
    let options = "--time 1:00:00 --threads 1 --memory 100MiB --set build.stones=0..3";
    let mut command = place.command(&format!("slurm-script {options}"));
    command.args([manifest, "--dir", "a run's $HOME"]);
    let script = ended(command).is(0).out;
    for line in ["--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1", "--mem=100M", "--time=1:00:00", "--requeue"] {
        assert!(script.lines().any(|found| found == format!("#SBATCH {line}")), "{line} is not in {script}");
    }
    // The one rank of the step: srun takes its own options away.
    stub(&place, "srun", "while case $1 in --*) ;; *) false ;; esac; do shift; done\nexec \"$@\"");
    let Some(job) = run(&place, &script) else { return };
    job.is(0).says(&["stones 0..3: matches published counts"]);
    assert!(place.path("a run's $HOME/databases/03.awari").exists());
}

#[test]
fn mistakes_are_reported_before_submission() {
    let place = TestDirectory::new(3);
    let bad = place.awari("slurm-script m.toml --set build.stones=9..3").is(11).says(&["empty range"]);
    assert_eq!(bad.out, "");
    place.awari("slurm-script m.toml --time 10").is(2).says(&["20 minutes or more"]);
    place.awari("slurm-script m.toml --time 1h").is(2).says(&["D-H:M:S"]);
    place.awari("slurm-script m.toml --nodes 0").is(2);
}
