//! Asks for the score of a position, and the values of its moves: `probe POSITION [DIRECTORY]`.

use awari_db::{Databases, Error, Position};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let position: Position = arguments.next().as_deref().unwrap_or("1 0 0 0 0 1 1 1 0 0 0 0").parse()?;
    let directory = arguments.next().unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/example").to_owned());
    let databases = Databases::open(directory)?;
    println!("{position:#}\n\nbounds {:?}", databases.bounds(&position)?);
    for played in databases.moves(&position)? {
        println!("{} captures {}, worth {}", played.pit, played.captured, played.value);
    }
    Ok(())
}
