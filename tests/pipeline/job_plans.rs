//! Plans of jobs of several ranks, and the table of the guide that compares machines.
//!
//! `AWARI_GOLDEN=write` writes the table into the file instead.

use serde_json::Value;
use std::fs;
use tests::directory::{TestDirectory, between};
use tests::{guide_table, root};

const MACHINE: &str = "[machine]\ncores = 2\nmemory = \"1 GiB\"\n\n[disk]\nfree = \"20 GB\"\nread = \"30 MB\"\nwrite = \"20 MB\"\n\
                       operations = 100\n\n[network]\nbandwidth = \"100 MB\"\nlatency = 10\n";

/// A plan of the stages of a manifest, for all methods, with the resources of each stage.
#[test]
fn a_manifest_is_planned_for_ranks() {
    let place = TestDirectory::new(17);
    fs::write(place.path("node.toml"), MACHINE).unwrap();
    for method in ["counting", "sweep", "two-bit", "one-bit", "one-bit-dual"] {
        let options =
            format!("plan m.toml --set build.method={method} --set cluster.scratch=scratch --hardware node.toml");
        let plan = |ranks: u32| place.awari(&format!("{options} --ranks {ranks} --json")).is(0).json();
        let (four, sixteen) = (plan(4), plan(16));
        assert_eq!(four["job"]["ranks"], 4);
        let steps: Vec<&Value> = four["steps"].as_array().unwrap().iter().map(|step| &step["stage"]).collect();
        let stages = four["job"]["stages"].as_array().unwrap();
        assert!(stages.iter().map(|stage| &stage["stage"]).eq(steps), "{method}");
        let number = |plan: &Value, what: &str| plan["job"][what].as_f64().unwrap();
        let sum = |what: &str| stages.iter().map(|stage| stage[what].as_f64().unwrap()).sum::<f64>();
        assert!((number(&four, "seconds") / sum("seconds") - 1.0).abs() < 1e-9);
        assert!(number(&sixteen, "sent_bytes") > number(&four, "sent_bytes"), "{method}");
        assert!(number(&sixteen, "memory_bytes") <= number(&four, "memory_bytes"), "{method}");
        // Parts of files and wins so far, or snapshots.
        assert!(number(&four, "scratch_bytes") > 0.0, "{method}");
        assert_eq!(four["job"]["fits_up_to"], 17);
        let text = place.awari(&format!("{options} --ranks 4")).is(0).out;
        let parts = [
            "on each of 4 ranks",
            "run directory on the disks of all",
            "stage",
            "cores of the busiest rank",
            " fit: about",
        ];
        for part in parts {
            assert!(text.contains(part), "{method}: {part} is not in {text}");
        }
    }
    // The run directory is on the disks of all machines.
    fs::write(place.path("node.toml"), MACHINE.replace("20 GB", "30 MB")).unwrap();
    let plan = |ranks: u32| {
        place.awari(&format!("plan m.toml --set build.method=sweep --hardware node.toml --ranks {ranks}")).is(0)
    };
    plan(2).says(&["would refuse to start", "of disk space, 57"]);
    assert!(!plan(8).err.contains("refuse"));
    // What limits: a slow network, and a slow file system that is another one.
    let limit = |more: &str| {
        fs::write(place.path("node.toml"), MACHINE.replace("100 MB", "1 MB") + more).unwrap();
        let plan =
            place.awari("plan m.toml --set build.method=sweep --hardware node.toml --ranks 4 --json").is(0).json();
        let stages = plan["job"]["stages"].as_array().unwrap().clone();
        stages.iter().find(|stage| stage["stage"] == "sweep:17").unwrap()["limit"].clone()
    };
    assert_eq!(limit(""), "network");
    assert_eq!(limit("\n[shared]\nread = \"100 kB\"\nwrite = \"100 kB\"\n"), "shared-disk");
    // The first database that is too large, and why.
    fs::write(place.path("node.toml"), MACHINE.replace("1 GiB", "64 MiB")).unwrap();
    let text = place.awari("plan m.toml --set build.method=sweep --hardware node.toml --ranks 2").is(0).out;
    assert!(text.contains("does not fit: the fullest rank needs"), "{text}");
    place.awari("plan m.toml --set game.rules=oware --ranks 2").is(2);
}

/// The rows of the table: machines, and the command.
const ROWS: [(&str, &str); 4] = [
    (
        "72 nodes of 2002",
        "--ranks 72 --hardware manifests/hardware/das2.toml --set build.stones=0..37 --set build.method=two-bit",
    ),
    ("the same with 6 GiB of memory each", "--ranks 72 --hardware manifests/hardware/das2.toml --memory 6GiB"),
    ("8 nodes of today", "--ranks 8 --hardware manifests/hardware/node.toml"),
    ("64 nodes of today", "--ranks 64 --hardware manifests/hardware/node.toml"),
];

/// What the command prints of the whole job, as cells.
fn cells(options: &str) -> Vec<String> {
    let place = TestDirectory::new(0);
    let command = format!("plan manifests/awari.toml {options} --set cluster.scratch=/scratch --dir run");
    let command = command.replace("manifests/", &format!("{}/manifests/", root().display()));
    let text = place.awari(&command).is(0).out;
    let total = text.lines().find(|line| line.starts_with("about ")).expect("a line of all stages").to_owned() + "\n";
    let fits = text.lines().find(|line| line.contains(" fit: about ")).expect("a line of what fits").to_owned() + "\n";
    [
        between(&("\n".to_owned() + &fits), "\n", " fit: "),
        between(&total, "about ", ": cores"),
        between(&total, "busiest rank ", ", network"),
        between(&total, "network ", ", latency"),
        between(&total, "latency ", ", local"),
        between(&total, "local disk ", ", shared"),
        between(&total, "shared disk ", "; "),
        between(&fits, "at most ", " of memory"),
        between(&fits, "memory and ", " of scratch"),
        between(&fits, "rank, and ", " in the run"),
        between(&total, "; ", " sent"),
    ]
    .map(str::to_owned)
    .into()
}

#[test]
#[ignore = "slow tier: plans the whole game for four clusters"]
fn the_table_of_the_guide_is_that_of_the_program() {
    let columns = [
        "machines",
        "fits",
        "time",
        "cores",
        "network",
        "latency",
        "local disk",
        "shared disk",
        "memory",
        "scratch",
        "run directory",
        "sent",
    ];
    let rows = ROWS.map(|(machines, options)| [vec![machines.to_owned()], cells(options)].concat());
    let tables = [("clusters", guide_table::markdown(&columns, rows))];
    guide_table::check("docs/machines.md", "pipeline job_plans -- --include-ignored", &tables);
}
