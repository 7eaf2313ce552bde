//! Plays the first legal move from the opening on, without databases: `rules [MOVES]`.

use awari_db::{Position, Rules};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let moves: usize = std::env::args().nth(1).as_deref().unwrap_or("6").parse()?;
    let mut position = Position::opening();
    for _ in 0..moves {
        let legal = position.moves(&Rules::AWARI);
        let Some(first) = legal.first() else { break };
        println!("{position:#}\n{} of {} moves, captures {}\n", first.pit, legal.len(), first.captured);
        position = first.child;
    }
    println!("{position:#}");
    Ok(())
}
