//! The book that a manifest asks for: its settings, the stages that build it, and what they are predicted to take.
//!
//! A stage `book:K` ends when the book has K positions. K is a *milestone*: 1,000, 2,000, 5,000, 10,000 and so on, and
//! the number of the manifest. So the stages of a book stay when the manifest asks for a larger one.

use crate::hardware::Hardware;
use book::{AssessmentLimits, BookSettings, BookSides, DropOut, Strategy};
use game::Board;
use game::notation::PositionText;
use pipeline::Cost;
use pipeline::manifest::{Manifest, ManifestKey, Schema, Value, ValueType};

/// The least number of positions of a book: more than the stones of any database, so that a number tells stages of
/// databases and books apart.
const POSITIONS_MIN: i64 = 100;

/// The largest number of positions of a book.
const POSITIONS_MAX: i64 = 100_000_000;

/// The first milestone.
const FIRST: u32 = 1_000;

/// Nanoseconds to search a position: 150 in the opening with databases of up to 9 stones, with misses of larger ones.
const NODE_NANOSECONDS: f64 = 170.0;

/// Nanoseconds of a new position beside its search: the transaction and what is derived 14,000, the table of a search
/// 20,000.
const POSITION_NANOSECONDS: f64 = 34_000.0;

/// Nanoseconds of a position in a book that is loaded, with two passes over all facts, and whose values are stored.
const LOAD_NANOSECONDS: f64 = 2_500.0;

/// Seconds of the smallest stage: syncing files and directories.
const REPORT_SECONDS: f64 = 0.01;

/// Bytes of a position in memory, with what is derived and the facts that are read to load it.
const POSITION_BYTES: u64 = 400;

/// Bytes of a position in the file: 41 of facts, 31 of values, and as many in the write-ahead log while
/// values are stored.
const FILE_BYTES: u64 = 105;

/// The book of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookRequest {
    /// Its name: its file is `books/NAME.sqlite`.
    pub name: String,
    /// The first position; `None` is the opening of the databases.
    pub root: Option<Board>,
    /// The number of moves after which positions are roots too; 0 for the first position alone.
    pub plies: u32,
    /// The number of positions at which it ends.
    pub positions: u32,
    /// How leaves are chosen and assessed, with the threads of the build.
    pub settings: BookSettings,
}

/// Adds the keys of the table `[book]`.
pub(crate) fn keys(schema: Schema) -> Schema {
    let text = |path: &str, default: &str, doc: &str, check: fn(&str) -> Result<(), String>| {
        ManifestKey::new(path, ValueType::String, default, doc).check(move |value| match value {
            Value::String(text) => check(text),
            _ => Ok(()),
        })
    };
    schema
        .table("book", "An opening book, built after the databases.")
        .key(
            ManifestKey::new(
                "book.positions",
                ValueType::Integer(0, POSITIONS_MAX),
                "0",
                "Number of positions at which the book ends, at least 100; 0 builds no book.",
            )
            .check(|value| match value {
                Value::Integer(positions) if (1..POSITIONS_MIN).contains(positions) => {
                    Err(format!("must be 0 for no book, or at least {POSITIONS_MIN}; found {positions}"))
                }
                _ => Ok(()),
            }),
        )
        .key(text("book.name", "opening", "Name of the book, which is the file books/NAME.sqlite.", |name| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let is_name = (1..=40).contains(&name.len()) && name.bytes().all(is_part);
            is_name.then_some(()).ok_or_else(|| format!("must be up to 40 letters, digits and hyphens; found {name:?}"))
        }))
        .key(text(
            "book.root",
            "",
            "First position: the stones of twelve pits, those of the player to move first; empty is the opening.",
            |root| if root.is_empty() {
Ok(())
} else {
root.parse::<PositionText>().map(drop).map_err(|error| format!("must be a position: {error}"))
},
        ))
        .key(ManifestKey::new(
            "book.plies",
            ValueType::Integer(0, 4),
            "0",
            "Number of moves before games begin: all positions that this number of moves from the first lead to are roots of the book \
             too, as openings of a match; 0 is the first position alone.",
        ))
        .key(ManifestKey::new(
            "book.sides",
            ValueType::one_of(&["both", "first", "second"]),
            "both",
            "Players that the book serves: the one to move at the root (first), the other (second), or both in turn.",
        ))
        .key(ManifestKey::new(
            "book.strategy",
            ValueType::one_of(&["drop-out", "best-first", "breadth-first", "conspiracy", "proof"]),
            "drop-out",
            "Which leaf to expand next: where an opponent can leave the book soonest and cheapest (drop-out), that best \
             moves lead to (best-first), nearest to the root (breadth-first), most likely to change the estimate of the \
             root (conspiracy), or needed for the proof of its value (proof).",
        ))
        .key(text(
            "book.omega",
            "1",
            "Plies that an opponent's loss of a stone counts as, in drop-out expansion.",
            |omega| DropOut::read_omega(omega).map(drop).ok_or_else(|| wrong_omega(omega)),
        ))
        .key(ManifestKey::new(
            "book.forced",
            ValueType::Integer(0, 96),
            "0",
            "A move counts as forced if the second best is this many stones worse, so that forced lines go deeper, in \
             drop-out expansion; 0 makes no difference between moves.",
        ))
        .key(text(
            "book.search",
            "nodes=20000",
            "Limit of the search of each position: nodes=N positions, depth=N moves, or time=N ms; a book by time \
             differs from run to run.",
            |search| search.parse::<AssessmentLimits>().map(drop),
        ))
        .key(ManifestKey::new(
            "book.look-ahead",
            ValueType::Integer(1, 1000),
            "1",
            "Leaves that are chosen ahead: more keep many threads and ranks busy, one gives the best order.",
        ))
}

fn wrong_omega(found: &str) -> String {
    format!("must be a number of plies a stone, 0 to 1000000, with up to two decimals; found {found:?}")
}

impl BookRequest {
    /// Reads the table `[book]` of a manifest; `None` if it asks for no book.
    pub(crate) fn new(manifest: &Manifest, threads: usize) -> Option<BookRequest> {
        let word = |key: &str| manifest.string(key);
        let positions = manifest.integer("book.positions") as u32;
        let root = word("book.root").parse::<PositionText>().ok().map(|text| text.board());
        let strategy = match word("book.strategy") {
            "best-first" => Strategy::BestFirst,
            "breadth-first" => Strategy::BreadthFirst,
            "conspiracy" => Strategy::Conspiracy,
            "proof" => Strategy::Proof,
            _ => Strategy::DropOut(DropOut {
                omega: DropOut::read_omega(word("book.omega")).expect("the schema checks it"),
                forced: Some(manifest.integer("book.forced") as i16 * 100).filter(|&forced| forced > 0),
                solves: false,
            }),
        };
        let settings = BookSettings {
            strategy,
            sides: word("book.sides").parse::<BookSides>().expect("the schema lists the sides"),
            limits: word("book.search").parse().expect("the schema checks it"),
            look_ahead: manifest.integer("book.look-ahead") as usize,
            threads,
        };
        let (name, plies) = (word("book.name").to_owned(), manifest.integer("book.plies") as u32);
        (positions > 0).then_some(BookRequest { name, root, plies, positions, settings })
    }

    /// Returns the numbers of positions at which stages end, ascending.
    pub fn milestones(&self) -> Vec<u32> {
        let tens = (0..).map_while(|power| FIRST.checked_mul(10u32.checked_pow(power)?));
        let all = tens.flat_map(|first| [1, 2, 5].into_iter().filter_map(move |times| first.checked_mul(times)));
        all.take_while(|&milestone| milestone < self.positions).chain([self.positions]).collect()
    }

    /// Returns the predicted cost of the stage that ends at a milestone.
    pub(crate) fn cost(&self, milestone: u32, hardware: &Hardware, ranks: usize) -> Cost {
        let milestones = self.milestones();
        let before = milestones.iter().rev().find(|&&before| before < milestone).copied().unwrap_or(0);
        let limits = self.settings.limits;
        let search = match limits {
            AssessmentLimits::Milliseconds(milliseconds) => milliseconds as f64 * 1e-3,
            _ => limits.nodes() * NODE_NANOSECONDS * 1e-9,
        };
        let threads = self.settings.threads.min(hardware.cores).max(1) * ranks;
        // An expansion has some four new positions, which fill the last round of the threads in part.
        let jobs = 4.0 * self.settings.look_ahead as f64;
        let rounds = (jobs / threads as f64).ceil() / jobs;
        let added = f64::from(milestone - before);
        let loaded = f64::from(before) * LOAD_NANOSECONDS * 1e-9;
        let memory_bytes = self.settings.threads as u64 * limits.table_bytes();
        let alone = added * POSITION_NANOSECONDS * 1e-9 + loaded + REPORT_SECONDS;
        Cost {
            positions: milestone.into(),
            seconds: added * search * rounds + alone,
            core_seconds: added * search + alone,
            disk_seconds: 0.0,
            memory_bytes: memory_bytes + u64::from(milestone) * POSITION_BYTES,
            disk_bytes: u64::from(milestone - before) * FILE_BYTES,
            disk_kept_bytes: u64::from(milestone - before) * FILE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, schema};

    fn read(table: &str) -> Result<Option<BookRequest>, String> {
        let text = format!("[build]\nstones = 3\nthreads = 2\n[book]\n{table}");
        let read = Manifest::parse(&text, "m.toml", &schema(), &[]);
        read.map(|manifest| Settings::new(&manifest).book().cloned()).map_err(|mistakes| mistakes[0].message.clone())
    }

    #[test]
    fn manifests_ask_for_books() {
        assert_eq!(read(""), Ok(None));
        let book =
            read("positions = 3000\nroot = \"1 0 0 0 0 0 0 0 0 0 0 1\"\nomega = \"0.5\"\nforced = 2\nlook-ahead = 4");
        let book = book.unwrap().unwrap();
        assert_eq!((book.root.unwrap().stones(), book.plies), (2, 0));
        assert_eq!(book.settings.text(), "drop-out omega=0.50 forced=2 both nodes=20000 look-ahead=4");
        let text = read("positions = 100\nstrategy = \"proof\"\nsides = \"second\"\nsearch = \"time=20 ms\"");
        assert_eq!(text.unwrap().unwrap().settings.text(), "proof second time=20 ms look-ahead=1");
        for (table, expected) in [
            ("positions = 99", "book.positions must be 0 for no book, or at least 100; found 99"),
            ("root = \"1 2\"", "book.root must be a position:"),
            ("plies = 5", "book.plies must be"),
            ("omega = \"-1\"", "book.omega must be a number of plies a stone"),
            ("search = \"20000\"", "book.search must be \"nodes=N\""),
            ("search = \"depth=61\"", "book.search must be"),
            ("name = \"a/b\"", "book.name must be up to 40 letters"),
        ] {
            let error = read(table).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn milestones_stay_when_a_book_grows() {
        let milestones = |positions: u32| read(&format!("positions = {positions}")).unwrap().unwrap().milestones();
        assert_eq!(milestones(100), [100]);
        assert_eq!(milestones(1_000), [1_000]);
        assert_eq!(milestones(7_000), [1_000, 2_000, 5_000, 7_000]);
        assert_eq!(milestones(20_000), [1_000, 2_000, 5_000, 10_000, 20_000]);
        assert_eq!(milestones(100_000_000).len(), 16);
    }
}
