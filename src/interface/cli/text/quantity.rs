//! Numbers, formatted for people.

pub(crate) use game::quantity::{grouped, plural};

/// Formats a time: `3.4 ms`, `0.30 s`, `12.3 s`, `5 min 20 s`, `3 h 07 min`, `4 d 03 h`.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match seconds {
        s if s <= 0.0 => "0 s".to_owned(),
        s if s < 0.00005 => "<0.1 ms".to_owned(),
        s if s < 0.00995 => format!("{:.1} ms", s * 1e3),
        s if s < 0.0995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.2} s"),
        s if s < 59.95 => format!("{s:.1} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ if whole < 86_400 => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {:02} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// Formats a predicted time, in whole seconds at best: `1 s`, `5 min 20 s`.
pub(crate) fn about(seconds: f64) -> String {
    if seconds < 59.5 { format!("{:.0} s", seconds.max(0.0).ceil()) } else { time(seconds) }
}

/// Formats an amount of memory in whole mebibytes: `143 MiB`.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", grouped(bytes.div_ceil(1 << 20)))
}

/// Formats positions per second: `24.1 M/s`.
pub(crate) fn rate(positions_a_second: f64) -> String {
    match positions_a_second {
        r if r >= 1e9 => format!("{:.2} G/s", r / 1e9),
        r if r >= 99.95e6 => format!("{:.0} M/s", r / 1e6),
        r if r >= 1e6 => format!("{:.1} M/s", r / 1e6),
        r if r >= 1e3 => format!("{:.0} k/s", r / 1e3),
        r => format!("{r:.0} /s"),
    }
}

/// The shortest time for which a rate is computed.
const RATE_SECONDS_MIN: f64 = 0.1;

/// Computes positions per second. Returns `None` without positions, or if the time was too short.
pub(crate) fn rate_over(positions: u64, seconds: f64) -> Option<String> {
    (positions > 0 && seconds >= RATE_SECONDS_MIN).then(|| rate(positions as f64 / seconds))
}

/// The least positions for a rate: the cost of a smaller database does not depend on its positions.
pub(crate) const POSITIONS_MIN: u64 = 100_000;

/// Formats the databases that fit a machine: `5 fits`, `5..7 fit`.
pub(crate) fn fitting(first: u32, last: u32) -> String {
    if first == last { format!("{first} fits") } else { format!("{first}..{last} fit") }
}

/// Formats numbers as ranges: `1, 3..5, 9`.
pub(crate) fn ranges<T: Copy + PartialEq + std::fmt::Display>(numbers: &[T], next: impl Fn(T) -> T) -> String {
    let mut parts: Vec<(T, T)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if next(*last) == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let shown: Vec<String> = parts
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}..{last}") })
        .collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory() {
        assert_eq!(mebibytes(0), "0 MiB");
        assert_eq!(mebibytes((143 << 20) - 5), "143 MiB");
        assert_eq!(mebibytes(2000 << 30), "2,048,000 MiB");
    }

    #[test]
    fn times() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.00003, "<0.1 ms"),
            (0.00034, "0.3 ms"),
            (0.034, "34 ms"),
            (0.34, "0.34 s"),
            (12.34, "12.3 s"),
            (100.0, "1 min 40 s"),
            (3599.4, "59 min 59 s"),
            (3600.0, "1 h 00 min"),
            (86_400.0 * 4.0 + 3600.0 * 3.0, "4 d 03 h"),
            (-1.0, "0 s"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn forecasts() {
        for (seconds, text) in [(-1.0, "0 s"), (0.1, "1 s"), (11.2, "12 s"), (320.0, "5 min 20 s")] {
            assert_eq!(about(seconds), text);
        }
    }

    #[test]
    fn rates() {
        for (rate_now, text) in
            [(0.0, "0 /s"), (12_345.0, "12 k/s"), (24.13e6, "24.1 M/s"), (241.3e6, "241 M/s"), (2.5e9, "2.50 G/s")]
        {
            assert_eq!(rate(rate_now), text);
        }
    }

    #[test]
    fn rates_need_positions_and_time() {
        assert_eq!(rate_over(10_000_000, 0.0005), None);
        assert_eq!(rate_over(0, 5.0), None);
        assert_eq!(rate_over(10_000_000, 0.5).unwrap(), "20.0 M/s");
    }

    #[test]
    fn one_database_fits() {
        assert_eq!(fitting(5, 5), "5 fits");
        assert_eq!(fitting(0, 5), "0..5 fit");
    }

    #[test]
    fn ranges_join_neighbours() {
        assert_eq!(ranges(&[1, 3, 4, 5, 9], |n| n + 1), "1, 3..5, 9");
        assert_eq!(ranges::<u32>(&[], |n| n + 1), "");
    }
}
