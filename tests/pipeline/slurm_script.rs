//! `awari slurm-script`: mistakes on its command line. `cluster` runs its scripts.

use std::fs;
use std::process::Command;
use tests::directory::{TestDirectory, ended};
use tests::needs::Need;

#[test]
fn mistakes_are_reported_before_submission() {
    let place = TestDirectory::new(3);
    let bad = place.awari("slurm-script m.toml --set build.stones=9..3").is(11).says(&["empty range"]);
    assert_eq!(bad.out, "");
    place.awari("slurm-script m.toml --time 10").is(2).says(&["20 minutes or more"]);
    place.awari("slurm-script m.toml --time 1h").is(2).says(&["D-H:M:S"]);
    place.awari("slurm-script m.toml --nodes 0").is(2);
}

/// The script is valid, and has the arguments of the command line, with any characters in its name.
#[test]
fn a_script_is_what_the_command_line_says() {
    let place = TestDirectory::new(9);
    let manifest = "it's a \"$(manifest)\".toml";
    fs::rename(place.path("m.toml"), place.path(manifest)).unwrap();
    let options = "--nodes 2 --time 1:00:00 --threads 1 --memory 100MiB --set build.stones=0..3";
    let mut command = place.command(&format!("slurm-script {options}"));
    command.args([manifest, "--dir", "a run's $HOME"]);
    let script = ended(command).is(0).out;
    for line in ["--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1", "--mem=100M", "--time=1:00:00", "--requeue"] {
        assert!(script.lines().any(|found| found == format!("#SBATCH {line}")), "{line} is not in {script}");
    }
    let program = fs::canonicalize(tests::awari()).unwrap();
    assert!(script.contains(&format!(" {} run ", program.display())), "{script}");
    fs::write(place.path("job.sh"), script).unwrap();
    if Need::Bash.is_met() {
        let mut bash = Command::new("bash");
        bash.arg("-n").arg(place.path("job.sh"));
        ended(bash).is(0);
    }
}
