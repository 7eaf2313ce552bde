//! The stage `puzzles`.

use game::reference::{self, Pits, Positions, ReferenceMove, ReferenceScores, RowHalf};
use tests::directory::TestDirectory;

const STONES: u8 = 7;

/// Number of puzzles asked for: enough that every position of 7 stones is tried.
const RANGES: usize = 1000;

/// Returns the line of a position, if it is a puzzle by the plain rules.
fn line(pits: Pits, scores: &[ReferenceScores]) -> Option<String> {
    let moves: Vec<(usize, u8, i8)> = reference::moves(pits)
        .into_iter()
        .enumerate()
        .filter_map(|(pit, played)| match played {
            ReferenceMove::Legal { captured, child } => {
                let stones = usize::from(child.iter().sum::<u8>());
                Some((pit, captured, captured as i8 - scores[stones][&child]))
            }
            _ => None,
        })
        .collect();
    let value = moves.iter().map(|&(.., value)| value).max()?;
    let most = moves.iter().map(|&(_, captured, _)| captured).max()?;
    let best: Vec<_> = moves.iter().filter(|legal| legal.2 == value).collect();
    let &[&(best, captured, _)] = &best[..] else { return None };
    let second = moves.iter().filter(|legal| legal.0 != best).map(|&(.., value)| value).max()?;
    let name = |pit: usize| char::from(b'A' + pit as u8).to_string();
    let greedy: Vec<_> = moves.iter().filter(|legal| legal.1 == most).map(|legal| name(legal.0)).collect();
    let pits = pits.map(|stones| stones.to_string()).join(" ");
    (captured < most).then(|| format!("{pits}; {}; {value}; {second}; {}", name(best), greedy.join(" ")))
}

#[test]
fn puzzles_are_those_of_the_plain_rules() {
    let place = TestDirectory::new(STONES.into());
    let wanted = format!("m.toml --set puzzles.count={RANGES}");
    place.awari(&format!("plan {wanted}")).is(0).shows(&["puzzles:7"]);
    place.awari(&format!("run {wanted} --threads 1")).is(0);
    let made = place.files("run/puzzles");
    assert_eq!(made.len(), usize::from(STONES) + 1);
    let text = String::from_utf8(made[&place.path("run/puzzles/07.txt")].clone()).unwrap();
    let found: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();

    let (scores, all) = (reference::solve_up_to(STONES), reference::ordered(STONES, Positions::All, RowHalf::Opponent));
    let range = |number: usize| &all[number * all.len() / RANGES..(number + 1) * all.len() / RANGES];
    let first = |number| range(number).iter().find_map(|&pits| line(pits, &scores));
    let expected: Vec<String> = (0..RANGES).filter_map(first).collect();
    assert!(expected.len() > 50, "{}", expected.len());
    assert_eq!(found, expected);

    // The same bytes by other threads, method and codec; nothing to do afterwards; and garbage if they are not wanted.
    let other = "--threads 2 --set build.method=two-bit --set store.codec=rans --set run.dir=other";
    place.awari(&format!("run {wanted} {other}")).is(0);
    assert!(place.files("other/puzzles").values().eq(made.values()));
    let again = place.awari(&format!("run {wanted} --progress json")).is(0).out;
    assert!(!again.contains("stage-started"), "{again}");
    place.awari("run m.toml").is(0);
    place.awari("gc --dir run").shows(&["puzzles/07.txt"]);
}

#[test]
fn puzzles_need_rules_with_scores() {
    let place = TestDirectory::new(3);
    let refused = place.awari("plan m.toml --set puzzles.count=5 --set game.rules=oware").is(11);
    refused.says(&["puzzles.count", "must be 0 where game.rules is oware, found 5", "--set puzzles.count=0"]);
}
