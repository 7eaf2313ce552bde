//! Books of manifests: what commands say of them, and books by other rules.

use book::{AssessmentLimits, BookBuilder, BookEngine, BookFile, BookSettings, BookSides, Strategy};
use disk::RealDisk;
use game::{Board, Rules, Score};
use search::{ExactScores, SearchStop};
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
    // Beside databases of other rules every command says so.
    std::fs::create_dir_all(place.path("other/books")).unwrap();
    place.awari("run m.toml --set run.dir=other --set build.stones=0..2").is(0);
    std::fs::copy(place.path("run/books/opening.sqlite"), place.path("other/books/opening.sqlite")).unwrap();
    for command in ["show", "verify", "export", "stats", "diagram", "play"] {
        place.awari(&format!("book {command} --dir other")).is(12).says(&["the rules awari", "the rules wari"]);
    }

    let oware = TestDirectory::new(2);
    oware.awari("run m.toml --set game.rules=oware").is(0);
    oware.awari("book expand --dir run --positions 60").is(12).says(&["rules oware", "two values"]);
    oware
        .awari("run m.toml --set game.rules=oware --set book.positions=100")
        .is(11)
        .says(&["book.positions", "two bounds"]);
}

/// A book of several roots, given at once or one after the other, at the same number of positions; the engine
/// plays from each.
#[test]
fn a_book_has_several_roots() {
    let place = TestDirectory::built(2);
    let roots = ["1 1 0 0 0 1  0 1 0 0 1 0", "0 1 1 0 0 1  0 1 0 1 0 0"];
    let expand = |name: &str, roots: &[&str], more: &str| {
        let roots: String = roots.iter().map(|root| format!("--root '{root}' ")).collect();
        let command = format!("book expand --dir run --name {name} {roots}--nodes 50 {more}");
        place.awari(&command).is(0).err
    };
    let said = expand("both", &roots, "--positions 40");
    assert!(said.contains("the first of 2 roots"), "{said}");
    let export = |name: &str| place.awari(&format!("book export --dir run --name {name}")).is(0).out;
    let both = export("both");
    assert!(roots.iter().all(|root| both.contains(&root.replace("  ", " "))), "{both}");
    // The same command goes on, and adds nothing.
    expand("both", &roots, "--positions 40");
    assert_eq!(export("both"), both);

    expand("later", &roots[..1], "--positions 10");
    let said = expand("later", &roots[1..], "--positions 40");
    assert!(said.contains("the first of 2 roots"), "{said}");
    place.awari("book verify --dir run --name later --certify").is(0);
    for root in roots {
        let go =
            format!("position fen {}-0-0-S\\ngo depth 1\\n", root.split_whitespace().collect::<Vec<_>>().join("-"));
        let engine =
            place.shell(&format!("printf '{go}' | $AWARI engine --dir run --book run/books/later.sqlite")).is(0);
        assert!(engine.out.contains("the book plays"), "{}", engine.out);
    }
}

/// A book begins with all openings of some moves, by a command or by a manifest; also if it was interrupted
/// before they were all entered.
#[test]
fn a_book_begins_with_openings() {
    let place = TestDirectory::new(4);
    let root = "1 1 0 0 1 1  0 1 1 0 1 1";
    let table = format!("[book]\npositions = 120\nsearch = \"nodes=50\"\nroot = \"{root}\"\nplies = 2\n");
    for dir in ["run", "again"] {
        place.manifest(&format!("[build]\nstones = \"0..4\"\nthreads = 1\n{table}[run]\ndir = \"{dir}\"\n"));
        if dir == "again" {
            place.awari("run m.toml --until stats:4").is(0);
            place.awari(&format!("book expand --dir again --root '{root}' --nodes 50 --positions 1")).is(0);
        }
        place.awari("run m.toml").is(0);
    }
    let export = |dir: &str| place.awari(&format!("book export --dir {dir}")).is(0).out;
    assert_eq!(export("run"), export("again"));
    let roots = |dir: &str| {
        let said = place.awari(&format!("book expand --dir {dir} --nodes 50 --positions 1")).is(0).err;
        let count = said.split("the first of ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
        count.unwrap_or_else(|| panic!("{said}"))
    };
    let count = roots("run");
    assert!(count > 10 && count == roots("again"), "{count}");
    place.awari("book verify --dir run --certify").is(0);

    // Another number of moves is another book.
    place.awari("run m.toml --set book.plies=1").is(14).says(&["begins at", "other positions", "book.name"]);

    // A command adds them to the first root of a book that exists, and adds nothing when it runs again.
    let expand = "book expand --dir again --name later --nodes 50 --positions 60";
    place.awari(&format!("{expand} --root '{root}'")).is(0);
    for _ in 0..2 {
        let said = place.awari(&format!("{expand} --plies 2")).is(0).err;
        assert!(said.contains(&format!("the first of {count} roots")), "{said}");
    }
}

/// A book follows the games of a file, as far as it has their positions by then. Invalid games change nothing.
#[test]
fn a_book_follows_games() {
    let place = TestDirectory::built(3);
    let expand = "book expand --dir run --nodes 20 --threads 1";
    place.awari(&format!("{expand} --positions 8")).is(0);
    let shows = |line: &str| place.awari(&format!("book show --dir run {line}")).code == Some(0);
    let lines = ["A a B b C c", "A a F f"];
    assert!(lines.iter().all(|line| !shows(line)));
    let write = |text: &str| std::fs::write(place.path("games.ogn"), text).unwrap();
    let follow = |options: &str| place.awari(&format!("{expand} --follow games.ogn {options}"));
    for (text, what) in [
        ("A a *\n[Round \"2\"]\nA b F G", "games.ogn: game 2, line 3: move 4"),
        ("A a *\n[Variant \"oware\"]\nA a", "game 2 has the rules oware, and the book those of awari"),
    ] {
        write(text);
        follow("--positions 50").is(2).says(&[what]);
    }
    assert!(!shows("A a"));
    // The third game comes from no root.
    write("A a B b C c *\n[Round \"2\"]\n\n1. A a 2. F f\n\n[FEN \"0-1-0-2-0-1-1-0-2-0-1-0-20-20-S\"]\n\nB\n");
    let followed = follow("--positions 30 --follow-moves 2").is(0).err;
    assert!(followed.contains("1 position of 3 games expanded") && shows("A a") && !shows("A a B b"), "{followed}");
    // Only what is missing is expanded, and then what the strategy chooses.
    let followed = follow("--positions 100").is(0).err;
    assert!(followed.contains("5 positions of 3 games expanded"), "{followed}");
    assert!(lines.iter().all(|line| shows(line)));
    place.awari("book verify --dir run --certify --searches 1000").is(0);
    assert!(follow("--positions 110").is(0).err.contains("0 positions of 3 games expanded"));
}

/// No databases.
struct NoDatabases;

impl ExactScores for NoDatabases {
    fn knows(&self, _: u32) -> bool {
        false
    }

    fn score(&self, _: &Board) -> Option<Score> {
        None
    }
}

/// Searches of a book give the same results again, all or some of them; but not by time, without the
/// databases that they used, or by another program.
#[test]
fn searches_are_repeated() {
    let place = TestDirectory::built(3);
    place.awari("book expand --dir run --positions 60 --nodes 50 --databases 2").is(0);
    place.awari("book expand --dir run --positions 90 --nodes 70").is(0);
    let verify = |options: &str| place.awari(&format!("book verify --dir run {options}")).is(0).out;
    let numbers = |said: &str| {
        let line = said.lines().find(|line| line.ends_with("searched again, with the same results")).unwrap();
        let words: Vec<u32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        (words[0], words[1])
    };
    let all = numbers(&verify("--certify --searches 1000000"));
    assert!(all.0 == all.1 && all.1 > 50, "{all:?}");
    assert_eq!(numbers(&verify("--searches 20")), (20, all.1));
    assert!(!verify("").contains("searched again"));
    let fewer = verify("--searches 1000000 --databases 2");
    assert!(fewer.contains("could not be searched again") && numbers(&fewer).0 < all.0, "{fewer}");

    let other =
        BookEngine { version: "0.0.0 00000000".to_owned(), limits: "nodes=50".to_owned(), databases: "0".to_owned() };
    let settings = BookSettings {
        strategy: Strategy::BreadthFirst,
        sides: BookSides::Both,
        limits: AssessmentLimits::Nodes(50),
        look_ahead: 1,
        threads: 1,
    };
    let path = place.path("run/books/other.sqlite");
    let file = BookFile::create(&RealDisk::default(), &path, &Rules::AWARI, &other).unwrap();
    let stop = SearchStop::new();
    let mut builder = BookBuilder::new(file, &Board::OPENING, &settings, &NoDatabases, &stop).unwrap();
    while builder.book().graph().len() < 40 {
        assert!(builder.expand().unwrap());
    }
    drop(builder);
    let said = verify("--name other --searches 1000000");
    let (repeated, searched) = numbers(&said);
    assert!(said.contains("by another program") && repeated == 0 && searched >= 40, "{said}");

    let book = "[book]\npositions = 100\nsearch = \"time=1 ms\"\n";
    place.manifest(&format!("[build]\nstones = \"0..3\"\nthreads = 1\n{book}[run]\ndir = \"timed\"\n"));
    place.awari("run m.toml").is(0);
    let timed = place.awari("book verify --dir timed --searches 10").is(0).out;
    assert!(
        timed.contains("\n0 positions of ") && timed.contains("10 positions could not be searched again"),
        "{timed}"
    );
}

/// Proves a draw from smaller databases, and derives the value again. Other positions are refused.
#[test]
fn draws_are_proved() {
    let place = TestDirectory::built(10);
    let twelve = "book prove --dir run --name twelve --root '1 1 1 1 1 1 1 1 1 1 1 1'";
    let proved = place.awari(twelve).is(0).out;
    assert!(proved.contains("the value of 1 1 1 1 1 1 1 1 1 1 1 1 is 0, by databases 0..10 and rules"), "{proved}");
    assert_eq!(proved.matches("that it never has to leave").count(), 2, "{proved}");
    let verified = place.awari("book verify --dir run --name twelve --certify").is(0).out;
    assert!(verified.contains("is 0, by databases and rules alone") && !verified.contains("not stored"), "{verified}");
    let again = place.awari(twelve).is(0);
    assert!(again.out.is_empty() && again.err.contains("proves already"), "{}", again.err);

    let root = "--root '0 0 0 0 0 2  1 0 0 0 0 0'";
    place
        .awari(&format!("book prove --dir run --name twelve {root}"))
        .is(12)
        .says(&["there is another book", "--name"]);
    place.awari(&format!("book prove --dir run {root}")).is(3).says(&["no draw", "wins"]);
    let thirteen = "book prove --dir run --root '2 1 1 1 1 1 1 1 1 1 1 1'";
    place.awari(thirteen).is(3).says(&["databases of up to 11 stones", "that of 11 is missing"]);
    place
        .awari(&format!("{} --positions 1", twelve.replace("twelve", "short")))
        .is(3)
        .says(&["no proof with 1 position", "--positions"]);
    assert!(!place.path("run/books/opening.sqlite").exists());
}
