//! Books of manifests: what commands say of them, and books by other rules.

use tests::directory::TestDirectory;

/// Status, run and report say what the book knows.
#[test]
fn commands_sum_up_the_book_of_a_manifest() {
    let place = TestDirectory::new(3);
    let book = "[book]\npositions = 120\nsearch = \"nodes=50\"\n";
    place.manifest(&format!("[build]\nstones = \"0..3\"\nthreads = 1\n{book}[run]\ndir = \"run\"\n"));
    let ran = place.awari("run m.toml").is(0).err;
    let stats = place.awari("book stats --dir run").is(0).out;
    let positions = stats.lines().find(|line| line.contains(" expanded, ")).unwrap();
    let expected = format!("opening book: {}", positions.split(';').next().unwrap());
    let said = |text: &str| text.replace('\n', " ").contains(&expected);
    assert!(said(&ran), "{expected}: {ran}");
    let status = place.awari("status --dir run").is(0).out;
    assert!(said(&status) && status.contains("left for nothing at ply"), "{expected}: {status}");
    place.awari("report --dir run --out page.html").is(0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(said(&page), "{expected}");
    // The stage stored the values.
    let verified = place.awari("book verify --dir run").is(0).out;
    assert!(verified.contains("verified") && !verified.contains("not stored"), "{verified}");
    // No command had to derive them.
    let shown = place.awari("book show --dir run").is(0);
    assert!(shown.err.is_empty(), "{}", shown.err);
}

/// Books follow the rules of the databases beside them. Rules by which a board has two bounds are refused.
#[test]
fn books_have_the_rules_of_their_databases() {
    let place = TestDirectory::new(3);
    place.awari("run m.toml --set game.rules=wari").is(0);
    place.awari("book expand --dir run --positions 60 --nodes 50 --strategy breadth-first").is(0);
    place.awari("book show --dir run F4").is(0);
    place.awari("book verify --dir run --certify").is(0);
    let played = place.shell("printf 'F4\\n' | $AWARI book play --dir run").is(0).out;
    assert!(played.contains("North plays"), "{played}");
    let engine = place.shell("printf 'go depth 1\\n' | $AWARI engine --dir run").is(0).out;
    assert!(engine.contains("the book plays"), "{engine}");
    // Without databases it keeps its rules.
    std::fs::create_dir_all(place.path("alone/books")).unwrap();
    std::fs::copy(place.path("run/books/opening.sqlite"), place.path("alone/books/opening.sqlite")).unwrap();
    place.awari("book expand --dir alone --positions 70 --nodes 50").is(0);
    place.awari("engine --book alone/books/opening.sqlite").is(12).says(&["the rules awari", "the rules wari"]);

    let oware = TestDirectory::new(2);
    oware.awari("run m.toml --set game.rules=oware").is(0);
    oware.awari("book expand --dir run --positions 60").is(12).says(&["rules oware", "two values"]);
    oware
        .awari("run m.toml --set game.rules=oware --set book.positions=100")
        .is(11)
        .says(&["book.positions", "two bounds"]);
}
