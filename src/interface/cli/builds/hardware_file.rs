//! A file that describes this machine for `awari plan --hardware`, from measurements.

use crate::builds::request::{read_own_manifest, run_options};
use crate::error::Result;
use disk::machine::Speed;
use disk::{MemoryDisk, clock};
use pipeline::{Budget, Orchestrator, RunOptions, Work};
use planner::{Hardware, Settings};
use stages::Awari;
use std::path::Path;

/// A build of a second on one core: its larger stages take longer than what all stages cost.
const BUILD: &str = "\
[build]
stones = \"0..14\"
method = \"sweep\"
memory = \"512 MiB\"
threads = 1
[check]
verify = \"none\"
[run]
dir = \"run\"
";

/// Stages predicted to take less are not counted.
const SECONDS_MIN: f64 = 0.02;

/// Bytes of a unit of memory and space, of which a file has whole ones.
const MEBIBYTE: u64 = 1 << 20;

/// Measures the speed of a core, 1 for the reference: builds small databases in memory and compares the time
/// of the larger stages with their prediction.
pub(crate) fn core_speed() -> Result<f64> {
    let settings = Settings::new(&read_own_manifest(BUILD, &[])?);
    let memory_bytes = settings.memory_bytes;
    let work = Awari::new(settings.for_machine(Hardware::REFERENCE, memory_bytes, 1));
    let (disk, options) = (MemoryDisk::new(), run_options(work.settings()));
    let options = RunOptions { manifest: BUILD.to_owned(), ..options };
    let done = Orchestrator::new(&disk, Path::new("run"), &work, options).run()?;
    let seconds = done.ran.iter().filter_map(|ran| {
        let predicted = work.graph().stage(&ran.stage)?.cost.seconds;
        // Processor time: other programs may use the core meanwhile.
        (predicted >= SECONDS_MIN).then_some((predicted, ran.measured.cpu_seconds))
    });
    let (predicted, measured) = seconds.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    Ok(predicted / f64::max(measured, 1e-6))
}

/// Returns the text of the file.
pub(crate) fn text(core_speed: f64, disk: &Speed, free_bytes: u64) -> String {
    let whole = |bytes: u64| Budget::new((bytes / MEBIBYTE).max(1) * MEBIBYTE);
    let hardware = Hardware::this();
    format!(
        "\
# A machine, measured by `awari doctor` on {date}: for `awari plan MANIFEST --hardware FILE`.

[machine]
# Cores and memory that a process could use at that time.
cores = {cores}
memory = \"{memory}\"
# Speed of a core in percent of the reference, by a small build on one core.
core_speed = {core_speed:.0}
# Speed of random memory accesses in percent of the reference, for the method counting. Not measured.
# memory_speed = 100

[disk]
free = \"{free}\"
# Bytes read and written a second, sequentially.
read = \"{read}\"
write = \"{write}\"
# Random reads of 16 KiB a second, with requests from all cores.
operations = {operations:.0}

# The network between such machines. Not measured.
# [network]
# bandwidth = \"1250 MB\"
# latency = 20
",
        date = clock::utc(clock::now_seconds()).split('T').next().unwrap_or_default(),
        cores = hardware.cores,
        memory = whole(hardware.memory_bytes),
        core_speed = (core_speed * 100.0).clamp(1.0, 10_000.0),
        free = whole(free_bytes),
        read = whole(disk.streams.read as u64),
        write = whole(disk.streams.write as u64),
        operations = disk.operations.clamp(1.0, 1e9),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::machine::StreamSpeed;
    use pipeline::Manifest;

    #[test]
    fn the_file_is_one_that_plans_read() {
        let streams = StreamSpeed { write: 2e9, read: 3.5e9 };
        let speed = Speed { streams, operations: 12_345.6, sync_seconds: 0.001 };
        let text = text(0.734, &speed, (7 << 30) + 5);
        let file = Manifest::parse(&text, "m.toml", &Hardware::schema(), &[]).unwrap();
        let hardware = Hardware::of_manifest(&file);
        assert_eq!((hardware.core_speed, hardware.operations, hardware.disk_bytes), (0.73, 12_346.0, Some(7 << 30)));
        assert!((hardware.read / 3.5e9 - 1.0).abs() < 1e-3 && (hardware.write / 2e9 - 1.0).abs() < 1e-3);
        assert_eq!(hardware.memory_speed, 1.0);
    }
}
