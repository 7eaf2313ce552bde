//! Time management: how long to think about a move, given the clock.
//!
//! A move never takes more than a share of the remaining time, so that the clock cannot run out however often
//! it is asked, and a margin stays for what the engine does not see: pipes, the scheduler, the other program.

use std::time::Duration;

/// Time that is never planned for thinking.
const MARGIN: Duration = Duration::from_millis(30);

/// The number of moves that the remaining time has to suffice for, if nothing is said: half of the moves of a
/// long game.
const MOVES_LEFT: u32 = 30;

/// The largest share of the remaining time for one move, unless fewer moves are left.
const SHARE_MAX: f64 = 0.25;

/// A move may take up to this multiple of its share to end an iteration that has begun.
const STRETCH: f64 = 3.0;

/// No iteration is begun after this part of the share: the next one takes about twice as long as all before it.
const ITERATION_PART: f64 = 0.5;

/// The part of the increment that is spent on top.
const INCREMENT_PART: f64 = 0.75;

/// The least time to think, which finds a legal move.
const TIME_MIN: Duration = Duration::from_millis(1);

/// The clock of the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlayerClock {
    /// The remaining time.
    pub(super) remaining: Duration,
    /// The time that is added after each move.
    pub(super) increment: Duration,
    /// The number of moves until the next time control.
    pub(super) moves_to_go: Option<u32>,
}

/// The time to think about a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThinkingTime {
    /// When to stop.
    pub(super) most: Duration,
    /// When to begin no further iteration.
    pub(super) iteration: Duration,
}

impl PlayerClock {
    /// Returns the time to think about the next move.
    pub(super) fn thinking_time(&self) -> ThinkingTime {
        let available = self.remaining.saturating_sub(MARGIN).as_secs_f64();
        let moves = f64::from(self.moves_to_go.unwrap_or(MOVES_LEFT).clamp(1, MOVES_LEFT));
        let share = available / moves + INCREMENT_PART * self.increment.as_secs_f64();
        let most = (STRETCH * share).min(available * SHARE_MAX.max(1.0 / moves));
        let iteration = (ITERATION_PART * share).min(most);
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).max(TIME_MIN);
        ThinkingTime { most: seconds(most), iteration: seconds(iteration) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(remaining: u64, increment: u64, moves_to_go: Option<u32>) -> PlayerClock {
        let (remaining, increment) = (Duration::from_millis(remaining), Duration::from_millis(increment));
        PlayerClock { remaining, increment, moves_to_go }
    }

    #[test]
    fn a_move_takes_a_share_of_the_clock() {
        for remaining in [0, 1, 20, 31, 100, 1000, 60_000, 3_600_000, u64::MAX] {
            for increment in [0, 1, 100, 10_000, u64::MAX] {
                for moves in [None, Some(0), Some(1), Some(2), Some(40), Some(u32::MAX)] {
                    let clock = clock(remaining, increment, moves);
                    let ThinkingTime { most, iteration } = clock.thinking_time();
                    assert!(iteration <= most && TIME_MIN <= iteration, "{clock:?}");
                    let left = clock.remaining.saturating_sub(MARGIN);
                    let largest = if moves.is_some_and(|moves| moves < 4) { left } else { left.mul_f64(0.2501) };
                    // Floating-point numbers round the largest times.
                    assert!(most <= largest.mul_f64(1.000_001).max(TIME_MIN), "{clock:?}: {most:?}");
                }
            }
        }
    }

    /// Thinking as long as allowed at every move, with some time lost outside the engine, never runs out of time.
    #[test]
    fn the_clock_never_runs_out() {
        for (start, increment) in [(1000, 0), (10_000, 0), (10_000, 100), (100, 100), (60_000, 10), (500, 2000)] {
            let lost = Duration::from_millis(if increment == 0 { 0 } else { 9 });
            let mut clock = clock(start, increment, None);
            for number in 0..400 {
                let used = clock.thinking_time().most + lost;
                assert!(
                    used < clock.remaining,
                    "{start}+{increment}, move {number}: {used:?} of {:?}",
                    clock.remaining
                );
                clock.remaining = clock.remaining - used + clock.increment;
                if increment == 0 && clock.remaining <= MARGIN {
                    break;
                }
            }
        }
    }

    /// A control of some moves: all of them are played in time, however long each one takes within its limit.
    #[test]
    fn all_moves_of_a_control_are_played() {
        for moves in 1..=60 {
            let mut clock = clock(5000, 0, Some(moves));
            for left in (1..=moves).rev() {
                clock.moves_to_go = Some(left);
                let used = clock.thinking_time().most;
                assert!(used < clock.remaining, "{moves} moves, {left} left: {used:?} of {:?}", clock.remaining);
                clock.remaining -= used;
            }
        }
    }

    #[test]
    fn more_time_is_used() {
        let most = |remaining, increment| clock(remaining, increment, None).thinking_time().most;
        assert!(most(10_000, 0) > Duration::from_millis(900) && most(10_000, 100) > most(10_000, 0));
        // The last move of a control may use the remaining time, in one iteration that ends in time.
        let last = clock(10_030, 0, Some(1)).thinking_time();
        assert_eq!((last.most, last.iteration), (Duration::from_secs(10), Duration::from_secs(5)));
    }
}
