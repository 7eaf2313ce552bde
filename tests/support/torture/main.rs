//! Simulates jobs from seeds, injects faults into builds by the thousand, kills the program by the hundred,
//! damages files under concurrent commands, and counts the outcomes.
//!
//! `cargo build --release -p tests --bins && cargo run --release -p tests --bin torture -- --faults 10000 --kills 200`

use clap::Parser;
use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use planner::Method;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tests::torture::{FaultClass, FaultReport, FaultRuns, KillReport, Kills, Simulation, Simulations, Storms};

/// Disturbs builds, resumes them, and compares them byte for byte with undisturbed ones.
#[derive(Parser)]
#[command(name = "torture")]
struct Args {
    /// Cases of injected faults, spread over classes and methods; from 10,000 on, builds by sweep are struck at every
    /// single operation.
    #[arg(long, default_value_t = 10_000)]
    faults: u64,
    /// Kills of the program.
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Storms of concurrent commands in damaged directories.
    #[arg(long, default_value_t = 20)]
    storms: u64,
    /// Seed of the pseudo-random generator.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cases or builds at once; 0 is one a core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Only faults of this class.
    #[arg(long)]
    class: Option<FaultClass>,
    /// Only builds by this method.
    #[arg(long)]
    method: Option<Method>,
    /// Only the case of this number.
    #[arg(long)]
    case: Option<u64>,
    /// Simulated jobs, with consecutive seeds.
    #[arg(long, default_value_t = 100)]
    jobs: u64,
    /// Only the simulated job of this seed.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["jobs", "seed"])]
    job: Option<u64>,
    /// Seconds after which no further simulated job or storm begins.
    #[arg(long, default_value_t = 3600)]
    seconds: u64,
    /// Only the killed build of this number.
    #[arg(long)]
    kill: Option<u64>,
    /// Only the storm of this number.
    #[arg(long, conflicts_with_all = ["jobs", "faults", "kills"])]
    storm: Option<u64>,
    /// The program to kill; otherwise the one beside this one.
    #[arg(long)]
    awari: Option<PathBuf>,
    /// Prints the table as Markdown.
    #[arg(long)]
    markdown: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seed) = args.job {
        let simulation = Simulation::new(seed);
        println!("{simulation}");
        return ended(&simulations(Simulations { seed, jobs: 1, threads: 1, time_max: Duration::MAX }));
    }
    if args.storm.is_some() {
        return ended(&storms(&args));
    }
    let mut wrong = Vec::new();
    if args.jobs > 0 && args.case.is_none() && args.kill.is_none() {
        let (seed, jobs, threads) = (args.seed, args.jobs, threads(&args));
        wrong.extend(simulations(Simulations { seed, jobs, threads, time_max: Duration::from_secs(args.seconds) }));
    }
    if args.faults > 0 && args.kill.is_none() {
        let start = Instant::now();
        let report = faults(&args);
        println!("{}", report.table(if args.markdown { ASCII_MARKDOWN } else { NOTHING }));
        println!("seed {}, {} cases in {:.0} s\n", args.seed, report.all.cases, start.elapsed().as_secs_f64());
        wrong.extend(report.wrong);
    }
    if (args.kills > 0 && args.case.is_none()) || args.kill.is_some() {
        let start = Instant::now();
        match kills(&args) {
            Ok(report) => {
                println!("{}; {:.0} s", summary(&report), start.elapsed().as_secs_f64());
                wrong.extend(report.wrong);
            }
            Err(error) => wrong.push(error),
        }
    }
    if args.storms > 0 && args.case.is_none() && args.kill.is_none() {
        wrong.extend(storms(&args));
    }
    ended(&wrong)
}

fn ended(wrong: &[String]) -> ExitCode {
    for wrong in wrong {
        eprintln!("WRONG: {wrong}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Time after which a job counts as hung.
const JOB_TIME_MAX: Duration = Duration::from_secs(300);

/// Runs simulated jobs, and returns the mistakes. A job that hangs ends the program.
fn simulations(simulations: Simulations) -> Vec<String> {
    let start = Instant::now();
    let running = Arc::new(Mutex::new(BTreeMap::<u64, Instant>::new()));
    let lock = || running.lock().expect("nothing panics while it holds the lock");
    let watched = Arc::downgrade(&running);
    std::thread::spawn(move || {
        while let Some(running) = watched.upgrade() {
            let jobs = running.lock().map(|jobs| jobs.clone()).unwrap_or_default();
            if let Some((seed, _)) = jobs.iter().find(|(_, begun)| begun.elapsed() > JOB_TIME_MAX) {
                eprintln!("WRONG: torture --job {seed}: it hangs");
                std::process::exit(1);
            }
            drop(running);
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let begins = |seed| {
        lock().insert(seed, Instant::now());
    };
    let ends = |seed| {
        lock().remove(&seed);
    };
    let simulated = simulations.run(begins, ends);
    let seconds = start.elapsed().as_secs_f64();
    println!("simulated jobs from seed {} on, in {seconds:.0} s: {simulated}", simulations.seed);
    simulated.wrong
}

fn threads(args: &Args) -> usize {
    if args.threads == 0 { disk::clock::cores() } else { args.threads }
}

fn faults(args: &Args) -> FaultReport {
    let mut faults = FaultRuns::new(args.seed, args.faults);
    faults.threads = threads(args);
    faults.only = args.case;
    faults.classes = args.class.map_or(faults.classes, |class| vec![class]);
    faults.methods = args.method.map_or(faults.methods, |method| vec![method]);
    faults.run()
}

/// The program to disturb.
fn awari(args: &Args) -> Result<PathBuf, String> {
    let awari = match &args.awari {
        Some(path) => path.clone(),
        None => {
            let here = std::env::current_exe().map_err(|error| error.to_string())?;
            here.with_file_name("awari-under-test")
        }
    };
    if awari.is_file() {
        Ok(awari)
    } else {
        Err(format!(
            "there is no {}; cargo build --release -p tests --bins makes it, or say --awari PATH",
            awari.display()
        ))
    }
}

/// Runs storms, and returns the mistakes.
fn storms(args: &Args) -> Vec<String> {
    let start = Instant::now();
    let report = awari(args).and_then(|awari| {
        let storms = Storms {
            awari,
            seed: args.seed,
            storms: args.storms,
            threads: threads(args),
            time_max: Duration::from_secs(args.seconds),
            methods: args.method.map_or(Method::ALL.to_vec(), |method| vec![method]),
            only: args.storm,
        };
        storms.run().map_err(|error| error.to_string())
    });
    match report {
        Ok(report) => {
            println!("{}; {:.0} s", report.table(), start.elapsed().as_secs_f64());
            report.wrong
        }
        Err(error) => vec![error],
    }
}

fn kills(args: &Args) -> Result<KillReport, String> {
    let kills = Kills {
        awari: awari(args)?,
        seed: args.seed,
        kills: args.kills.max(1),
        builds: threads(args),
        methods: args.method.map_or(Method::ALL.to_vec(), |method| vec![method]),
        stones: |method| if method.has_bounds() { 5 } else { 8 },
        only: args.kill,
    };
    kills.run().map_err(|error| error.to_string())
}

fn summary(report: &KillReport) -> String {
    let by: Vec<String> = report.kills.iter().map(|(method, kills)| format!("{method} {kills}")).collect();
    let lost = report.lost().map_or(String::new(), |(median, worst)| {
        let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        format!("; last file before a kill {:.1} ms, at worst {:.1} ms", milliseconds(median), milliseconds(worst))
    });
    format!(
        "{} kills of {} builds ({}): {} wrong{lost}",
        report.total(),
        report.builds,
        by.join(", "),
        report.wrong.len()
    )
}
