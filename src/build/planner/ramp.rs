//! Quantities that grow with the number of stones.

/// A quantity that is constant up to some number of stones and grows linearly from there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ramp {
    /// Value of the constant part.
    pub level: f64,
    /// Stones at which it begins to grow: the working set outgrows a cache, or the number of passes rises.
    pub from: u32,
    /// Growth with each stone.
    pub a_stone: f64,
}

impl Ramp {
    /// Returns a constant.
    pub const fn constant(level: f64) -> Ramp {
        Ramp { level, from: 0, a_stone: 0.0 }
    }

    /// Returns a ramp that begins to grow at `from` stones.
    pub const fn growing(level: f64, from: u32, a_stone: f64) -> Ramp {
        Ramp { level, from, a_stone }
    }

    /// Returns the value for a number of stones, never below zero.
    pub fn at(self, stones: u32) -> f64 {
        (self.level + self.a_stone * f64::from(stones.saturating_sub(self.from))).max(0.0)
    }
}

/// Work of a stage for each position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Nanoseconds of one core, including waits for memory.
    pub cpu: Ramp,
    /// Bytes read, except files of known length.
    pub read: Ramp,
    /// Bytes written, except files of known length.
    pub written: Ramp,
}

/// A quantity that approaches a limit as the number of stones grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saturation {
    /// Value up to this number of stones.
    level: f64,
    from: u32,
    /// Limit for many stones.
    limit: f64,
    /// Stones in which the distance to the limit falls by a factor of e.
    scale: f64,
}

impl Saturation {
    pub(crate) const fn new(level: f64, from: u32, limit: f64, scale: f64) -> Saturation {
        Saturation { level, from, limit, scale }
    }

    /// Returns the value for a number of stones.
    pub(crate) fn at(self, stones: u32) -> f64 {
        let Saturation { level, from, limit, scale } = self;
        limit - (limit - level) * (-f64::from(stones.saturating_sub(from)) / scale).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturations_approach_their_limit() {
        let saturation = Saturation::new(3.0, 10, 5.0, 4.0);
        assert_eq!([0, 10].map(|stones| saturation.at(stones)), [3.0, 3.0]);
        assert!((saturation.at(14) - (5.0 - 2.0 / 1f64.exp())).abs() < 1e-12);
        assert!(saturation.at(48) < 5.0 && saturation.at(48) > 4.99);
        let falling = Saturation::new(0.7, 23, 0.5, 6.0);
        assert!(falling.at(24) < 0.7 && falling.at(48) > 0.5 && falling.at(48) < 0.51);
    }

    #[test]
    fn ramps_bend_and_stay_above_zero() {
        let ramp = Ramp::growing(2.0, 10, 0.5);
        assert_eq!([0, 10, 11, 14].map(|stones| ramp.at(stones)), [2.0, 2.0, 2.5, 4.0]);
        assert_eq!(Ramp::growing(2.0, 10, -0.5).at(20), 0.0);
    }
}
