//! This build side by side with its portable kernels and with other builds of `awari`: whole commands, in turn.
//!
//! Each is a child process that builds the same databases from nothing, for each method and number of
//! threads; the least seconds of some rounds count. All must make the same scores. What is measured as this
//! build is the program linked into this bench, so it is never an older one; others are given as binaries:
//!
//! ```sh
//! cargo bench -p bench --bench releases -- --against 0.1=/path/of/awari
//! ```

use bench::{AWARI, is_awari};
use clap::Parser;
use disk::{Digest, RealDisk};
use game::PositionSet;
use solvers::Kernel;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};
use store::Scores;

/// Compares builds of `awari`.
#[derive(Parser)]
struct ReleasesArguments {
    /// The most stones.
    #[arg(long, default_value_t = 18)]
    stones: u32,
    /// Methods.
    #[arg(long, value_delimiter = ',', default_value = "sweep,two-bit")]
    methods: Vec<String>,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least of each build counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// raw, packed or zstd.
    #[arg(long, default_value = "packed")]
    codec: String,
    /// Another build: what to call it, and its binary.
    #[arg(long, value_name = "NAME=PATH", value_parser = other)]
    against: Vec<(String, PathBuf)>,
    /// Where to build.
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn other(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=PATH")?;
    // Cargo starts benches elsewhere than where it was started itself.
    let path = fs::canonicalize(path).map_err(|error| format!("{path}: {error}; give the whole path"))?;
    Ok((name.to_owned(), path))
}

/// A build of `awari`.
struct ComparedBuild {
    name: String,
    binary: PathBuf,
    kernel: Option<Kernel>,
}

/// Wall-clock and processor time of a command.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

fn main() -> ExitCode {
    if is_awari() {
        return awari::main();
    }
    let arguments = bench::arguments(|tiny: &mut ReleasesArguments| (tiny.stones, tiny.rounds) = (6, 1));
    let builds = builds(&arguments);
    let positions: u64 = (0..=arguments.stones).map(|stones| PositionSet::All.positions(stones)).sum();
    let mut table = bench::table("method|threads|build|seconds|of CPU|M/s of CPU|ratio of CPU", 3);
    for method in &arguments.methods {
        for &threads in &arguments.threads {
            let took = rounds(&arguments, &builds, method, threads);
            for (build, taken) in builds.iter().zip(&took) {
                table.add_row([
                    method.clone(),
                    threads.to_string(),
                    build.name.clone(),
                    format!("{:.2}", taken.wall),
                    format!("{:.2}", taken.cpu),
                    format!("{:.1}", positions as f64 / taken.cpu / 1e6),
                    format!("{:.2}", taken.cpu / took[0].cpu),
                ]);
            }
        }
    }
    let ReleasesArguments { stones, codec, rounds, .. } = &arguments;
    println!("0 to {stones} stones, {positions} positions, codec {codec}, the least of {rounds} round(s)");
    println!("{table}");
    ExitCode::SUCCESS
}

/// This build with each kernel to compare, and the other builds.
fn builds(arguments: &ReleasesArguments) -> Vec<ComparedBuild> {
    let this = env::current_exe().expect("a process has a program");
    let mut kernels = vec![Kernel::detect(), Kernel::Portable];
    kernels.dedup();
    let this = kernels.into_iter().map(|kernel| ComparedBuild {
        name: format!("this, {kernel}"),
        binary: this.clone(),
        kernel: Some(kernel),
    });
    let others = arguments.against.iter().map(|(name, binary)| ComparedBuild {
        name: name.clone(),
        binary: binary.clone(),
        kernel: None,
    });
    this.chain(others).collect()
}

/// Runs all builds in turn, for some rounds. Returns the least times of each.
fn rounds(arguments: &ReleasesArguments, builds: &[ComparedBuild], method: &str, threads: usize) -> Vec<Took> {
    let mut least = vec![Took { wall: f64::INFINITY, cpu: f64::INFINITY }; builds.len()];
    let mut expected = None;
    for _ in 0..arguments.rounds {
        for (build, least) in builds.iter().zip(&mut least) {
            let (took, digests) = run(arguments, build, method, threads);
            *least = Took { wall: least.wall.min(took.wall), cpu: least.cpu.min(took.cpu) };
            let same = expected.get_or_insert_with(|| digests.clone());
            assert!(digests == *same, "{}: {method} makes the same scores", build.name);
        }
    }
    least
}

/// Builds all databases from nothing. Returns the times and the content digests.
fn run(arguments: &ReleasesArguments, build: &ComparedBuild, method: &str, threads: usize) -> (Took, Vec<Digest>) {
    let temporary = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let temporary = temporary.expect("there is a temporary directory");
    let manifest = temporary.path().join("m.toml");
    let ReleasesArguments { stones, codec, .. } = arguments;
    let text = format!(
        "[build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nmemory = \"4 GiB\"\n\n[store]\ncodec = \"{codec}\"\n"
    );
    fs::write(&manifest, text).expect("a file can be written");
    let directory = temporary.path().join("run");
    let mut command = Command::new(&build.binary);
    command.arg0(AWARI).arg("run").arg(&manifest).arg("--dir").arg(&directory);
    command.args(["--threads", &threads.to_string(), "--progress", "none"]);
    if let Some(kernel) = build.kernel {
        command.args(["--kernel", &kernel.to_string()]);
    }
    let (cpu, begun) = (children_cpu_seconds(), Instant::now());
    let output = command.stdin(Stdio::null()).output().expect("the build can be started");
    let took = Took { wall: begun.elapsed().as_secs_f64(), cpu: children_cpu_seconds() - cpu };
    assert!(output.status.success(), "{}: {}", build.name, String::from_utf8_lossy(&output.stderr));
    let digest = |stones| digest(&directory, stones);
    (took, (0..=*stones).map(digest).collect())
}

fn digest(directory: &Path, stones: u32) -> Digest {
    let path = directory.join(format!("databases/{stones:02}.awari"));
    Scores::open(&RealDisk::default(), &path).expect("the database was built").digest()
}

/// Processor seconds of all children that have ended, in ticks of the kernel (proc(5)).
fn children_cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("Linux describes processes");
    // The name, in parentheses, may hold anything.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks are a number")).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}
