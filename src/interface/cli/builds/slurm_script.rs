//! `awari slurm-script`: a Slurm job script that runs a manifest on several machines until it is built.
//!
//! User input is quoted for the shell and appears only below the `#SBATCH` lines, where quoting is up to Slurm.

use crate::args::{ChangeArgs, SlurmScriptArgs};
use crate::builds::request::ResolvedBuild;
use crate::error::{CliError, Result};
use crate::output::print;
use crate::text::shell::command_line;
use crate::text::terminal::say;
use disk::RealDisk;
use pipeline::Exit;
use pipeline::directory::journal_path;
use std::fmt::Write;
use std::path::Path;

/// The bytes of Slurm's unit M.
const MEBIBYTE: u64 = 1 << 20;

/// The longest part of the job name that comes from the manifest, in characters.
const NAME_CHARACTERS_MAX: usize = 60;

/// Runs without progress, one after the other, after which the job fails.
const ATTEMPTS_MAX: u32 = 3;

/// The end of the script, after the command. The shell itself receives no signal, so it sees how the ranks end.
const TAIL: &str = "\
code=$?
# 75: stopped with work left, or a rank was lost. Above 128: killed by a signal. Requeue the job, and this script resumes.
if [ \"$code\" -eq 75 ] || [ \"$code\" -gt 128 ]; then
    if [ \"$(journal_bytes)\" = \"$before\" ]; then
        echo \"not requeued after exit code $code: no run began\" >&2
    elif scontrol requeue \"$SLURM_JOB_ID\"; then
        exit 0
    fi
fi
exit \"$code\"
";

/// The types of `srun --mpi` that the MPI of this program takes, the best first.
#[cfg(feature = "mpi")]
fn mpi_types() -> &'static str {
    if mpi_messaging::MpiCommunicator::library().contains("Open MPI") { "pmix pmi2" } else { "pmi2 pmix" }
}

/// The same for a program that knows no MPI.
#[cfg(not(feature = "mpi"))]
fn mpi_types() -> &'static str {
    "pmix pmi2"
}

pub(crate) fn run(args: &SlurmScriptArgs) -> Result<Exit> {
    let request = ResolvedBuild::read(&RealDisk::default(), &args.manifest)?;
    let script = JobScript {
        name: job_name(&args.manifest.manifest),
        nodes: args.nodes,
        threads: request.threads_asked(),
        memory_bytes: request.settings().memory_bytes,
        time: args.time.as_deref(),
        mpi: args.mpi.as_deref(),
        directory: text(&std::env::current_dir().map_err(CliError::CurrentDirectory)?)?,
        journal: text(&journal_path(&request.dir()))?,
        command: command(text(&args.manifest.manifest)?, &args.manifest.changes)?,
    };
    print(&script.text())?;
    if args.nodes > 1 && cfg!(not(feature = "mpi")) {
        say("built without MPI: cannot join an MPI job; build the program for the job with `--features mpi`");
    }
    Ok(Exit::Done)
}

/// The contents of a job script.
struct JobScript<'a> {
    name: String,
    nodes: u32,
    /// Threads per rank; 0 is one per core.
    threads: i64,
    memory_bytes: u64,
    time: Option<&'a str>,
    /// The type of `srun --mpi`, if it was given.
    mpi: Option<&'a str>,
    directory: String,
    /// The journal of the run, below `directory` or absolute.
    journal: String,
    command: Vec<String>,
}

impl JobScript<'_> {
    fn text(&self) -> String {
        let JobScript { name, nodes, threads, memory_bytes, time, mpi, directory, journal, command } = self;
        let mut options = vec![
            format!("--job-name={name}"),
            format!("--nodes={nodes}"),
            "--ntasks-per-node=1".to_owned(),
            match threads {
                0 => "--exclusive".to_owned(),
                threads => format!("--cpus-per-task={threads}"),
            },
            format!("--mem={}M", memory_bytes.div_ceil(MEBIBYTE)),
        ];
        options.extend(time.map(|time| format!("--time={time}")));
        // Without `B:`, the signal goes to the ranks and not to this shell. Slurm may send it up to a minute early.
        options.extend(["--signal=USR1@600", "--requeue", "--open-mode=append"].map(str::to_owned));
        let mut text = "#!/bin/bash\n".to_owned();
        for option in options {
            let _ = writeln!(text, "#SBATCH {option}");
        }
        // A rank that is killed ends the others, also before they watch each other. In an orderly end no rank
        // but the first exits with another code than 0, after all have said goodbye. Since Slurm 22.05, srun
        // does not inherit cpus-per-task; without it, srun may bind a rank to one core.
        let mut words = vec!["srun".to_owned(), "--kill-on-bad-exit=1".to_owned()];
        words.push(match threads {
            0 => "--cpu-bind=none".to_owned(),
            threads => format!("--cpus-per-task={threads}"),
        });
        // A rank alone needs no MPI, which this program may lack.
        let mpi = if *nodes == 1 { Some("none") } else { *mpi };
        words.extend(mpi.map(|mpi| format!("--mpi={mpi}")));
        words.extend(command.iter().cloned());
        let change = command_line(["cd".to_owned(), "--".to_owned(), directory.clone()]);
        let choice = if mpi.is_some() { String::new() } else { choice_of_type() };
        let stat = command_line(["stat", "-c", "%s", "--", journal].map(str::to_owned));
        let _ = write!(
            text,
            "\n{change} || exit\n{choice}# A run that begins adds to the journal.\njournal_bytes() {{ {stat} 2>/dev/null; }}\n\
             before=$(journal_bytes)\n{}\n{TAIL}",
            command_line(words)
        );
        text
    }
}

/// Returns lines of the script that choose how ranks find each other, unless the environment says it.
fn choice_of_type() -> String {
    format!(
        "\
# How ranks find each other: the first of these that this site offers.
for type in {}; do
    if [ -z \"$SLURM_MPI_TYPE\" ] && srun --mpi=list 2>&1 | grep -qw \"$type\"; then
        export SLURM_MPI_TYPE=$type
    fi
done
",
        mpi_types()
    )
}

/// Returns the `awari run` command with the changes of this command.
fn command(manifest: String, changes: &ChangeArgs) -> Result<Vec<String>> {
    // By its path: the search path of the nodes may have another program of this name, or none.
    let program = std::env::current_exe().map_or_else(|_| Ok("awari".to_owned()), |path| text(&path))?;
    let mut words = vec![program, "run".to_owned(), manifest, format!("--attempts={ATTEMPTS_MAX}")];
    // With `=`, the value may begin with a hyphen.
    words.extend(changes.set.iter().map(|(key, value)| format!("--set={key}={value}")));
    words.extend(changes.threads.map(|threads| format!("--threads={threads}")));
    words.extend(changes.memory.map(|memory| format!("--memory={memory}")));
    if let Some(dir) = &changes.dir {
        words.push(format!("--dir={}", text(dir)?));
    }
    Ok(words)
}

/// Names a job after its manifest, in characters that need no quotes.
fn job_name(manifest: &Path) -> String {
    let stem = manifest.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let stem: String = stem.chars().take(NAME_CHARACTERS_MAX).map(plain).collect();
    format!("awari-{stem}")
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| CliError::PathNotText(path.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_request_the_resources_of_the_manifest() {
        let script = JobScript {
            name: job_name(Path::new("some where/it's\n#SBATCH.toml")),
            nodes: 4,
            threads: 8,
            memory_bytes: (3 << 30) + 1,
            time: Some("1-00:00:00"),
            mpi: Some("pmix"),
            directory: "/home/a b".to_owned(),
            journal: "it's/journal".to_owned(),
            command: ["awari", "run", "m.toml", "--dir=it's"].map(str::to_owned).into(),
        };
        let head = "#!/bin/bash\n#SBATCH --job-name=awari-it_s__SBATCH\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\n\
             #SBATCH --cpus-per-task=8\n#SBATCH --mem=3073M\n#SBATCH --time=1-00:00:00\n#SBATCH --signal=USR1@600\n\
             #SBATCH --requeue\n#SBATCH --open-mode=append\n\ncd -- '/home/a b' || exit\n\
             # A run that begins adds to the journal.\n\
             journal_bytes() { stat -c %s -- 'it'\\''s/journal' 2>/dev/null; }\nbefore=$(journal_bytes)\n\
             srun --kill-on-bad-exit=1 --cpus-per-task=8 --mpi=pmix awari run m.toml '--dir=it'\\''s'\n";
        assert_eq!(script.text(), format!("{head}{TAIL}"));
        let all_cores = JobScript { threads: 0, time: None, mpi: None, ..script }.text();
        assert!(all_cores.contains("\n#SBATCH --exclusive\n") && all_cores.contains(" --cpu-bind=none awari "));
        assert!(!all_cores.contains("cpus-per-task") && !all_cores.contains("--time"));
        assert!(all_cores.contains("export SLURM_MPI_TYPE=$type") && !all_cores.contains("--mpi=p"));
    }

    #[test]
    fn a_rank_alone_needs_no_mpi() {
        let script = JobScript {
            name: String::new(),
            nodes: 1,
            threads: 1,
            memory_bytes: 1,
            time: None,
            mpi: None,
            directory: String::new(),
            journal: String::new(),
            command: vec!["awari".to_owned()],
        };
        let text = script.text();
        assert!(text.contains(" --mpi=none awari\n") && !text.contains("SLURM_MPI_TYPE"), "{text}");
    }
}
