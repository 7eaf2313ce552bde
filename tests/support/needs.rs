//! Requirements of tests that not every machine meets.
//!
//! libtest cannot skip a test at run time. A test returns unless [`Need::is_met`], which prints a line past
//! libtest's capture. The target `what_was_skipped` checks each need again, and prints the closing summary.

use crate::control_group::ControlGroup;
use disk::FileSystem;
use disk::machine::{MachineFacts, is_signal_ignored};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The number of the signal of a terminal that is closed.
const SIGHUP: i32 = 1;

/// Memory of a control group that is made for a try.
const GROUP_BYTES: u64 = 64 << 20;

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// `bash`.
    Bash,
    /// `curl`.
    Curl,
    /// `man`.
    Man,
    /// `zsh`.
    Zsh,
    /// `fish`.
    Fish,
    /// Chromium and its `chromedriver`.
    Chromium,
    /// The script of axe-core, in the file that `AWARI_AXE` names.
    Axe,
    /// NumPy, in the interpreter of [`python`].
    Numpy,
    /// The package zstandard, in the same.
    Zstandard,
    /// The package blake3, in the same.
    Blake3,
    /// The packages maturin, pandas and polars, besides the three above, in the same.
    PythonPackages,
    /// The package open-spiel, in the same.
    OpenSpiel,
    /// `io_uring`.
    Ring,
    /// Files off the page cache in the temporary directory.
    DirectFiles,
    /// The root user, who may act as another user.
    Root,
    /// SIGHUP, which `nohup` ignores for all processes below it.
    Hangup,
    /// `mpirun`.
    Mpirun,
    /// Root, MPICH and the tools of network namespaces.
    Namespaces,
    /// Root, Slurm with its daemons, and MUNGE.
    Slurm,
    /// Root, a mount namespace and an ext4 file system on a loop device.
    LoopDevice,
    /// Root, and control groups whose memory is limited.
    ControlGroups,
}

impl Need {
    /// The needs of `cargo test --workspace`.
    pub const OF_THE_FAST_TIER: [Need; 11] = [
        Need::Bash,
        Need::Man,
        Need::Zsh,
        Need::Fish,
        Need::Numpy,
        Need::Zstandard,
        Need::Blake3,
        Need::Ring,
        Need::DirectFiles,
        Need::Root,
        Need::Hangup,
    ];

    /// The needs of the tests that are ignored by default.
    pub const OF_THE_SLOW_TIER: [Need; 10] = [
        Need::Bash,
        Need::Curl,
        Need::Numpy,
        Need::Zstandard,
        Need::Blake3,
        Need::PythonPackages,
        Need::OpenSpiel,
        Need::Root,
        Need::LoopDevice,
        Need::ControlGroups,
    ];

    /// The needs of the tests that the feature `mpi` adds.
    pub const OF_MPI: [Need; 3] = [Need::Mpirun, Need::Namespaces, Need::Slurm];

    /// The tests that are skipped without it.
    pub fn tests(self) -> &'static str {
        match self {
            Need::Bash => "pipeline (slurm_script, help_examples, guide_commands, share)",
            Need::Curl => "pipeline (guide_commands)",
            Need::Man => "pipeline (share, manual pages)",
            Need::Zsh => "pipeline (share, completions of zsh)",
            Need::Fish => "pipeline (share, completions of fish)",
            Need::Chromium => "page",
            Need::Axe => "page (accessibility by axe-core)",
            Need::Numpy => "formats (python_reader)",
            Need::Zstandard => "formats (python_reader, codec zstd)",
            Need::Blake3 => "formats (python_reader, checksums)",
            Need::PythonPackages => "formats (python_package)",
            Need::OpenSpiel => "solvers (openspiel)",
            Need::Ring => "pipeline (commands) and disk (io_modes), io_uring",
            Need::DirectFiles => "disk (io_modes), writes behind and traffic",
            Need::Root => "hostile (limits::few_threads, special_files), links of another user",
            Need::Hangup => "hostile (limits::a_closed_terminal_stops_a_run)",
            Need::Mpirun => "cluster (mpi) and mpi-messaging (launched)",
            Need::Namespaces => "cluster (mpi::ranks_in_namespaces_build_the_files_of_one_machine)",
            Need::Slurm => "cluster (slurm)",
            Need::LoopDevice => "hostile (unreadable_sectors, limits::file_systems_that_refuse_files_are_named)",
            Need::ControlGroups => "hostile (memory_budgets)",
        }
    }

    /// The reason why it is missing, if it is.
    pub fn missing(self) -> Option<String> {
        match self {
            Need::Bash => fails("bash", &["--version"]),
            Need::Curl => fails("curl", &["--version"]),
            Need::Man => fails("man", &["--version"]),
            Need::Zsh => fails("zsh", &["--version"]),
            Need::Fish => fails("fish", &["--version"]),
            Need::Chromium => fails("chromedriver", &["--version"]).or_else(|| fails("chromium", &["--version"])),
            Need::Axe => match std::env::var_os("AWARI_AXE") {
                None => Some("AWARI_AXE does not name axe.min.js of axe-core".to_owned()),
                Some(path) => std::fs::metadata(path).err().map(|error| format!("AWARI_AXE: {error}")),
            },
            Need::Numpy => no_module("numpy"),
            Need::Zstandard => no_module("zstandard"),
            Need::Blake3 => no_module("blake3"),
            Need::PythonPackages => no_module("pip, maturin, numpy, zstandard, blake3, pandas, polars"),
            Need::OpenSpiel => no_module("pyspiel"),
            Need::Ring => MachineFacts::inspect().ring_refused,
            Need::DirectFiles => {
                let place = tempfile::tempdir().ok().and_then(|directory| FileSystem::inspect(directory.path()).ok());
                let has_none = !place.is_some_and(|place| place.direct);
                has_none.then(|| "the temporary directory has no files off the page cache".to_owned())
            }
            Need::Root => {
                let shell = "test \"$(id -u)\" = 0";
                fails("sh", &["-c", shell]).map(|_| "not the root user".to_owned())
            }
            Need::Hangup => is_signal_ignored(SIGHUP).then(|| "SIGHUP is ignored, as under nohup".to_owned()),
            Need::Mpirun => fails("mpirun", &["--version"]),
            Need::Namespaces => {
                let script = crate::root().join("tests/cluster/namespaces/run.sh");
                fails(script, &["--check"]).map(|_| "root, iproute2, ethtool, Python and MPICH are needed".to_owned())
            }
            Need::Slurm => {
                let check =
                    "test \"$(id -u)\" = 0 && slurmctld -V && slurmd -V && command -v srun && command -v munged";
                fails("sh", &["-c", check]).map(|_| "root, slurmctld, slurmd, srun and munged are needed".to_owned())
            }
            Need::LoopDevice => {
                let check = "set -e; filefrag -V; findmnt -V; directory=$(mktemp -d); trap 'rm -rf $directory' EXIT
                    cd $directory; truncate -s 8M image; mkfs.ext4 -q -F image; mkdir at; mount -o loop image at; umount at";
                fails("unshare", &["--mount", "--propagation", "private", "sh", "-c", check])
                    .map(|_| "root, loop devices, mkfs.ext4, filefrag and findmnt are needed".to_owned())
            }
            Need::ControlGroups => {
                let group = ControlGroup::with_memory(GROUP_BYTES);
                group.err().map(|error| format!("root, and control groups of memory, are needed ({error})"))
            }
        }
    }

    /// Whether it is met. If not, prints the skipped tests and the reason.
    pub fn is_met(self) -> bool {
        let skipped = self.skipped();
        if let Some(line) = &skipped {
            // Not with `eprintln!`, which libtest captures.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        skipped.is_none()
    }

    /// The line that names the skipped tests and the reason, if it is not met.
    pub fn skipped(self) -> Option<String> {
        self.missing().map(|why| format!("skipped: {}: {}", self.tests(), why.replace('\n', " ")))
    }
}

/// The interpreter of Python: `python3`, or that of the variable `AWARI_PYTHON`.
pub fn python() -> OsString {
    std::env::var_os("AWARI_PYTHON").unwrap_or_else(|| "python3".into())
}

fn no_module(module: &str) -> Option<String> {
    let python = python();
    fails(&python, &["-c", &format!("import {module}")])
        .map(|_| format!("{} cannot import {module}", Path::new(&python).display()))
}

/// The reason why a command fails, if it does.
fn fails(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Option<String> {
    let name = Path::new(program.as_ref()).display().to_string();
    let mut command = Command::new(program);
    match command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("{name} fails ({status})")),
        Err(error) => Some(format!("{name} cannot be run: {error}")),
    }
}
