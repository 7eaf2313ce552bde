//! The proof strategy: it solves what other strategies do not.

use crate::{Assessment, Book, BookSides, HexGame, Strategy};

const SIZE: u32 = 4;

/// Returns how many stones a player lacks for a connection, if the opponent does not move; many if it is cut off.
fn lacking(own: u64, other: u64, is_first: bool) -> i16 {
    const MANY: i16 = 50;
    let cost = |cell: u32| match () {
        () if own >> cell & 1 == 1 => 0,
        () if other >> cell & 1 == 1 => MANY,
        () => 1,
    };
    let along = |cell: u32| if is_first { cell / SIZE } else { cell % SIZE };
    let mut least = [MANY; (SIZE * SIZE) as usize];
    for _ in 0..SIZE * SIZE {
        for cell in 0..SIZE * SIZE {
            let (row, column) = ((cell / SIZE) as i32, (cell % SIZE) as i32);
            let near =
                [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1)].map(|(down, right)| (row + down, column + right));
            let inside =
                near.iter().filter(|(row, column)| (0..SIZE as i32).contains(row) && (0..SIZE as i32).contains(column));
            let before = inside.map(|(row, column)| least[(row * SIZE as i32 + column) as usize]).min().unwrap_or(MANY);
            let before = if along(cell) == 0 { 0 } else { before };
            least[cell as usize] = least[cell as usize].min(before + cost(cell)).min(MANY);
        }
    }
    (0..SIZE * SIZE).filter(|&cell| along(cell) == SIZE - 1).map(|cell| least[cell as usize]).min().unwrap_or(MANY)
}

/// The first player wins Hex of 4 x 4 cells (Nash). A proof needs few of its 43 million positions.
#[test]
fn the_first_player_wins_hex_of_four() {
    let game = HexGame::new(SIZE).unwrap();
    let assess = |key: u64| {
        let known = game.assess(key);
        if known.is_exact() {
            return known;
        }
        let (own, other, is_first) = (key & 0xFFFF, key >> 16 & 0xFFFF, key >> 32 & 1 == 0);
        let lead = lacking(other, own, !is_first) - lacking(own, other, is_first);
        // Of equal distances, that of the player to move is worth more.
        Assessment { estimate: (lead * 20 + 10).clamp(-90, 90), ..known }
    };
    let mut book = Book::new(game, Strategy::Proof, BookSides::Both);
    let root = book.add_root(game.empty(), assess(game.empty()));
    while !book.graph().is_closed(root) {
        let leaf = book.choose().unwrap();
        book.expand(leaf, |key| Ok::<_, ()>(assess(key))).unwrap();
        assert!(book.choices() < 50_000, "{} positions", book.graph().len());
    }
    assert_eq!(book.graph().value(root), Assessment::exact(100));
    println!("{} expansions, {} positions", book.choices(), book.graph().len());
}
