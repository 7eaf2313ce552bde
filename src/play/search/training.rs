//! Fits the evaluation to positions with known scores, or with estimates of them.
//!
//! The loss of an estimate is its error, squared below one stone (Huber 1964): a few positions with huge
//! scores must not outweigh the others. The weights follow the gradient by the rule of Kingma & Ba (Adam,
//! 2015), with a rate that falls to 0.
//!
//! The result depends on the samples and their order alone, not on threads or on the processor: sums of fixed
//! parts of a batch are added in a fixed order, and only operations are used whose rounding is standardised.

use crate::board::PackedBoard;
use crate::evaluation::{DIRECT_STONE, Evaluation, EvaluationNetwork, NARROW, ONE, ROW_MAX, Row, WIDE};
use crate::features::{COLUMNS, FEATURES, columns};
use crate::sampling::SplitMix;
use game::Board;
use std::thread;

/// The number of samples between two changes of the weights.
const BATCH: usize = 1024;

/// The parts of a batch, which threads share out.
const PARTS: usize = 4;

/// The rate at the start.
const RATE: f32 = 0.002;

/// The shares that the averages of Adam keep.
const KEPT_MEAN: f32 = 0.9;
const KEPT_SQUARE: f32 = 0.999;

/// The bound of a weight of the first layer.
const ROW_WEIGHT_MAX: f32 = ROW_MAX as f32 / ONE as f32;

/// The numbers of the network, one after the other.
const ROWS: usize = 0;
const FIRST_BIAS: usize = ROWS + COLUMNS * WIDE;
const DIRECT: usize = FIRST_BIAS + WIDE;
const SECOND: usize = DIRECT + COLUMNS;
const SECOND_BIAS: usize = SECOND + NARROW * WIDE;
const LAST: usize = SECOND_BIAS + NARROW;
const LAST_BIAS: usize = LAST + NARROW;
const WEIGHTS: usize = LAST_BIAS + 1;

/// The fit of an evaluation.
#[derive(Debug)]
pub struct Training {
    columns: Vec<[u16; FEATURES]>,
    scores: Vec<f32>,
}

impl Training {
    /// Takes positions with their scores, or estimates of them, in stones.
    pub fn new(samples: impl IntoIterator<Item = (Board, f32)>) -> Training {
        let (columns, scores) =
            samples.into_iter().map(|(board, score)| (columns(PackedBoard::new(&board)), score)).unzip();
        Training { columns, scores }
    }

    /// The number of samples that a fit needs at least.
    pub const SAMPLES_MIN: usize = BATCH;

    /// Fits an evaluation: `rounds` times over all samples, on `threads` threads. `progress` receives the
    /// finished batches of all, and says whether to continue; the result is `None` if not.
    ///
    /// # Panics
    /// With fewer than 1,024 samples.
    pub fn fit(&self, rounds: u32, threads: usize, mut progress: impl FnMut(u64, u64) -> bool) -> Option<Evaluation> {
        let batches = self.scores.len() / BATCH;
        assert!(batches > 0, "{} samples are fewer than a batch of {BATCH}", self.scores.len());
        let mut random = SplitMix::new(0, 0);
        let mut weights = Weights::random(&mut random);
        let mut order: Vec<u32> = (0..self.scores.len() as u32).collect();
        let steps = u64::from(rounds) * batches as u64;
        for step in 0..steps {
            let batch = step as usize % batches;
            if batch == 0 {
                for at in (1..order.len()).rev() {
                    order.swap(at, random.below(at as u64 + 1) as usize);
                }
            }
            let gradient = self.gradient(&weights.values, &order[batch * BATCH..][..BATCH], threads);
            weights.step(&gradient, RATE * (1.0 - step as f32 / steps as f32));
            if !progress(step + 1, steps) {
                return None;
            }
        }
        Some(weights.evaluation())
    }

    /// Returns the gradient of the loss of a batch.
    fn gradient(&self, weights: &[f32], batch: &[u32], threads: usize) -> Vec<f32> {
        let parts: Vec<&[u32]> = batch.chunks(BATCH / PARTS).collect();
        let of_part = |part: &&[u32]| self.gradient_of_part(weights, part);
        let share = PARTS.div_ceil(threads.clamp(1, PARTS));
        let gradients: Vec<Vec<f32>> = match share {
            PARTS => parts.iter().map(of_part).collect(),
            _ => thread::scope(|scope| {
                let work = |parts| scope.spawn(move || Vec::from_iter(<[&[u32]]>::iter(parts).map(of_part)));
                let running: Vec<_> = parts.chunks(share).map(work).collect();
                running.into_iter().flat_map(|handle| handle.join().expect("the gradient does not panic")).collect()
            }),
        };
        gradients
            .into_iter()
            .reduce(|mut sum, part| {
                sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
                sum
            })
            .expect("a batch has parts")
    }

    fn gradient_of_part(&self, weights: &[f32], part: &[u32]) -> Vec<f32> {
        let mut gradient = vec![0.0; WEIGHTS];
        let mut layers = Layers::default();
        for &sample in part {
            let columns = &self.columns[sample as usize];
            let error = layers.forward(weights, columns) - self.scores[sample as usize];
            layers.backward(weights, columns, error.clamp(-1.0, 1.0) / BATCH as f32, &mut gradient);
        }
        gradient
    }
}

/// The values between the layers for a position.
struct Layers {
    first: [f32; WIDE],
    clipped: [f32; WIDE],
    second: [f32; NARROW],
}

impl Default for Layers {
    fn default() -> Layers {
        Layers { first: [0.0; WIDE], clipped: [0.0; WIDE], second: [0.0; NARROW] }
    }
}

impl Layers {
    /// Returns the estimate in stones.
    fn forward(&mut self, weights: &[f32], columns: &[u16; FEATURES]) -> f32 {
        self.first.copy_from_slice(&weights[FIRST_BIAS..][..WIDE]);
        let mut estimate = weights[LAST_BIAS];
        for &column in columns {
            let column = usize::from(column);
            let row = &weights[ROWS + column * WIDE..][..WIDE];
            self.first.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
            estimate += weights[DIRECT + column];
        }
        for (clipped, first) in self.clipped.iter_mut().zip(&self.first) {
            *clipped = first.clamp(0.0, 1.0);
        }
        self.second.copy_from_slice(&weights[SECOND_BIAS..][..NARROW]);
        // By column of the matrix, so that sums of neighbours are independent.
        for (at, clipped) in self.clipped.iter().enumerate() {
            let row = &weights[SECOND + at * NARROW..][..NARROW];
            self.second.iter_mut().zip(row).for_each(|(sum, weight)| *sum += clipped * weight);
        }
        for (second, weight) in self.second.iter().zip(&weights[LAST..][..NARROW]) {
            estimate += second.max(0.0) * weight;
        }
        estimate
    }

    /// Adds the gradient of the position of the last [`forward`](Self::forward), times `scale`.
    fn backward(&self, weights: &[f32], columns: &[u16; FEATURES], scale: f32, gradient: &mut [f32]) {
        gradient[LAST_BIAS] += scale;
        let mut of_second = [0.0; NARROW];
        for at in 0..NARROW {
            gradient[LAST + at] += scale * self.second[at].max(0.0);
            of_second[at] = if self.second[at] > 0.0 { scale * weights[LAST + at] } else { 0.0 };
            gradient[SECOND_BIAS + at] += of_second[at];
        }
        let mut of_first = [0.0; WIDE];
        for (at, of_first) in of_first.iter_mut().enumerate() {
            let row = &weights[SECOND + at * NARROW..][..NARROW];
            let of_row = &mut gradient[SECOND + at * NARROW..][..NARROW];
            let clipped = self.clipped[at];
            of_row.iter_mut().zip(&of_second).for_each(|(sum, of_second)| *sum += clipped * of_second);
            if self.first[at] > 0.0 && self.first[at] < 1.0 {
                *of_first = row.iter().zip(&of_second).map(|(weight, of_second)| weight * of_second).sum();
            }
        }
        let bias = &mut gradient[FIRST_BIAS..][..WIDE];
        bias.iter_mut().zip(&of_first).for_each(|(sum, of_first)| *sum += of_first);
        for &column in columns {
            let column = usize::from(column);
            let row = &mut gradient[ROWS + column * WIDE..][..WIDE];
            row.iter_mut().zip(&of_first).for_each(|(sum, of_first)| *sum += of_first);
            gradient[DIRECT + column] += scale;
        }
    }
}

/// The weights, with the averages of Adam.
struct Weights {
    values: Vec<f32>,
    means: Vec<f32>,
    squares: Vec<f32>,
    /// The shares of the averages that are left of their initial zeros.
    initial: [f32; 2],
}

impl Weights {
    fn random(random: &mut SplitMix) -> Weights {
        let mut symmetric = |bound: f64| ((2.0 * random.unit() - 1.0) * bound) as f32;
        let mut values = vec![0.0; WEIGHTS];
        values[ROWS..FIRST_BIAS].fill_with(|| symmetric(0.2));
        values[FIRST_BIAS..DIRECT].fill(0.25);
        values[SECOND..SECOND_BIAS].fill_with(|| symmetric((2.0 / WIDE as f64).sqrt()));
        values[SECOND_BIAS..LAST].fill(0.1);
        values[LAST..LAST_BIAS].fill_with(|| symmetric((2.0 / NARROW as f64).sqrt()));
        Weights { values, means: vec![0.0; WEIGHTS], squares: vec![0.0; WEIGHTS], initial: [1.0; 2] }
    }

    /// Follows a gradient.
    fn step(&mut self, gradient: &[f32], rate: f32) {
        self.initial[0] *= KEPT_MEAN;
        self.initial[1] *= KEPT_SQUARE;
        let [mean_share, square_share] = self.initial.map(|initial| 1.0 - initial);
        let averages = self.means.iter_mut().zip(&mut self.squares);
        for ((value, (mean, square)), gradient) in self.values.iter_mut().zip(averages).zip(gradient) {
            *mean = KEPT_MEAN * *mean + (1.0 - KEPT_MEAN) * gradient;
            *square = KEPT_SQUARE * *square + (1.0 - KEPT_SQUARE) * gradient * gradient;
            *value -= rate * (*mean / mean_share) / ((*square / square_share).sqrt() + 1e-8);
        }
        for weight in &mut self.values[ROWS..DIRECT] {
            *weight = weight.clamp(-ROW_WEIGHT_MAX, ROW_WEIGHT_MAX);
        }
    }

    /// Rounds the weights to integers.
    fn evaluation(&self) -> Evaluation {
        let word = |value: f32, unit: i32| (value * unit as f32).round().clamp(-32_767.0, 32_767.0) as i16;
        let long = |value: f32| (value * (ONE * ONE) as f32).round().clamp(-(2f32.powi(28)), 2f32.powi(28)) as i32;
        let row = |from: usize| Row(std::array::from_fn(|at| word(self.values[from + at], ONE)));
        Evaluation::new(EvaluationNetwork {
            rows: (0..COLUMNS).map(|column| row(ROWS + column * WIDE)).collect(),
            first_bias: row(FIRST_BIAS),
            direct: self.values[DIRECT..SECOND].iter().map(|&value| word(value, DIRECT_STONE)).collect(),
            second: std::array::from_fn(|to| {
                Row(std::array::from_fn(|from| word(self.values[SECOND + from * NARROW + to], ONE)))
            }),
            second_bias: std::array::from_fn(|at| long(self.values[SECOND_BIAS + at])),
            last: std::array::from_fn(|at| word(self.values[LAST + at], ONE)),
            last_bias: long(self.values[LAST_BIAS]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::Score;
    use game::reference;

    /// The mean error in stones.
    fn error(evaluation: &Evaluation, samples: &[(Board, Score)]) -> f64 {
        let errors =
            samples.iter().map(|(board, score)| (evaluation.hundredths(board) - 100 * i32::from(*score)).abs());
        f64::from(errors.sum::<i32>()) / 100.0 / samples.len() as f64
    }

    #[test]
    fn a_fit_is_better_than_material_and_independent_of_threads() {
        let solved = reference::solve_up_to(4);
        let mut samples: Vec<(Board, Score)> = solved
            .iter()
            .skip(3)
            .flat_map(|scores| scores.iter().map(|(pits, score)| (Board(*pits), *score)))
            .collect();
        samples.sort_unstable_by_key(|(board, _)| board.0);
        let training = Training::new(samples.iter().map(|(board, score)| (*board, f32::from(*score))));
        let fitted = training.fit(200, 2, |_, _| true).unwrap();
        let (material, network) = (error(&Evaluation::MATERIAL, &samples), error(&fitted, &samples));
        assert!(network < material / 2.0, "{network} {material}");
        assert!(Evaluation::from_bytes(&fitted.to_bytes()).unwrap() == fitted);
        assert!(training.fit(10, 1, |_, _| true) == training.fit(10, 3, |_, _| true));
        assert!(training.fit(8, 1, |done, _| done < 3).is_none());
    }

    /// The gradient is that of finite differences.
    #[test]
    fn the_gradient_is_that_of_differences() {
        let weights = Weights::random(&mut SplitMix::new(7, 0)).values;
        let columns = columns(PackedBoard::new(&Board([4, 0, 1, 2, 9, 4, 1, 2, 5, 0, 3, 1])));
        let mut layers = Layers::default();
        layers.forward(&weights, &columns);
        let mut gradient = vec![0.0; WEIGHTS];
        layers.backward(&weights, &columns, 1.0, &mut gradient);
        for at in (0..WEIGHTS).step_by(7).chain(FIRST_BIAS..WEIGHTS) {
            let moved = |by: f32| {
                let mut moved = weights.clone();
                moved[at] += by;
                Layers::default().forward(&moved, &columns)
            };
            let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            assert!((slope - gradient[at]).abs() < 2e-2 * (1.0 + slope.abs()), "{at}: {slope} {}", gradient[at]);
        }
    }
}
