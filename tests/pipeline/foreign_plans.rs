//! Plans for other machines, and of databases outside the manifest.

use serde_json::Value;
use std::fs;
use tests::directory::TestDirectory;

const MACHINE: &str = "[machine]\ncores = 8\nmemory = \"128 MiB\"\ncore_speed = 200\n\n[disk]\nfree = \"1 GiB\"\n\
                       read = \"2 GB\"\nwrite = \"1 GB\"\noperations = 50_000\n";

#[test]
fn plans_are_made_for_other_machines() {
    let place = TestDirectory::new(18);
    let machine = |text: &str| fs::write(place.path("machine.toml"), text).unwrap();
    machine(MACHINE);
    let plan = |more: &str| place.awari(&format!("plan m.toml --set build.method=auto --json {more}")).is(0).json();
    let other = plan("--hardware machine.toml");
    assert_eq!(other["hardware"]["cores"], 8);
    assert_eq!(other["hardware"]["core_speed"], 2.0);
    let method = |plan: &Value, stones: usize| plan["methods"][stones]["method"].as_str().unwrap().to_owned();
    // The manifest's 256 MiB hold two bytes for each of 34.6 million positions, 128 MiB do not.
    assert_eq!(method(&plan(""), 18), "sweep");
    assert_eq!(method(&other, 12), "sweep");
    assert_ne!(method(&other, 18), "sweep");
    assert_eq!(method(&plan("--hardware machine.toml --memory 1GiB"), 18), "sweep");
    // Cores that wait for nothing take a time in inverse proportion to their speed.
    let seconds = |plan: &Value, method: &str| {
        let all = plan["methods"][18]["predictions"].as_array().unwrap();
        let prediction = all.iter().find(|prediction| prediction["method"] == method).unwrap();
        assert_eq!(prediction["limit"], "cores");
        prediction["seconds"].as_f64().unwrap() - 0.01
    };
    let speeds = |text: &str| machine(&MACHINE.replace("200", text).replace(" GB", "00 GB"));
    speeds("200");
    let fast = plan("--hardware machine.toml");
    speeds("50");
    let slow = plan("--hardware machine.toml");
    let threads = plan("--hardware machine.toml --threads 2");
    let [fast_seconds, slow_seconds, of_threads] = [&fast, &slow, &threads].map(|plan| seconds(plan, "sweep"));
    assert!((slow_seconds / fast_seconds - 4.0).abs() < 1e-6, "{slow_seconds} {fast_seconds}");
    // Eight cores slow each other down more than two of them.
    assert!((3.0..3.1).contains(&(of_threads / slow_seconds)), "{of_threads} {slow_seconds}");
    // Counting waits for memory besides, which a file says nothing of, or does.
    let counting = seconds(&slow, "counting");
    assert!((1.0..4.0).contains(&(counting / seconds(&fast, "counting"))));
    speeds("200\nmemory_speed = 400");
    let all_fast = plan("--hardware machine.toml");
    speeds("50\nmemory_speed = 100");
    let all_slow = plan("--hardware machine.toml");
    let ratio = seconds(&all_slow, "counting") / seconds(&all_fast, "counting");
    assert!((ratio - 4.0).abs() < 1e-6, "{ratio}");
    assert_eq!(seconds(&all_slow, "counting"), counting);
    assert_eq!(seconds(&all_fast, "sweep"), seconds(&fast, "sweep"));
    // A slow disk is what is waited for.
    machine(&MACHINE.replace("1 GB", "1 MB"));
    let waits = plan("--hardware machine.toml");
    assert_eq!(waits["methods"][18]["predictions"][0]["limit"], "disk");
    // What the machine lacks is said, and nothing is written.
    machine(&MACHINE.replace("1 GiB", "20 MiB"));
    let ended = place.awari("plan m.toml --hardware machine.toml").is(0);
    assert!(ended.out.starts_with("predicted for machine.toml: 8 threads on 8 cores at 200 %"), "{}", ended.out);
    ended.says(&["would refuse to start", "of disk space, 20 MiB are free in machine.toml"]);
    place.awari("plan m.toml --hardware this --check").is(10).shows(&["predicted for this machine: "]);
    machine(&MACHINE.replace("free", "# free"));
    let lacking = place.awari("plan m.toml --hardware machine.toml").is(11);
    lacking.says(&["disk.free is missing", "Free space on the disk of the run directory."]);
    let reference = place.awari("plan m.toml --hardware reference").is(0);
    reference.shows(&["predicted for reference: 2 threads on 2 cores at 100 %"]);
    assert!(!place.path("run").exists());
}

#[test]
fn mistakes_in_a_hardware_file_are_reported_together() {
    let place = TestDirectory::new(3);
    fs::write(
        place.path("machine.toml"),
        "[machine]\ncore = 8\nmemory = \"1 MiB\"\ncore_speed = 1.5\n\n[disc]\nread = \"3 GB\"\n\n[disk]\n\
         read = \"fast\"\nwrite = \"0 B\"\noperations = 0\n",
    )
    .unwrap();
    for planned in ["m.toml", "--stones 0..9"] {
        place.awari(&format!("plan {planned} --hardware machine.toml")).is(11).says(&[
            "machine.toml:2:1: unknown key core in [machine] (did you mean cores?)",
            "machine.toml:3:10: machine.memory must be at least 48 MiB",
            "machine.toml:4:14: machine.core_speed must be an integer",
            "machine.toml:6:2: unknown table [disc] (did you mean [disk]?)",
            "machine.toml:10:8: disk.read must be a size",
            "machine.toml:11:9: disk.write must be greater than 0",
            "machine.toml:12:14: disk.operations must be in 1..1000000000",
            "mistakes in machine.toml; nothing was done",
        ]);
    }
    let unknown = place.awari("plan m.toml --hardware that").is(11);
    unknown.says(&["hardware that is neither a known name (this, reference) nor a readable file"]);
    fs::write(place.path("machine.toml"), [0xff]).unwrap();
    place.awari("plan m.toml --hardware machine.toml").is(11).says(&["not UTF-8"]);
    place.awari("plan").is(2).says(&["MANIFEST"]);
    for bad in ["--stones 0..49", "--stones 0..9 --check", "--stones 0..9 --until sweep:3"] {
        place.awari(&format!("plan {bad}")).is(2);
    }
}

#[test]
fn a_method_table_shows_what_a_job_takes() {
    let place = TestDirectory::new(3);
    fs::write(place.path("machine.toml"), format!("{MACHINE}\n[network]\nbandwidth = \"5 GB\"\nlatency = 7\n"))
        .unwrap();
    let plan = |ranks: u32, more: &str| {
        place.awari(&format!("plan --stones 0..17 --ranks {ranks} --hardware machine.toml {more}")).is(0)
    };
    let json = |ranks: u32| plan(ranks, "--json").json();
    let (alone, four) = (json(1), json(4));
    assert_eq!((&four["ranks"], &four["hardware"]["network_bytes_a_second"]), (&4.into(), &5e9.into()));
    assert_eq!(four["databases"].as_array().unwrap().len(), 18);
    for (number, method) in ["counting", "sweep", "two-bit", "one-bit", "one-bit-dual"].into_iter().enumerate() {
        let prediction = |plan: &Value| plan["databases"][17]["predictions"][number].clone();
        let (alone, four) = (prediction(&alone), prediction(&four));
        let number = |plan: &Value, what: &str| plan[what].as_f64().unwrap();
        assert_eq!((&four["method"], number(&alone, "sent_bytes")), (&method.into(), 0.0));
        assert!(number(&four, "sent_bytes") > 21_474_180.0, "{method}");
        // So few values take little memory; the library that sends messages takes some, and so do queues of updates.
        let more = number(&four, "memory_bytes") - number(&alone, "memory_bytes");
        assert!(more < f64::from(22 << 20) || method == "counting", "{method}");
        assert!(number(&four["busy"], "cores") < number(&alone["busy"], "cores"), "{method}");
        assert!(number(&four, "memory_bytes") <= number(&four, "memory_bytes_max"), "{method}");
    }
    assert_eq!((&four["databases"][17]["fits"], &four["databases"][17]["stones"]), (&true.into(), &17.into()));
    let text = plan(4, "--memory '105 MiB' --set build.method=sweep").out;
    for part in [
        "each of 4 ranks",
        "latency 7 us",
        "fullest rank",
        "21,474,180",
        " fit: about",
        "does not fit: the fullest rank",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_method_table_shows_every_database_and_method() {
    let place = TestDirectory::new(3);
    let hardware = tests::root().join("manifests/hardware/server.toml");
    let hardware = hardware.display();
    let method_table = |more: &str| {
        let plan = place.awari(&format!("plan --stones 0..48 --hardware {hardware} --json {more}")).is(0);
        plan.json()["databases"].as_array().unwrap().clone()
    };
    let all = method_table("");
    assert_eq!(all.len(), 49);
    assert_eq!((&all[48]["stones"], &all[48]["positions"]), (&48.into(), &279_871_768_995u64.into()));
    for row in &all {
        let predictions = row["predictions"].as_array().unwrap();
        let methods: Vec<&str> = predictions.iter().map(|prediction| prediction["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["counting", "sweep", "two-bit", "one-bit", "one-bit-dual"]);
        let chosen = predictions.iter().find(|prediction| prediction["method"] == row["method"]).unwrap();
        assert_eq!(chosen["fits"], true, "{row}");
        for prediction in predictions {
            assert!(prediction["disk_bytes"].as_u64() > row["database_bytes"].as_u64(), "{prediction}");
            assert!(
                prediction["seconds"].as_f64().unwrap() > 0.0 && prediction["memory_bytes"].as_u64() > Some(16 << 20),
                "{prediction}"
            );
        }
    }
    // 240 GiB hold two bytes a position of 42 stones, and two bits of all.
    assert_eq!((&all[42]["method"], &all[48]["method"]), (&"sweep".into(), &"two-bit".into()));
    let reachable = method_table("--set game.positions=reachable");
    assert_eq!(reachable[48]["positions"], 203_648_015_936u64);
    place.awari("plan --stones 0..20 --memory '128 MiB'").is(0).shows(&[
        "\ntime:\n",
        "\npeak memory:\n",
        "84,672,315",
        "0..20 fit: about",
    ]);
    place.awari("plan --stones 5").is(0).shows(&["\n5 fits: about"]);
    // The room is that of the disk a run would write to.
    let here = place.awari("plan --stones 0..48 --memory '512 GiB'").is(0).out;
    assert!(!here.contains("0..48 fit") && here.contains(" does not fit: "), "{here}");
    // Behind a cache, all stages take less than a byte a position; a sweep takes two.
    let little = "plan --stones 0..20 --memory '64 MiB' --set build.threads=1";
    place.awari(little).is(0).shows(&["0..20 fit: about"]);
    place.awari(&format!("{little} --set build.method=sweep")).is(0).shows(&[" does not fit: sweep needs "]);
    // The tables of as many stones do not fit.
    place.awari("plan --stones 0..40 --memory '128 MiB'").is(0).shows(&[" does not fit: one-bit-dual needs "]);
    // The manifest's own range does not count, its other keys do.
    place.manifest("[game]\npositions = \"reachable\"\n\n[build]\nstones = 2\n");
    let rows = place.awari("plan m.toml --stones 0..6 --json").is(0).json();
    let old = place.awari("plan m.toml --up-to 6 --json").is(0).json();
    assert_eq!(old["databases"], rows["databases"], "the deprecated name of the option");
    let two = place.awari("plan m.toml --stones 5..6 --json").is(0).json();
    assert_eq!(two["databases"].as_array().unwrap()[..], rows["databases"].as_array().unwrap()[5..]);
    assert_eq!(rows["databases"][6]["positions"], 12_375);
    assert_eq!(rows["memory_bytes"], 2u64 << 30);
    place.manifest("[game]\npositions = \"reachable\"\n\n[build]\nstones = \"0..48\"\n\n[run]\ndir = \"run\"\n");
    place.awari(&format!("plan m.toml --hardware {hardware}")).is(0).shows(&["verify:48"]);
    // A smaller game has no more stones, unless all positions are asked for.
    let smaller = ["plan m.toml --set game.opening=3", "run m.toml --set game.opening=3"];
    for command in smaller {
        place.awari(command).is(11).says(&["m.toml:5:10: build.stones must end at 36", "game.opening is 3"]);
    }
    place.awari(&format!("plan m.toml --hardware {hardware} --set game.opening=3 --set game.positions=all")).is(0);
    assert!(!place.path("run").exists());
}
