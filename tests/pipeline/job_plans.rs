//! Plans of jobs of several ranks.

use serde_json::Value;
use std::fs;
use tests::directory::TestDirectory;

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
        let of = |plan: &Value, what: &str| plan["job"][what].as_f64().unwrap();
        let sum = |what: &str| stages.iter().map(|stage| stage[what].as_f64().unwrap()).sum::<f64>();
        assert!((of(&four, "seconds") / sum("seconds") - 1.0).abs() < 1e-9);
        assert!(of(&sixteen, "sent_bytes") > of(&four, "sent_bytes"), "{method}");
        assert!(of(&sixteen, "memory_bytes") <= of(&four, "memory_bytes"), "{method}");
        // Parts of files and wins so far, or snapshots.
        assert!(of(&four, "scratch_bytes") > 0.0, "{method}");
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
