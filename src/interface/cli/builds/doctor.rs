//! `awari doctor`: checks whether the machine and a directory are fit for a run.

use crate::args::DoctorArgs;
use crate::builds::hardware_file;
use crate::error::{CliError, Result};
use crate::files::databases::holds_artifacts;
use crate::output::{print_json, print_text};
use crate::text::quantity;
use crate::text::terminal::say;
use disk::machine::{MachineFacts, Speed, probe_lock};
use disk::{Disk, FileSystem, Io, IoChoice, RealDisk, clock};
use pipeline::{Budget, Directory, Exit, PathText};
use serde_json::json;
use solvers::Kernel;
use std::path::{Path, PathBuf};

/// Lines of the report that several findings are about.
const DIRECTORY: &str = "directory";
const FILE_SYSTEM: &str = "file system";
const FREE_SPACE: &str = "free space";

/// Returns the line about the speed of the disk.
fn disk_line(io: Io) -> &'static str {
    if io == Io::Uring { "disk by uring" } else { "disk by plain" }
}

/// The least free space: enough for the databases of a few stones.
const FREE_BYTES_MIN: u64 = 16 << 20;

/// The least limit on open files: a run needs a few per thread.
const OPEN_FILES_MIN: u64 = 256;

/// The longest sync time that does not noticeably delay stages.
const SYNC_SECONDS_MAX: f64 = 0.05;

pub(crate) fn run(args: &DoctorArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let dir = args.dir.as_deref().unwrap_or(Path::new("."));
    let exists = dir.is_dir();
    let measured_dir = nearest(dir);
    let mut findings = Vec::new();
    if let Some(dir) = &args.dir {
        of_directory(&disk, dir, &mut findings);
    }
    let machine = MachineFacts::inspect();
    let kernels: Vec<String> = Kernel::available().map(|kernel| kernel.to_string()).collect();
    of_machine(&machine, &kernels, &mut findings);
    let storage = match FileSystem::inspect(&measured_dir) {
        Ok(storage) => {
            of_storage(&storage, &mut findings);
            Some(storage)
        }
        Err(error) => {
            findings.push(DoctorFinding::problem(FILE_SYSTEM, format!("{error}; a run would be refused there")));
            None
        }
    };
    let mut speeds = Vec::new();
    if let Some(storage) = &storage {
        of_lock(&disk, &measured_dir, exists, &mut findings);
        let bytes = args.bytes.bytes().min(storage.free_bytes / 2);
        if bytes < args.bytes.bytes() {
            let (asked, used) = (args.bytes, Budget::show(bytes));
            findings.push(DoctorFinding::note(
                FREE_SPACE,
                format!("the speed of the disk is measured with {used}, half of the free space, instead of {asked}"),
            ));
        }
        for io in [Io::Uring, Io::Plain] {
            if bytes > 0
                && let Ok(disk) = RealDisk::new(io)
            {
                match Speed::measure(&disk, &measured_dir, bytes) {
                    Ok(speed) => speeds.push((io, speed)),
                    Err(error) => findings.push(DoctorFinding::problem(FILE_SYSTEM, error.to_string())),
                }
            }
        }
        if let Some((io, _)) = speeds.iter().find(|(_, speed)| speed.sync_seconds > SYNC_SECONDS_MAX) {
            findings.push(DoctorFinding::note(
                disk_line(*io),
                "the disk is slow to make writes durable; the bound methods publish hundreds of files, so use sweep \
                 or a faster disk"
                    .to_owned(),
            ));
        }
    }
    let core_speed = args.write_hardware.is_some().then(hardware_file::core_speed).transpose()?;
    let report = MachineReport { machine, kernels, measured_dir, storage, speeds, core_speed, exists, dir, findings };
    if args.json {
        print_json(&report.json())?;
    } else {
        print_text(&report.text())?;
    }
    if let (Some(path), Some(core_speed)) = (&args.write_hardware, core_speed) {
        let (Some(storage), Some(disk_speed)) = (&report.storage, report.speed()) else {
            return Err(CliError::DiskNotMeasured);
        };
        let text = hardware_file::text(core_speed, disk_speed, storage.free_bytes);
        disk.deliver(path, text.as_bytes())?;
        say(format_args!("{} written, for `awari plan --hardware`", path.display()));
    }
    let is_problem = |finding: &DoctorFinding| finding.is_problem;
    Ok(if report.findings.iter().any(is_problem) { Exit::PreflightFailed } else { Exit::Done })
}

/// A finding about the machine or the directory.
struct DoctorFinding {
    /// The line of the report that it is about.
    line: &'static str,
    /// Whether a run would fail; if false, it would be slower or less safe.
    is_problem: bool,
    what: String,
}

impl DoctorFinding {
    fn problem(line: &'static str, what: String) -> DoctorFinding {
        DoctorFinding { line, is_problem: true, what }
    }

    fn note(line: &'static str, what: String) -> DoctorFinding {
        DoctorFinding { line, is_problem: false, what }
    }
}

/// Returns the directory, or its nearest existing ancestor.
pub(crate) fn nearest(dir: &Path) -> PathBuf {
    let there = dir.ancestors().find(|at| at.is_dir());
    there.filter(|at| !at.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

/// Checks whether a run could use the directory.
fn of_directory(disk: &RealDisk, dir: &Path, findings: &mut Vec<DoctorFinding>) {
    if dir.is_symlink() && !dir.exists() {
        findings.push(DoctorFinding::problem(DIRECTORY, format!("{} is a link to nothing", dir.display())));
    } else if dir.exists() && !dir.is_dir() {
        findings
            .push(DoctorFinding::problem(DIRECTORY, format!("{} is a file; --dir names a directory", dir.display())));
    } else if let Err(error) = Directory::check(disk, dir, &|| Ok(holds_artifacts(disk, dir))) {
        findings.push(DoctorFinding::problem(DIRECTORY, error.to_string()));
    }
}

fn of_machine(machine: &MachineFacts, kernels: &[String], findings: &mut Vec<DoctorFinding>) {
    if kernels.len() == 1 {
        findings.push(DoctorFinding::note(
            "kernels",
            "the processor has neither AVX2 nor AVX-512; solving takes three times as long".to_owned(),
        ));
    }
    if machine.large_pages.as_deref() == Some("never") {
        findings.push(DoctorFinding::note(
            "large pages",
            "large pages are disabled; `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` enables them"
                .to_owned(),
        ));
    }
    if let Some(why) = &machine.ring_refused {
        findings.push(DoctorFinding::note("io_uring", format!("{why} or --io auto")));
    }
    if let Some(files) = machine.open_files_max.filter(|&files| files < OPEN_FILES_MIN) {
        findings.push(DoctorFinding::problem(
            "open files",
            format!(
                "only {} may be open, expected at least {OPEN_FILES_MIN}; raise the limit with `ulimit -n 1024`",
                quantity::plural(files, "file")
            ),
        ));
    }
}

fn of_storage(storage: &FileSystem, findings: &mut Vec<DoctorFinding>) {
    if storage.free_bytes < FREE_BYTES_MIN {
        let free = Budget::show(storage.free_bytes);
        findings.push(DoctorFinding::problem(
            FREE_SPACE,
            format!("only {free} are free; free some space, or choose another directory"),
        ));
    }
    if storage.free_files.is_some_and(|files| files < 1000) {
        findings.push(DoctorFinding::problem(FREE_SPACE, "the file system has almost no free inodes".to_owned()));
    }
    if storage.is_memory {
        findings.push(DoctorFinding::note(FILE_SYSTEM,
            "files in this directory are in memory: they count against the budget, and are lost when the machine restarts"
                .to_owned(),
        ));
    }
    if storage.is_shared {
        findings.push(DoctorFinding::note(FILE_SYSTEM, format!(
            "{} may be shared with machines that do not share its locks: start only one run (a second one is detected, \
             but its work is lost)",
            storage.file_system
        )));
    }
    if !storage.direct {
        findings.push(DoctorFinding::note(
            "direct I/O",
            "files in this directory use the page cache, which counts against the limit of a control group".to_owned(),
        ));
    }
}

/// Checks the lock, without creating a run directory.
fn of_lock(disk: &RealDisk, measured_dir: &Path, exists: bool, findings: &mut Vec<DoctorFinding>) {
    let finding = match disk.lock_holder(&measured_dir.join("lock")) {
        Ok(Some(holder)) if exists => Some(DoctorFinding::note(DIRECTORY, format!("in use by {holder}"))),
        Err(error) if exists => Some(DoctorFinding::problem(DIRECTORY, error.to_string())),
        _ => None,
    };
    findings.extend(finding);
    if let Err(error) = probe_lock(measured_dir) {
        findings.push(DoctorFinding::problem(DIRECTORY, error.to_string()));
    }
}

/// The report of `awari doctor`.
struct MachineReport<'a> {
    machine: MachineFacts,
    kernels: Vec<String>,
    dir: &'a Path,
    exists: bool,
    measured_dir: PathBuf,
    storage: Option<FileSystem>,
    speeds: Vec<(Io, Speed)>,
    /// Speed of a core, 1 for the reference, if it was measured.
    core_speed: Option<f64>,
    findings: Vec<DoctorFinding>,
}

impl MachineReport<'_> {
    /// The way to the disk that is taken unless a run says otherwise, if both were measured.
    fn choice(&self) -> Option<IoChoice> {
        match self.speeds[..] {
            [(Io::Uring, uring), (Io::Plain, plain)] => Some(IoChoice::new(uring.streams, plain.streams)),
            _ => None,
        }
    }

    /// The speed of the disk by that way, or by the only one that was measured.
    fn speed(&self) -> Option<&Speed> {
        let io = self.choice().map(|choice| choice.io);
        let taken = self.speeds.iter().find(|(measured, _)| io.is_none_or(|io| io == *measured));
        taken.map(|(_, speed)| speed)
    }

    fn text(&self) -> String {
        let unknown = || "not known".to_owned();
        let size = |bytes: Option<u64>| bytes.map_or_else(unknown, Budget::show);
        let machine = &self.machine;
        let mut lines = vec![
            ("processor", machine.processor.clone().unwrap_or_else(unknown)),
            ("cores", format!("{} for this process", clock::cores())),
            ("kernels", self.kernels.iter().rev().cloned().collect::<Vec<_>>().join(", ")),
            ("kernel in use", Kernel::detect().to_string()),
            (
                "memory",
                format!("{}, {} available to this process", size(machine.memory_bytes), size(clock::available_bytes())),
            ),
            ("swap", size(machine.swap_bytes)),
            ("large pages", machine.large_pages.clone().unwrap_or_else(unknown)),
            ("open files", machine.open_files_max.map_or_else(|| "no limit".to_owned(), quantity::grouped)),
            ("locked memory", machine.locked_bytes_max.map_or_else(|| "no limit".to_owned(), Budget::show)),
            ("io_uring", if machine.ring_refused.is_none() { "yes" } else { "no" }.to_owned()),
        ];
        let mut at = self.dir.display().to_string();
        if !self.exists {
            at += &format!(", to be created in {}", self.measured_dir.display());
        }
        lines.push((DIRECTORY, at));
        if let Some(storage) = &self.storage {
            let files =
                storage.free_files.map_or(String::new(), |files| format!(", {}", quantity::plural(files, "file")));
            lines.push((FILE_SYSTEM, storage.file_system.clone()));
            lines.push((FREE_SPACE, Budget::show(storage.free_bytes) + &files));
            lines.push(("direct I/O", if storage.direct { "yes" } else { "no" }.to_owned()));
        }
        for (io, speed) in &self.speeds {
            let rate = |rate: f64| Budget::show(rate as u64);
            lines.push((
                disk_line(*io),
                format!(
                    "{}/s written, {}/s read, {} random reads/s, durable in {}",
                    rate(speed.streams.write),
                    rate(speed.streams.read),
                    quantity::grouped(speed.operations as u64),
                    quantity::time(speed.sync_seconds)
                ),
            ));
        }
        if let Some(choice) = self.choice() {
            lines.push(("disk access", format!("{} by --io auto", choice.io)));
        }
        if let Some(core_speed) = self.core_speed {
            lines.push(("core speed", format!("{:.0} % of the reference, by a small build", core_speed * 100.0)));
        }
        if self.storage.is_none() {
            lines.push((FILE_SYSTEM, "not known".to_owned()));
        }
        let mut text: String = lines.iter().map(|(name, what)| self.line(name, what)).collect();
        if !self.findings.iter().any(|finding| finding.is_problem) {
            text += "ready for a run\n";
        }
        text
    }

    /// Renders a line with its verdict, and the findings about it.
    fn line(&self, name: &str, what: &str) -> String {
        let findings = || self.findings.iter().filter(|finding| finding.line == name);
        let verdict = match (findings().any(|finding| finding.is_problem), findings().next()) {
            (true, _) => "PROBLEM",
            (false, Some(_)) => "note",
            (false, None) => "ok",
        };
        let head = format!("{verdict:<7} {name:<14} {what}\n");
        findings().fold(head, |text, finding| text + &format!("{:8}  {}\n", "", finding.what))
    }

    fn json(&self) -> serde_json::Value {
        let machine = &self.machine;
        let speeds = self.speeds.iter().map(|(io, speed)| {
            json!({
                "io": io.to_string(),
                "write_bytes_a_second": speed.streams.write,
                "read_bytes_a_second": speed.streams.read,
                "random_reads_a_second": speed.operations,
                "sync_seconds": speed.sync_seconds,
            })
        });
        let findings = self
            .findings
            .iter()
            .map(|finding| json!({ "line": finding.line, "problem": finding.is_problem, "what": finding.what }));
        json!({
            "processor": machine.processor,
            "cores": clock::cores(),
            "kernels": self.kernels,
            "kernel": Kernel::detect().to_string(),
            "memory_bytes": machine.memory_bytes,
            "memory_available_bytes": clock::available_bytes(),
            "swap_bytes": machine.swap_bytes,
            "large_pages": machine.large_pages,
            "open_files_max": machine.open_files_max,
            "locked_bytes_max": machine.locked_bytes_max,
            "io_uring": machine.ring_refused.is_none(),
            "directory": PathText(self.dir),
            "file_system": self.storage.as_ref().map(|storage| &storage.file_system),
            "shared": self.storage.as_ref().map(|storage| storage.is_shared),
            "free_bytes": self.storage.as_ref().map(|storage| storage.free_bytes),
            "direct": self.storage.as_ref().map(|storage| storage.direct),
            "speeds": speeds.collect::<Vec<_>>(),
            "io": self.choice().map(|choice| choice.io.to_string()),
            "core_speed": self.core_speed,
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}
