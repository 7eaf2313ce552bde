//! Command lines, manifests and directories that commands refuse, and what they say.

use disk::{Disk, RealDisk};
use std::fs;
use tests::directory::TestDirectory;

#[test]
fn manifest_mistakes_are_reported_together() {
    let place = TestDirectory::new(3);
    place.manifest(
        "[game]\nrule = \"awari\"\n\n[build]\nstones = \"9..3\"\nthreads = \"two\"\nmemory = \"1 MiB\"\n\n\
         [stor]\ncodec = \"packed\"\n",
    );
    place.awari("run m.toml --set check.verify=ful").is(11).says(&[
        "m.toml:2:1: unknown key rule in [game] (did you mean rules?)",
        "m.toml:5:10: build.stones is an empty range: 9..3 (did you mean \"3..9\"?)",
        "m.toml:6:11: build.threads must be an integer",
        "m.toml:7:10: build.memory must be at least 48 MiB",
        "m.toml:9:2: unknown table [stor] (did you mean [store]?)",
        "--set check.verify=ful: check.verify must be one of",
        "did you mean \"full\"?",
        "awari: 6 mistakes in m.toml and on the command line; nothing was done",
    ]);
    assert!(!place.path("run").exists());
    place.awari("plan m.toml").is(11);
    place.awari("run m.toml").is(11);
    place.awari("run absent.toml").is(11).says(&["cannot read absent.toml", "nothing was done"]);
    fs::write(place.path("m.toml"), [0xff, 0xfe]).unwrap();
    place.awari("run m.toml").is(11).says(&["not UTF-8"]);
}

#[test]
fn contradictory_command_lines() {
    let place = TestDirectory::new(3);
    place.awari("build").is(2);
    place.awari("run").is(2);
    place.awari("run m.toml --set build.threads").is(2).says(&["KEY=VALUE"]);
    place.awari("run m.toml --memory much").is(2).says(&["512 MiB"]);
    place.awari("stats --dir run --stones 5..3").is(2).says(&["did you mean 3..5?"]);
    place.awari("run m.toml --threads -1").is(2).says(&["'--threads <N>'", "within 0..1024"]);
    place.awari("--help").is(0).shows(&[
        "run",
        "plan",
        "status",
        "stage",
        "verify",
        "stats",
        "probe",
        "completions",
        "Exit codes",
    ]);
    place.awari("completions bash").is(0).shows(&["_awari"]);
}

#[test]
fn a_file_is_not_a_run_directory() {
    let place = TestDirectory::new(3);
    for command in [
        "status",
        "stop",
        "report --out report.html",
        "verify",
        "stats",
        "gc",
        "restore --from .",
        "run m.toml",
        "plan m.toml",
        "stage m.toml sweep:3",
    ] {
        let ended = place.awari(&format!("{command} --dir m.toml")).is(12);
        assert_eq!(ended.err, "awari: m.toml is not a directory, as --dir requires\n", "{command:?}");
    }
}

#[test]
fn paths_that_are_not_manifests() {
    let place = TestDirectory::built(3);
    let absent = place.awari("run nosuch.toml").is(11);
    let absent = absent.says(&["awari: cannot read nosuch.toml: no such file or directory; nothing was done ("]).err;
    assert!(!absent.contains("quickstart"), "{absent}");
    place.awari("run run").is(11).says(&["run is a directory, expected a manifest", "run/manifest.toml"]);
    for command in ["stage", "explain"] {
        place
            .awari(&format!("{command} sweep:3 m.toml"))
            .is(11)
            .says(&["sweep:3 is the name of a stage", "comes first"]);
    }
    let hardware = place.awari("plan m.toml --hardware server.toml").is(11).err;
    assert_eq!(hardware.matches("server.toml").count(), 2, "{hardware}");
    place.awari("run m.toml --until ''").is(2).says(&["the name of a stage is empty; "]);
    let unbuilt = place.awari("stage m.toml verify:3 --dir nosuch --set store.codec=raw").is(12);
    unbuilt.says(&["awari run m.toml --dir nosuch --until sweep:0 --set store.codec=raw"]);
    let ranks = place.awari("plan --ranks 4").is(2).says(&["MANIFEST"]).err;
    assert!(!ranks.contains("--up-to"), "{ranks}");
    place.awari("plan --ranks 2 --up-to 3").is(0);
    assert!(!place.awari("plan").is(2).err.contains("--up-to"));
    let late = place.awari("run m.toml --force sweep:3 --until sweep:2").is(2);
    late.says(&["--force sweep:3 contradicts --until sweep:2"]);
    place.awari("plan m.toml --set game.positions=reachable --frozen").is(15).says(&["--replace instead of --frozen"]);
}

#[test]
fn a_removal_lists_all_files() {
    let place = TestDirectory::built(3);
    let gc = |args: &str| place.awari(&format!("gc --dir run {args}")).is(0);
    assert_eq!(gc("--kept --delete").err, "nothing to remove\n");
    for number in 0..9 {
        fs::write(place.path(&format!("run/databases/mine{number}")), "x").unwrap();
    }
    fs::create_dir_all(place.path("run/snapshots")).unwrap();
    fs::write(place.path("run/snapshots/mine"), "x").unwrap();
    let out = gc("").out;
    assert!(out.starts_with("10 files that neither") && out.contains("\n  and 2 more\n"), "{out}");
    let strange = gc("--json").json()["strange"].to_string();
    assert!(strange.contains("run/snapshots/mine"), "{strange}");
    assert_eq!(gc("--unasked --kept --delete").err, "nothing to remove\n");
}

#[test]
fn a_mistake_names_its_option() {
    let place = TestDirectory::new(3);
    let memory = "--memory: build.memory must be at least 48 MiB";
    let own = |line: &str, exit: i32, first: &str| {
        let said = place.awari(line).is(exit).err;
        assert!(said.contains(first) && !said.contains("m.toml"), "{said}");
        assert!(said.ends_with("awari: a mistake on the command line; nothing was done\n"), "{said}");
    };
    own("run m.toml --memory 5", 11, memory);
    own("run m.toml --set foo=1", 11, "--set foo=1: unknown key foo");
    own("plan --stones 8 --memory 1MiB", 2, memory);
    place.awari("run m.toml").is(0);
    own("verify --dir run --stones 2 --against counting --memory 1MiB", 2, memory);
    fs::write(place.path("bad.toml"), "[build]\nstones = \"0..3\"\nthread = 1\n").unwrap();
    let mixed = place.awari("run bad.toml --memory 5").is(11);
    mixed.says(&["bad.toml:3:1", memory, "2 mistakes in bad.toml and on the command line"]);
}

#[test]
fn directories_that_cannot_be_used() {
    let place = TestDirectory::new(3);
    place.awari("run m.toml --dir m.toml/run").is(12).says(&["cannot use the directory m.toml/run"]);
    place.awari("run m.toml --dir /proc/awari").is(12).says(&["cannot use the directory /proc/awari"]);
    place.awari("status --dir absent").is(12).says(&["not a run directory", "awari run MANIFEST --dir absent"]);
    for command in ["verify", "stats"] {
        place.awari(&format!("{command} --dir absent")).is(3).says(&["no databases", "awari run MANIFEST"]);
    }
    // The folder of the databases in place of the directory above it.
    place.awari("run m.toml").is(0);
    fs::rename(place.path("run/databases/00.awari"), place.path("00.awari")).unwrap();
    for command in ["verify", "probe 0 0 0 0 0 1 0 0 0 0 0 0"] {
        place
            .awari(&format!("{command} --dir run/databases"))
            .is(3)
            .says(&["run/databases holds databases itself", "use --dir run"]);
        place.awari(&format!("{command} --dir .")).is(3).says(&["move them to ./databases"]);
    }
    // Too little memory.
    let little = place.awari("run m.toml --set build.stones=0..24 --set build.method=counting").is(12);
    little.says(&["of memory", "256 MiB"]);
}

#[test]
fn a_second_run_is_refused() {
    let place = TestDirectory::built(3);
    let lock = RealDisk::default().lock(&place.path("run/lock"), "awari run elsewhere.toml").unwrap();
    place.awari("run m.toml").is(13).says(&[
        "run is in use by process",
        "awari run elsewhere.toml",
        "stop it with `awari stop --dir run`",
    ]);
    // Reading needs no lock.
    place.awari("verify --dir run").is(0);
    place.awari("status --dir run").is(0);
    place.flip("run/databases/03.awari", 300);
    place.awari("verify --dir run").is(16).says(&["cannot record the damage in the journal", "in use by"]);
    drop(lock);
    place.awari("verify --dir run").is(16).says(&["the next run rebuilds it"]);
    place.awari("run m.toml").is(0);
    place.awari("verify --dir run").is(0);
}
