//! The stage `evaluation`, and the commands that use what it makes.

use awari_db::{Databases, Engine, EngineRequest, Error, Position, Rules, SearchLimits, SearchStop};
use serde_json::Value;
use std::sync::Arc;
use tests::directory::TestDirectory;

const FIT: &str = "--set evaluation.games=300 --set evaluation.rounds=8";
const OPENING: &str = "4 4 4 4 4 4  4 4 4 4 4 4";

#[test]
fn an_evaluation_is_made_and_used() {
    let place = TestDirectory::new(8);
    let plan = place.awari(&format!("plan m.toml --all {FIT}")).is(0).out;
    assert!(plan.contains("evaluation"), "{plan}");
    place.awari(&format!("run m.toml {FIT} --threads 1")).is(0);
    let made = place.files("run/evaluation");
    assert_eq!(made.len(), 2, "{:?}", made.keys());

    let errors: Value = serde_json::from_slice(&made.values().next().unwrap()[..]).unwrap();
    assert_eq!((&errors["stones"], &errors["games"], &errors["rounds"]), (&8.into(), &300.into(), &8.into()));
    let all = errors["errors"].as_array().unwrap();
    let sum = |what: &str| -> f64 {
        all.iter().map(|row| row[what].as_f64().unwrap() * row["positions"].as_f64().unwrap()).sum()
    };
    assert!(all.iter().all(|row| (3..=8).contains(&row["stones"].as_u64().unwrap())), "{errors}");
    assert!(sum("network") < sum("zero"), "{errors}");

    // The same bytes by other threads and another method, and nothing to do afterwards.
    place.awari(&format!("run m.toml {FIT} --threads 2 --set build.method=counting --set run.dir=other")).is(0);
    assert!(place.files("other/evaluation").values().eq(made.values()));
    let again = place.awari(&format!("run m.toml {FIT} --progress json")).is(0).out;
    assert!(!again.contains("stage-started"), "{again}");

    let probe = format!("probe --dir run --nodes 2000 --json {OPENING}");
    let own = place.awari(&probe).is(0).says(&["estimates by the evaluation run/evaluation/network.bin"]).json();
    let shipped = place.awari(&format!("probe --nodes 2000 --json {OPENING}")).is(0).json();
    assert_ne!(own["estimate"], shipped["estimate"]);
    // The library uses it as the program does.
    let databases = Arc::new(Databases::open(place.path("run")).unwrap());
    let engine = Engine::with_databases(Arc::clone(&databases), 64 << 20).unwrap();
    assert_eq!(engine.evaluation_path(), Some(&*place.path("run/evaluation/network.bin")));
    let limits = SearchLimits { nodes: Some(2000), ..SearchLimits::default() };
    // `probe` estimates all six moves.
    let request = EngineRequest { lines: 6, ..EngineRequest::new(Position::opening(), limits) };
    let report = engine.search(&request, &SearchStop::new()).unwrap();
    assert_eq!(own["estimate"].as_f64(), Some(f64::from(report.estimate) / 100.0));
    assert_eq!(Engine::new(Rules::AWARI, 1 << 20).unwrap().evaluation_path(), None);
    place
        .shell("echo uci | \"$AWARI\" engine --dir run")
        .is(0)
        .shows(&["info string estimates by the evaluation run/evaluation/network.bin"]);

    // Damage is an error, which the next run mends.
    place.flip("run/evaluation/network.bin", 1000);
    place.awari(&probe).is(16).says(&["run/evaluation/network.bin", "its checksum is"]);
    let error = Engine::with_databases(databases, 1 << 20).unwrap_err();
    assert!(matches!(&error, Error::Damaged(_)) && error.to_string().contains("its checksum is"), "{error}");
    place.awari(&format!("run m.toml {FIT}")).is(0);
    assert_eq!(place.files("run/evaluation"), made);

    // A manifest that does not ask for it leaves it to `gc`.
    place.awari("run m.toml").is(0);
    place.awari("gc --dir run").shows(&["evaluation/network.bin", "evaluation/errors.json"]);
}

#[test]
fn few_positions_are_refused() {
    let place = TestDirectory::new(5);
    place.awari("run m.toml --set evaluation.games=3").says(&["set evaluation.games higher"]);
    assert!(!place.path("run/evaluation").exists());
}

/// Rules with scores have an evaluation of their own; where a board has two bounds nothing can be fitted.
#[test]
fn an_evaluation_needs_rules_with_scores() {
    let place = TestDirectory::new(8);
    let by = |rules: &str| format!("m.toml {FIT} --set game.rules={rules}");
    for command in ["plan", "run"] {
        let refused = place.awari(&format!("{command} {}", by("oware"))).is(11);
        refused.says(&[
            "evaluation.games",
            "must be 0 where game.rules is oware, found 300",
            "--set evaluation.games=0",
        ]);
    }
    assert!(!place.path("run").exists());
    place.awari(&format!("run {}", by("wari"))).is(0);
    assert_eq!(place.files("run/evaluation").len(), 2);
}
