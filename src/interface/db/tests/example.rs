//! The library on the databases of 0 to 4 stones that come with it.

use awari_db::{Databases, Error, Position};

fn databases() -> Databases {
    Databases::open(concat!(env!("CARGO_MANIFEST_DIR"), "/example")).expect("the example is there")
}

/// Every position: its number, its score read alone and in a row, and the values of its moves.
#[test]
fn all_ways_to_a_score_agree() {
    let databases = databases();
    assert_eq!(databases.stones().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for stones in databases.stones() {
        let database = databases.database(stones).expect("the database is there");
        let last = database.slabs().last().expect("there are slabs");
        assert_eq!(last.first + u64::from(last.rows) * u64::from(last.columns), database.positions());
        let mut scores = vec![0; database.positions() as usize];
        database.read(0..database.positions(), &mut scores).expect("the database is sound");
        for (number, &score) in (0..).zip(&scores) {
            let position = database.position(number);
            assert_eq!(database.number(&position).expect("it is one of this database"), number);
            assert_eq!(databases.score(&position).expect("the databases are sound"), score, "{position}");
            let moves = databases.moves(&position).expect("the databases are sound");
            for played in &moves {
                let child = databases.score(&played.child).expect("the databases are sound");
                assert_eq!(played.value.score(), Some(played.captured as i8 - child), "{position}: {played:?}");
            }
            let best = databases.best_moves(&position).expect("the databases are sound");
            assert_eq!(best.is_empty(), moves.is_empty());
            assert!(
                best.iter().all(|played| played.value.score() == Some(score)),
                "{position}: {best:?}, score {score}"
            );
        }
    }
}

#[test]
fn the_folder_of_the_databases_is_enough() {
    let folder = Databases::open(concat!(env!("CARGO_MANIFEST_DIR"), "/example/databases"));
    let stones: Vec<u32> = folder.expect("the example is there").stones().collect();
    assert_eq!(stones, [0, 1, 2, 3, 4]);
}

#[test]
fn errors_name_the_cause() {
    let databases = databases();
    let position: Position = "0 0 0 0 0 5 0 0 0 0 0 0".parse().expect("it is a position");
    let opening: Position = "4 4 4 4 4 4 4 4 4 4 4 4".parse().expect("it is a position");
    assert!(matches!(databases.score(&opening), Err(Error::Missing(48))));
    assert!(matches!(databases.database(9), Err(Error::Missing(9))));
    let database = databases.database(4).expect("the database is there");
    assert!(matches!(database.number(&position), Err(Error::Position(_))));
    assert!(matches!(Position::new([9; 12]), Err(Error::Position(_))));
    assert!(matches!("1 2 x".parse::<Position>(), Err(Error::Position(_))));
    assert!(matches!(Databases::open(env!("CARGO_MANIFEST_DIR")), Err(Error::NoDatabases(_))));
}
