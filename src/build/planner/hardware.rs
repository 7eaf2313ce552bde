//! The machine for which a build is predicted: this one, the reference, or one described by a file.
//!
//! The constants of the cost model were measured on the *reference*: a core of a 2023 server (AMD Zen 4, AVX-512, 1 MiB
//! of second-level cache, shared with others) and its network drive. Speeds of other cores are relative to it.

use crate::load::Load;
use disk::clock;
use pipeline::manifest::{Manifest, ManifestKey, Schema, Value, ValueType};

/// Memory of the smallest build.
const MEMORY_BYTES_MIN: u64 = 48 << 20;

/// Slowdown of two cores that work at the same time, since they share memory, and its growth with their
/// number. Two cores of the reference do 1.5 to 1.7 times the work of one. With this growth, 16 cores of a
/// Xeon take 0.87 to 1.17 times the predicted time for sweeps of 28 to 32 stones, and 1.2 times it for
/// two-bit at 26; without, up to 1.8 times.
const SIDE_BY_SIDE: f64 = 1.25;
const SIDE_BY_SIDE_GROWTH: f64 = 0.2;

/// Returns the slowdown of cores that work at the same time.
fn slowdown(cores: usize) -> f64 {
    match cores {
        0 | 1 => 1.0,
        cores => SIDE_BY_SIDE * (cores as f64 / 2.0).powf(SIDE_BY_SIDE_GROWTH),
    }
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hardware {
    /// Cores, at least one.
    pub cores: usize,
    /// Speed of a core; 1 is that of the reference.
    pub core_speed: f64,
    /// Speed of random memory accesses; 1 is that of the reference.
    pub memory_speed: f64,
    /// Memory available to a build, in bytes.
    pub memory_bytes: u64,
    /// Free disk space in bytes, if known.
    pub disk_bytes: Option<u64>,
    /// Sequential read rate of the disk, in bytes a second.
    pub read: f64,
    /// Sequential write rate of the disk, in bytes a second.
    pub write: f64,
    /// Random reads or writes of blocks a second, with requests from all cores.
    pub operations: f64,
    /// Network to other machines of its kind.
    pub network: Network,
    /// File system of the run directory of a job.
    pub shared: SharedDisk,
}

/// File system that all machines of a job share. What is not known is the sum of the disks of all machines: a
/// file system made of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SharedDisk {
    /// Free space in bytes.
    pub bytes: Option<u64>,
    /// Sequential read rate of all machines together, in bytes a second.
    pub read: Option<f64>,
    /// The same for writing.
    pub write: Option<f64>,
}

/// Network of a job with one machine per rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Bytes a second that a machine can send while it receives at the same rate.
    pub bandwidth: f64,
    /// Latency of a message in seconds.
    pub latency: f64,
}

/// Resource that limits the speed of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Limit {
    /// The cores.
    Cores,
    /// The disk.
    Disk,
}

impl Limit {
    /// Returns the name in tables.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl Hardware {
    /// The machine that the constants were measured on. Rates of its drive are those of `awari doctor` on the shared
    /// machine (1.0 to 1.5 GB/s read, 0.9 written); operations are from one-bit-dual at 20 stones with a cache of a
    /// tenth, which takes 80 s longer for a million misses that go to the drive.
    pub const REFERENCE: Hardware = Hardware {
        cores: 2,
        core_speed: 1.0,
        memory_speed: 1.0,
        memory_bytes: 24 << 30,
        disk_bytes: Some(128 << 30),
        read: 1.2e9,
        write: 0.9e9,
        operations: 12_000.0,
        network: Network { bandwidth: 2.0e9, latency: 20e-6 },
        shared: SharedDisk { bytes: None, read: None, write: None },
    };

    /// Names of known machines, accepted in place of a file.
    pub const NAMES: [&str; 2] = ["this", "reference"];

    /// Returns this machine: its cores and memory, with the core speed and the disk of the reference.
    pub fn this() -> Hardware {
        Hardware {
            cores: clock::cores(),
            memory_bytes: clock::attainable_bytes().unwrap_or(Hardware::REFERENCE.memory_bytes),
            disk_bytes: None,
            ..Hardware::REFERENCE
        }
    }

    /// Returns the machine of a name.
    pub fn named(name: &str) -> Option<Hardware> {
        match name {
            "this" => Some(Hardware::this()),
            "reference" => Some(Hardware::REFERENCE),
            _ => None,
        }
    }

    /// Returns the keys of a file that describes a machine.
    pub fn schema() -> Schema {
        let above_zero = |value: &Value| match value {
            Value::Size(size) if size.bytes() == 0 => Err("must be greater than 0".to_owned()),
            _ => Ok(()),
        };
        Schema::new()
            .table("machine", "Cores and memory.")
            .key(ManifestKey::required(
                "machine.cores",
                ValueType::Integer(1, 4096),
                "Number of cores; a build has a thread on each.",
            ))
            .key(ManifestKey::required("machine.memory", ValueType::Size, "Memory limit of a build.").check(|value| {
                match value {
                    Value::Size(size) if size.bytes() < MEMORY_BYTES_MIN => {
                        Err(format!("must be at least 48 MiB, most of which are buffers; found {size}"))
                    }
                    _ => Ok(()),
                }
            }))
            .key(ManifestKey::new(
                "machine.core_speed",
                ValueType::Integer(1, 10_000),
                "100",
                "Speed of a core in percent of the reference, a shared core of an AMD Zen 4 server of 2023.",
            ))
            .key(ManifestKey::new(
                "machine.memory_speed",
                ValueType::Integer(1, 10_000),
                "100",
                "Speed of random memory accesses in percent of the reference; the method counting depends on it.",
            ))
            .table("disk", "The disk of the run directory; of a job, the local disk of each machine.")
            .key(ManifestKey::required("disk.free", ValueType::Size, "Free space on the disk of the run directory."))
            .key(
                ManifestKey::required("disk.read", ValueType::Size, "Bytes read a second, sequentially.")
                    .check(above_zero),
            )
            .key(
                ManifestKey::required("disk.write", ValueType::Size, "Bytes written a second, sequentially.")
                    .check(above_zero),
            )
            .key(ManifestKey::required(
                "disk.operations",
                ValueType::Integer(1, 1_000_000_000),
                "Random reads or writes of 16 KiB a second, with requests from all cores.",
            ))
            .table("shared", "The file system of the run directory of a job.")
            .key(ManifestKey::new(
                "shared.free",
                ValueType::Size,
                "0 B",
                "Free space of all machines together; 0 is the sum of their disks, of which the file system is then made.",
            ))
            .key(ManifestKey::new(
                "shared.read",
                ValueType::Size,
                "0 B",
                "Bytes read a second by all machines together; 0 is the sum of their disks.",
            ))
            .key(ManifestKey::new(
                "shared.write",
                ValueType::Size,
                "0 B",
                "Bytes written a second by all machines together; 0 is the sum of their disks.",
            ))
            .table("network", "The network between such machines, each with a rank of a job.")
            .key(
                ManifestKey::new(
                    "network.bandwidth",
                    ValueType::Size,
                    "1250 MB",
                    "Bytes sent a second by one machine, while it receives as many.",
                )
                .check(above_zero),
            )
            .key(ManifestKey::new(
                "network.latency",
                ValueType::Integer(1, 1_000_000),
                "20",
                "Latency of a message in microseconds.",
            ))
    }

    /// Returns the share of the machine that one of several ranks on it has.
    #[must_use]
    pub fn shared_by(self, ranks: usize) -> Hardware {
        let share = self.cores as f64 / ranks as f64;
        let cores = (share as usize).max(1);
        // Cores of other ranks are busy at the same time.
        let more = slowdown((cores * ranks).min(self.cores)) / slowdown(cores);
        let share = share.min(cores as f64) / cores as f64 / more;
        Hardware { cores, core_speed: self.core_speed * share, memory_speed: self.memory_speed * share, ..self }
    }

    /// Returns the machine that a file of this [`schema`](Hardware::schema) describes.
    pub fn of_manifest(file: &Manifest) -> Hardware {
        let shared = |key: &str| Some(file.size(key).bytes()).filter(|&bytes| bytes > 0);
        Hardware {
            cores: file.integer("machine.cores") as usize,
            core_speed: file.integer("machine.core_speed") as f64 / 100.0,
            memory_speed: file.integer("machine.memory_speed") as f64 / 100.0,
            memory_bytes: file.size("machine.memory").bytes(),
            disk_bytes: Some(file.size("disk.free").bytes()),
            read: file.size("disk.read").bytes() as f64,
            write: file.size("disk.write").bytes() as f64,
            operations: file.integer("disk.operations") as f64,
            network: Network {
                bandwidth: file.size("network.bandwidth").bytes() as f64,
                latency: file.integer("network.latency") as f64 / 1e6,
            },
            shared: SharedDisk {
                bytes: shared("shared.free"),
                read: shared("shared.read").map(|bytes| bytes as f64),
                write: shared("shared.write").map(|bytes| bytes as f64),
            },
        }
    }

    /// Returns the seconds that the cores are busy, with this many threads.
    pub fn core_seconds(&self, load: &Load, threads: usize) -> f64 {
        let busy = threads.clamp(1, self.cores);
        let work = load.cpu_seconds / self.core_speed + load.memory_seconds / self.memory_speed;
        work * slowdown(busy) / busy as f64
    }

    /// Returns the seconds that the disk is busy.
    pub fn disk_seconds(&self, load: &Load) -> f64 {
        (load.read_bytes + load.scratch_read_bytes) / self.read
            + (load.written_bytes + load.scratch_written_bytes) / self.write
            + (load.random_reads + load.random_writes) / self.operations
    }

    /// Returns the seconds of a stage whose cores and disk work at the same time.
    pub fn seconds(&self, load: &Load, threads: usize) -> f64 {
        self.core_seconds(load, threads).max(self.disk_seconds(load))
    }

    /// Returns the resource that limits a load.
    pub fn limit(&self, load: &Load, threads: usize) -> Limit {
        if self.disk_seconds(load) > self.core_seconds(load, threads) { Limit::Disk } else { Limit::Cores }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[machine]\ncores = 16\nmemory = \"128 GiB\"\ncore_speed = 150\n\
                        memory_speed = 80\n\n[disk]\nfree = \"4 TiB\"\n\
                        read = \"3 GB\"\nwrite = \"2 GB\"\noperations = 100_000\n";

    /// All keys are required, except the speeds of cores and memory and the network.
    #[test]
    fn the_example_has_all_required_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../manifests/hardware/server.toml");
        let text = std::fs::read_to_string(path).unwrap();
        let read = |text: &str| Manifest::parse(text, "m.toml", &Hardware::schema(), &[]);
        let whole = read(&text).unwrap();
        let keys: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && line.contains(" = ")).collect();
        for line in &keys {
            let without = read(&text.replace(line, ""));
            let is_optional =
                ["core_speed", "memory_speed", "bandwidth", "latency"].iter().any(|key| line.starts_with(key));
            assert_eq!(without.is_ok(), is_optional, "{line}");
            assert!(without.is_err() || without.unwrap().to_toml() == whole.to_toml(), "{line}: another default");
        }
        assert_eq!(keys.len(), 10);
    }

    #[test]
    fn a_file_is_read() {
        let file = Manifest::parse(FILE, "m.toml", &Hardware::schema(), &[]).unwrap();
        let expected = Hardware {
            cores: 16,
            core_speed: 1.5,
            memory_speed: 0.8,
            memory_bytes: 128 << 30,
            disk_bytes: Some(4 << 40),
            read: 3e9,
            write: 2e9,
            operations: 1e5,
            network: Network { bandwidth: 1.25e9, latency: 20e-6 },
            shared: SharedDisk::default(),
        };
        assert_eq!(Hardware::of_manifest(&file), expected);
        let text = format!(
            "{FILE}\n[network]\nbandwidth = \"12 GB\"\nlatency = 3\n\n[shared]\nfree = \"9 TiB\"\nwrite = \"7 GB\"\n"
        );
        let file = Manifest::parse(&text, "m.toml", &Hardware::schema(), &[]).unwrap();
        let network = Network { bandwidth: 12e9, latency: 3e-6 };
        let shared = SharedDisk { bytes: Some(9 << 40), read: None, write: Some(7e9) };
        assert_eq!(Hardware::of_manifest(&file), Hardware { network, shared, ..expected });
    }

    #[test]
    fn mistakes_are_found() {
        for (line, mistake) in [
            ("cores = 0", "machine.cores must be in 1..4096, not 0"),
            ("memory = \"1 MiB\"", "machine.memory must be at least 48 MiB"),
            ("core_speed = 1.5", "machine.core_speed must be an integer"),
            ("memory_speed = 0", "machine.memory_speed must be in 1..10000"),
            ("read = \"0 B\"", "disk.read must be greater than 0"),
            ("operations = 0", "disk.operations must be in 1..1000000000"),
        ] {
            let key = line.split(' ').next().unwrap();
            let text = FILE
                .lines()
                .map(|old| if old.split(" ").next() == Some(key) { line } else { old })
                .collect::<Vec<_>>()
                .join("\n");
            let mistakes = Manifest::parse(&text, "m.toml", &Hardware::schema(), &[]).unwrap_err();
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
            assert!(mistakes[0].message.starts_with(mistake), "{mistakes:?}");
        }
    }

    #[test]
    fn the_slower_of_cores_and_disk_counts() {
        let machine = Hardware {
            cores: 2,
            core_speed: 2.0,
            memory_speed: 0.5,
            read: 100.0,
            write: 50.0,
            operations: 10.0,
            ..Hardware::REFERENCE
        };
        let load = Load {
            cpu_seconds: 60.0,
            memory_seconds: 5.0,
            read_bytes: 150.0,
            written_bytes: 50.0,
            scratch_read_bytes: 50.0,
            scratch_written_bytes: 50.0,
            random_reads: 20.0,
            random_writes: 10.0,
        };
        assert_eq!((machine.core_seconds(&load, 2), machine.disk_seconds(&load)), (25.0, 7.0));
        assert_eq!((machine.seconds(&load, 2), machine.limit(&load, 2)), (25.0, Limit::Cores));
        // Each rank has some cores, or a share of one.
        assert_eq!(machine.shared_by(2).core_seconds(&load, 1), 50.0);
        assert_eq!(machine.shared_by(8).core_seconds(&load, 1), 200.0);
        assert_eq!(machine.shared_by(1), machine);
        // More threads than cores do not help.
        assert_eq!((machine.seconds(&load, 64), machine.core_seconds(&load, 0)), (25.0, 40.0));
        let slow = Hardware { operations: 1.0, ..machine };
        assert_eq!((slow.seconds(&load, 2), slow.limit(&load, 2)), (34.0, Limit::Disk));
        // More cores help, but each does less, and equally whether they are of one rank or of several.
        let large = Hardware { cores: 16, ..machine };
        let times = [2, 4, 8, 16].map(|threads| large.core_seconds(&load, threads));
        assert!(times.is_sorted_by(|fewer, more| more < fewer && *more > fewer / 2.0), "{times:?}");
        let of_half = large.shared_by(2).core_seconds(&load, 8);
        assert!((of_half / times[3] - 2.0).abs() < 1e-12, "{of_half}");
    }
}
