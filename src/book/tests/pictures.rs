//! Pictures of books: their csv against the rules and the book.

use crate::{
    Assessment, AwariGame, Book, BookGame, BookSides, DropOut, Strategy, book_ends, cycle, cycle_csv, depth_csv,
    depth_histogram, diagram, diagram_csv, tree, tree_csv,
};
use game::{Board, Pit, Rules};
use std::collections::HashSet;

/// A book with estimates that depend on the position alone.
fn book(root: &Board, expansions: usize) -> Book<AwariGame> {
    book_by(Strategy::BreadthFirst, root, expansions)
}

fn book_by(strategy: Strategy, root: &Board, expansions: usize) -> Book<AwariGame> {
    let game = AwariGame::new(Rules::AWARI);
    let assess = |key: u64| {
        let most = game.value_max(key);
        let mixed = (key ^ (key >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let estimate = ((mixed >> 40) % 401) as i16 - 200;
        Assessment { low: -most, high: most, estimate: estimate.clamp(-most, most) }
    };
    let mut book = Book::new(game, strategy, BookSides::Both);
    let key = AwariGame::key(root);
    book.add_root(key, assess(key));
    for _ in 0..expansions {
        let Some(leaf) = book.choose() else { break };
        book.expand(leaf, |key| Ok::<_, ()>(assess(key))).unwrap();
    }
    book
}

/// The first rows are those of Lincke's tables 6.3 and 6.4: 1, 6 and 36 positions, with 6.0, 6.0 and 5.3 legal moves.
#[test]
fn the_first_depths_of_the_opening_are_the_published_ones() {
    let book = book(&Board::OPENING, 1 + 6);
    let text = depth_csv(&book.depth_table());
    let expected =
        "depth,nodes,solved,predecessors,degree,expanded\n0,1,0,0,6.0000,1\n1,6,0,6,6.0000,6\n2,36,0,36,5.2778,0\n";
    assert_eq!(text, expected);
    let picture = depth_histogram(&book.depth_table());
    assert_eq!(picture.matches("fill=\"#1f6f8b\"").count(), 3);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
}

/// Asserts that the elements of a picture are closed in order.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{piece}");
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) => assert_eq!(open.pop(), Some(name), "{piece}"),
            (None, true) => {}
            (None, false) => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty() && svg.starts_with("<svg "));
}

/// The lines of the drop-out diagram give the priorities of the root, and so the leaf that is expanded next.
#[test]
fn the_drop_out_diagram_gives_the_priorities_of_the_root() {
    for omega in [0, 50, 100, 400] {
        let strategy = Strategy::DropOut(DropOut { omega, forced: None, solves: false });
        let book = book_by(strategy, &Board::OPENING, 500);
        let (graph, root) = (book.graph(), book.roots()[0]);
        let priorities = book.priorities(root).unwrap();
        for (is_book, priority) in [(true, priorities.book), (false, priorities.opponent)] {
            let ends = book_ends(graph, root, is_book);
            let costs = diagram_csv(&ends)
                .lines()
                .skip(1)
                .map(|line| {
                    let [depth, price, state] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
                    assert_eq!(state, "leaf", "nothing is proved");
                    depth.parse::<f64>().unwrap() + omega as f64 / 100.0 * price.parse::<f64>().unwrap()
                })
                .collect::<Vec<f64>>();
            let least = costs.into_iter().fold(f64::INFINITY, f64::min);
            assert!((least - priority.plies()).abs() < 1e-9, "omega {omega}: {least} is not {}", priority.plies());
            assert_well_formed(&diagram(graph, root, is_book, omega));
        }
        assert_well_formed(&tree(&book));
        assert_well_formed(&depth_histogram(&book.depth_table()));
    }
}

/// Plays moves such as `FfB` from the opening by the rules, and returns the position and the captures of the
/// first player less those of the second.
fn played(letters: &str) -> (Board, i32) {
    letters.bytes().enumerate().fold((Board::OPENING, 0), |(board, gained), (ply, letter)| {
        let played = board.play(&Rules::AWARI, Pit::new(letter.to_ascii_uppercase() - b'A').unwrap()).unwrap();
        let captured = i32::from(played.captured);
        (played.child, if ply % 2 == 0 { gained + captured } else { gained - captured })
    })
}

#[test]
fn the_tree_shows_the_values_of_its_positions() {
    let book = book(&Board::OPENING, 400);
    let graph = book.graph();
    let text = tree_csv(&book);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    // The start, six moves, three replies to each, and a move after each of these.
    assert_eq!(lines.len(), 1 + 6 + 18 + 18);
    for line in &lines {
        let (moves, rest) = line.split_once(',').unwrap();
        let (value, _) = rest.split_once(',').unwrap();
        let (board, gained) = played(moves);
        let estimate = i32::from(graph.value(graph.find(AwariGame::key(&board)).unwrap()).estimate);
        let expected = gained * 100 + if moves.len() % 2 == 0 { estimate } else { -estimate };
        assert_eq!((value.parse::<f64>().unwrap() * 100.0).round() as i32, expected, "{line}");
    }
    let names: HashSet<&str> = lines.iter().map(|line| line.split_once(',').unwrap().0).collect();
    assert_eq!(names.len(), lines.len());
    assert_eq!(tree(&book).matches("<text").count(), lines.len());
}

/// Each position of the cycle follows from the one before it by the rules, and the last one leads to the first.
#[test]
fn a_cycle_is_one_by_the_rules() {
    let root = Board([1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
    let book = book(&root, 500);
    let text = cycle_csv(&book);
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(rows.len() >= 2, "{text}");
    let board = |row: &[&str]| {
        let pits: Vec<u8> = row[0].split(' ').map(|stones| stones.parse().unwrap()).collect();
        Board(pits.try_into().unwrap())
    };
    for (at, row) in rows.iter().enumerate() {
        let pit = Pit::new(row[2].as_bytes()[0] - b'A').unwrap();
        let played = board(row).play(&Rules::AWARI, pit).unwrap();
        assert_eq!((played.child, played.captured), (board(&rows[(at + 1) % rows.len()]), 0), "{text}");
        assert_ne!(row[2], row[3], "{text}");
    }
    assert_eq!(rows.iter().map(|row| row[0]).collect::<HashSet<_>>().len(), rows.len());
    assert_eq!(cycle(&book).matches("<circle").count(), rows.len());
    // A book of the start alone has none.
    assert_eq!(cycle_csv(&self::book(&root, 0)).lines().count(), 1);
}
