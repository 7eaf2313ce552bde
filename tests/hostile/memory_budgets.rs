//! Builds in control groups whose memory limit is `build.memory`: none may be killed.

use std::fs;
use tests::Random;
use tests::control_group::ControlGroup;
use tests::directory::{TestDirectory, between};
use tests::needs::Need;

const MIB: u64 = 1 << 20;

/// Manifests that are built, each in one to ten seconds.
const MANIFESTS: u64 = 8;

/// A random manifest, without its memory.
fn manifest(random: &mut Random) -> String {
    let method = *random.pick(&["auto", "counting", "sweep", "two-bit", "one-bit", "one-bit-dual"]);
    let has_bounds = method.contains("-bit");
    let stones = if has_bounds { 11 } else { 14 } + random.below(2);
    let rules = if method == "auto" { *random.pick(&["awari", "oware"]) } else { "awari" };
    let (positions, verify) = (*random.pick(&["all", "reachable"]), *random.pick(&["full", "sample", "none"]));
    let (codec, snapshot) = (*random.pick(&["raw", "packed", "zstd", "rans"]), *random.pick(&["1 s", "10 min"]));
    let (threads, stages) = (1 + random.below(4), *random.pick(&[0, 0, 2, 3, 8]));
    format!(
        "[game]\nrules = \"{rules}\"\npositions = \"{positions}\"\n\
         [build]\nstones = \"0..{stones}\"\nmethod = \"{method}\"\nthreads = {threads}\n\
         stages-at-a-time = {stages}\nsnapshot = \"{snapshot}\"\n\
         [store]\ncodec = \"{codec}\"\n[check]\nverify = \"{verify}\"\n[run]\ndir = \"run\"\n"
    )
}

/// Returns the MiB of memory from `least` on with which the plan of the manifest fits.
fn fitting(place: &TestDirectory, least: u64) -> u64 {
    let mut memory = least;
    loop {
        let plan = place.awari(&format!("plan m.toml --memory {memory}MiB")).is(0).err;
        if !plan.contains("would refuse to start") {
            return memory;
        }
        let needed: f64 = between(&plan, " needs ", " MiB of memory, ").parse().unwrap();
        assert!(needed > memory as f64, "{memory} MiB: {plan}");
        memory = needed.ceil() as u64;
    }
}

#[test]
#[ignore = "slow tier: eight builds in control groups"]
fn runs_stay_within_their_memory() {
    if !Need::ControlGroups.is_met() {
        return;
    }
    let random = Random::new(0x6d65_6d6f);
    for number in 0..MANIFESTS {
        let mut random = random.branch(number);
        let place = TestDirectory::new(0);
        let manifest = manifest(&mut random);
        place.manifest(&manifest);
        // Often no more than the plan says is needed.
        let memory = fitting(&place, *random.pick(&[48, 48, 52, 64, 128])) + random.pick(&[0, 0, 2, 10]);
        let group = ControlGroup::with_memory(memory * MIB).unwrap();
        let join =
            format!("echo $$ >{} && exec \"$AWARI\" run m.toml --memory {memory}MiB", group.processes().display());
        let ended = place.shell(&join);
        let used = group.most_used().map_or("?".to_owned(), |bytes| (bytes / MIB).to_string());
        println!("manifest {number}: {used} of {memory} MiB");
        assert_eq!((ended.code, group.killed()), (Some(0), 0), "{memory} MiB for\n{manifest}{ended:?}");
        assert!(fs::exists(place.path("run/databases/11.awari")).unwrap());
    }
}
