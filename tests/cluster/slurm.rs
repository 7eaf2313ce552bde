//! Jobs of a real Slurm, of three nodes on this machine: requeued at their time limit and after kills,
//! cancelled, and resumed by fewer nodes. Needs `--features mpi`, root, and the packages of Slurm and MUNGE.

use super::mpi::{MpiBuild, signal, stderr_of};
use disk::{ProcessIdentity, ProcessState, RealDisk};
use stages::distributed::RankSign;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tests::awari;
use tests::needs::Need;

/// Time after which a job counts as hung.
const PATIENCE: Duration = Duration::from_secs(240);

/// Time within which a job must notice that it lost a rank of this machine.
const NOTICE: Duration = Duration::from_secs(10);

/// Time within which cancelled jobs end.
const CANCEL: Duration = Duration::from_secs(20);

const NODES: usize = 3;

/// A running Slurm, which ends when it is dropped.
struct Slurm {
    place: tempfile::TempDir,
}

impl Slurm {
    /// Starts a Slurm in which a requeued job waits for five seconds, the least that Slurm accepts, and
    /// `srun` does not let ranks find each other unless its options say how.
    fn start() -> Slurm {
        let slurm = Slurm { place: tempfile::tempdir().unwrap() };
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (folder, host) = (slurm.place.path().display(), host.trim());
        // Held together, so that they differ.
        let listeners: Vec<_> = (0..=NODES).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(listeners);
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={host}\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=cred_expire=5\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n\
             SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=1,sched_interval=1\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool.%n\n\
             SlurmctldPidFile={folder}/controller.pid\nSlurmdPidFile={folder}/%n.pid\nSlurmctldLogFile={folder}/controller.log\n\
             SlurmdLogFile={folder}/%n.log\nSwitchType=switch/none\nReturnToService=2\nSlurmctldTimeout=10\nSlurmdTimeout=10\n\
             KillWait=5\nJobRequeue=1\nMpiDefault=none\nSlurmdParameters=config_overrides\n",
            ports[NODES]
        );
        for (node, port) in (1..).zip(&ports[..NODES]) {
            text += &format!(
                "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=8000\n"
            );
            fs::create_dir_all(slurm.path(&format!("spool.n{node}"))).unwrap();
        }
        text +=
            &format!("PartitionName=p Nodes=n[1-{NODES}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n");
        fs::write(slurm.path("slurm.conf"), text).unwrap();
        fs::create_dir_all(slurm.path("state")).unwrap();
        start_munge();
        slurm.run("slurmctld", &["-i"]);
        for node in 1..=NODES {
            slurm.run("slurmd", &["-N", &format!("n{node}")]);
        }
        wait("the nodes are not idle", || {
            let idle = slurm.output("sinfo", &["-h", "-N", "-t", "idle"]);
            (String::from_utf8_lossy(&idle.stdout).lines().count() == NODES).then_some(())
        });
        slurm
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.path("slurm.conf")).stdin(Stdio::null());
        // Messages go over TCP, as between machines: where UCX copies from the memory of a process that was
        // killed, it aborts.
        command.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", "lo");
        command.output().unwrap()
    }

    /// Runs a command, which must succeed, and returns its output.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.output(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {}", stderr_of(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns a field of a job, as `scontrol show job` names it.
    fn field(&self, job: &str, name: &str) -> String {
        let shown = self.run("scontrol", &["show", "job", "-o", job]);
        let field = shown.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        field.unwrap_or_else(|| panic!("{shown} has no {name}")).to_owned()
    }

    fn wait_for_restart(&self, job: &SlurmJob, restarts: u32) {
        wait(&format!("job {} is not requeued", job.number), || {
            (self.field(&job.number, "Restarts") == restarts.to_string()).then_some(())
        });
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // After a failure there may be jobs, whose processes end with their daemons only if these are asked.
        self.output("scancel", &["--user=root"]);
        let end = Instant::now() + CANCEL;
        while !self.output("squeue", &["-h"]).stdout.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200));
        }
        let daemons = (1..=NODES).map(|node| format!("n{node}.pid")).chain(["controller.pid".to_owned()]);
        for file in daemons {
            let process = fs::read_to_string(self.path(&file)).ok().and_then(|text| text.trim().parse().ok());
            let Some(process) = process else { continue };
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            // One that was killed has left its file.
            if name.starts_with("slurm") {
                signal(process, "TERM");
            }
        }
    }
}

/// Starts the daemon that Slurm authenticates with, unless it runs already.
fn start_munge() {
    let script = "munge -n >/dev/null 2>&1 && exit; mkdir -p /run/munge && chown munge /run/munge
        if [ ! -f /etc/munge/munge.key ]; then
            dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 status=none
            chown munge /etc/munge/munge.key && chmod 400 /etc/munge/munge.key
        fi
        su -s /bin/sh munge -c munged";
    let status = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "munged cannot be started");
}

/// Repeats a look until it finds something.
fn wait<T>(failure: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{failure}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A submitted job, by the script that the program prints.
struct SlurmJob<'a> {
    build: &'a MpiBuild,
    number: String,
    output: PathBuf,
}

impl<'a> SlurmJob<'a> {
    /// Submits a build. `edit` changes the script: the program allows no time limits of a minute.
    fn submit(slurm: &Slurm, build: &'a MpiBuild, nodes: usize, edit: impl FnOnce(String) -> String) -> SlurmJob<'a> {
        let mut command = Command::new(awari());
        command.arg("slurm-script").arg(build.write_manifest()).arg("--dir").arg(build.run());
        command.args(["--nodes", &nodes.to_string(), "--threads", "1", "--memory", "2GiB"]);
        let script = command.output().unwrap();
        assert!(script.status.success(), "{}", stderr_of(&script));
        let place = build.run().parent().unwrap().to_owned();
        let (path, output) = (place.join(format!("job-{nodes}.sh")), place.join(format!("job-{nodes}.out")));
        fs::write(&path, edit(String::from_utf8(script.stdout).unwrap())).unwrap();
        let submitted = slurm.run("sbatch", &["--parsable", "-o", output.to_str().unwrap(), path.to_str().unwrap()]);
        SlurmJob { build, number: submitted.trim().to_owned(), output }
    }

    fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits until this many databases are published, and returns the process of a rank that runs then.
    fn process_after(&self, databases: usize, rank: usize) -> ProcessIdentity {
        wait(&format!("no {databases} databases"), || {
            let found = fs::read_dir(self.build.run().join("databases")).map_or(0, Iterator::count);
            let sign = RankSign::read(&RealDisk::default(), &self.build.run(), rank)?;
            (found >= databases && sign.process.state() == ProcessState::Alive).then_some(sign.process)
        })
    }

    /// Ends processes, of which the last is a rank, and waits until the job says that it lost that rank. If a
    /// stage ends just then, the signal by which Slurm ends the other ranks comes first, and the job says
    /// that it was stopped.
    fn lose(&self, processes: &[u32], rank: usize, process: &ProcessIdentity) {
        let before = self.printed().len();
        for &killed in processes.iter().chain([&process.pid]) {
            assert!(signal(killed, "KILL"));
        }
        let message = format!("rank {rank} (process {} on {}) died", process.pid, process.host);
        let end = Instant::now() + NOTICE;
        loop {
            let printed = self.printed();
            let new = printed.get(before..).unwrap_or_default();
            if new.contains(&message) || new.contains("to resume:") {
                return;
            }
            assert!(Instant::now() < end, "the others do not notice it: {printed}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until no rank is left.
    fn wait_for_ranks(&self) {
        wait("ranks are left", || self.build.ranks().is_empty().then_some(()));
    }
}

/// Returns a variable of the environment of a process.
fn variable(process: u32, name: &str) -> String {
    let all = fs::read(format!("/proc/{process}/environ")).unwrap();
    let all = String::from_utf8_lossy(&all).into_owned();
    let value = all.split('\0').find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("process {process} has no {name}")).to_owned()
}

/// Returns the parent of a process.
fn parent(process: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.unwrap().trim().parse().unwrap()
}

#[test]
#[ignore = "slow tier: jobs of processes"]
fn jobs_survive_limits_and_kills() {
    if !Need::Slurm.is_met() {
        return;
    }
    let expected = MpiBuild::new("all", "sweep", 14).finish(None);
    let slurm = Slurm::start();

    // A job with a limit of a minute, so large that it does not end within on a fast machine, and of one
    // rank, so that it does not disturb.
    let large = MpiBuild::new("all", "two-bit", 25);
    let limited = SlurmJob::submit(&slurm, &large, 1, |script| {
        let limited = script.replace("--signal=USR1@600", "--signal=USR1@60\n#SBATCH --time=1");
        assert_ne!(limited, script);
        limited
    });

    // A killed rank.
    let build = MpiBuild::new("all", "sweep", 14);
    let job = SlurmJob::submit(&slurm, &build, NODES, |script| script);
    let process = job.process_after(8, 1);
    job.lose(&[], 1, &process);
    slurm.wait_for_restart(&job, 1);

    // A node that goes down, with its daemon and its part of the step.
    let (first, process) = (job.process_after(10, 0), job.process_after(10, 2));
    let node = variable(process.pid, "SLURMD_NODENAME");
    let daemon: u32 = fs::read_to_string(slurm.path(&format!("{node}.pid"))).unwrap().trim().parse().unwrap();
    job.lose(&[daemon, parent(process.pid)], 2, &process);
    wait("rank 0 is left behind", || (first.state() == ProcessState::Ended).then_some(()));

    // The limit.
    slurm.wait_for_restart(&limited, 1);
    assert!(limited.printed().contains("to resume:"), "{}", limited.printed());
    for job in [&job, &limited] {
        slurm.run("scancel", &[&job.number]);
        wait("the job is not cancelled", || (slurm.field(&job.number, "JobState") == "CANCELLED").then_some(()));
        job.wait_for_ranks();
    }

    // Two nodes instead of three.
    let rest = SlurmJob::submit(&slurm, &build, 2, |script| script);
    wait("the job does not end", || (slurm.field(&rest.number, "JobState") == "COMPLETED").then_some(()));
    assert_eq!(slurm.field(&rest.number, "Restarts"), "0", "{}", rest.printed());
    assert!(build.files() == expected, "{}", rest.printed());

    // Ranks that do not find each other.
    let apart = MpiBuild::new("all", "sweep", 3);
    let (manifest, run) = (apart.write_manifest(), apart.run());
    let command =
        ["-N2", "-n2", "--mpi=none", awari(), "run", manifest.to_str().unwrap(), "--dir", run.to_str().unwrap()];
    let output = slurm.output("srun", &command);
    assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
    assert_eq!(stderr_of(&output).matches("the launcher started 2 processes").count(), 1, "{}", stderr_of(&output));
    assert!(!run.exists());
}
