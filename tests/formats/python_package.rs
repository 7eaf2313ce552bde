//! The Python package in `src/interface/python`: is installed by pip, and answers as the independent reader does.
//!
//! Needs the packages that [`Need::PythonPackages`] names, in the interpreter of [`python`]. The extension is
//! compiled without optimisation, and the program is the one under test, so that the test takes seconds. It
//! builds without a network.

use std::process::Command;
use tests::directory::{TestDirectory, ended};
use tests::needs::{Need, python};
use tests::{awari, root};

#[test]
#[ignore = "slow tier: compiles the extension"]
fn the_installed_package_answers_as_the_reader_does() {
    if !Need::PythonPackages.is_met() {
        return;
    }
    let place = TestDirectory::new(8);
    // The build runs `maturin` by its name.
    let scripts =
        Command::new(python()).args(["-c", "import sysconfig; print(sysconfig.get_path('scripts'))"]).output();
    let scripts = String::from_utf8(scripts.unwrap().stdout).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut install = Command::new(python());
    install
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"])
        .arg(place.path("site"))
        .arg(root().join("src/interface/python"))
        .env("AWARI_PROGRAM", awari())
        .env("CARGO_TARGET_DIR", root().join("src/interface/python/target"))
        .env("MATURIN_PEP517_ARGS", "--profile dev")
        .env("PATH", format!("{}:{path}", scripts.trim()));
    succeeds(install);

    place.awari("run m.toml --dir runs/quickstart").is(0);
    place.awari("book expand --dir runs/quickstart --positions 60 --nodes 50").is(0);
    for (codec, positions) in [("raw", "all"), ("packed", "reachable"), ("zstd", "all"), ("rans", "reachable")] {
        let set = format!("--set store.codec={codec} --set game.positions={positions}");
        place.awari(&format!("run m.toml {set} --dir runs/{codec}-{positions}")).is(0);
    }
    place.awari("run m.toml --dir runs/raw-all --set evaluation.games=300 --set evaluation.rounds=8").is(0);
    for (dir, codec, positions) in [("oware", "raw", "all"), ("oware-reachable", "rans", "reachable")] {
        let set = format!("--set game.rules=oware --set store.codec={codec} --set game.positions={positions}");
        place.awari(&format!("run m.toml {set} --dir runs/{dir}")).is(0);
    }
    let game =
        "--set game.positions=reachable --set game.opening=1 --set 'build.stones=0..10, 12' --set check.verify=none";
    place.awari(&format!("run m.toml {game} --dir runs/opening")).is(0);
    let mut check = Command::new(python());
    check
        .arg("-B")
        .arg(root().join("tests/formats/awari_package.py"))
        .arg(root().join("src/interface/python/README.md"))
        .env("PYTHONPATH", place.path("site"))
        .current_dir(place.path("."));
    let out = succeeds(check);
    assert!(out.contains("compared: 4 directories of scores, 2 of bounds"), "{out}");
}

/// Runs a command that must succeed; returns its output.
fn succeeds(command: Command) -> String {
    let result = ended(command);
    assert_eq!(result.code, Some(0), "{}{}", result.out, result.err);
    result.out
}
