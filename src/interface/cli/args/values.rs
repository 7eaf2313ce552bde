//! Parsers of argument values.

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use disk::Io;
use game::Rules;
use oracle::Level;
use pipeline::Budget;
use planner::Method;
use solvers::Kernel;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;
use store::Codec;

pub(super) fn methods() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::word)).try_map(|word| word.parse::<Method>())
}

pub(super) fn levels() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(Level::ALL.map(|level| PossibleValue::new(level.word()).aliases(level.former_word())))
        .try_map(|word| word.parse::<Level>())
}

pub(super) fn rules() -> impl TypedValueParser<Value = Rules> {
    PossibleValuesParser::new(Rules::KNOWN.map(|rules| rules.name))
        .try_map(|name| Rules::by_name(&name).ok_or_else(|| InvalidValue(format!("there are no rules {name}"))))
}

pub(super) fn codecs() -> impl TypedValueParser<Value = Codec> {
    PossibleValuesParser::new(Codec::ALL.map(Codec::name)).try_map(|word| word.parse::<Codec>())
}

pub(super) fn io() -> impl TypedValueParser<Value = Io> {
    PossibleValuesParser::new(["auto", "uring", "plain"]).try_map(|word| word.parse::<Io>())
}

pub(super) fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::available().find(|kernel| kernel.to_string() == text).ok_or_else(|| {
        let names: Vec<_> = Kernel::available().map(|kernel| kernel.to_string()).collect();
        format!("this processor has {}", names.join(", "))
    })
}

/// Parses a whole number within a range.
pub(super) fn number<T: TryFrom<u64> + Clone + Send + Sync + 'static>(
    range: RangeInclusive<u64>,
) -> impl TypedValueParser<Value = T> {
    let parse = move |text: &str| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match (*range.start(), *range.end()) {
            (first, u64::MAX) => format!("expected a whole number, {first} or more"),
            (first, last) => format!("expected a whole number within {first}..{last}"),
        })
    };
    StringValueParser::new().try_map(move |text| parse(&text).map_err(InvalidValue))
}

/// The least size of a table of searched positions, in mebibytes.
pub(crate) const TABLE_MIB_MIN: u64 = 4;

/// Parses the size of a table of searched positions.
pub(super) fn table_size() -> impl TypedValueParser<Value = Budget> {
    let parse = |text: &str| {
        let size = text.parse::<Budget>().map_err(|error| error.to_string())?;
        let least = Budget::new(TABLE_MIB_MIN << 20);
        if size < least { Err(format!("expected at least {least}")) } else { Ok(size) }
    };
    StringValueParser::new().try_map(move |text| parse(&text).map_err(InvalidValue))
}

/// The description of an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidValue(String);

pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    // Keys contain no `=`: only ranges are quoted.
    match text.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
        None => Err("expected KEY=VALUE, such as build.threads=2".to_owned()),
    }
}

/// Parses a number of plies a stone, with up to two decimals, into hundredths.
pub(super) fn omega(text: &str) -> Result<u64, String> {
    let found = book::DropOut::read_omega(text);
    found.ok_or_else(|| "expected a number of plies a stone, 0 to 1000000, with up to two decimals".to_owned())
}

/// Parses the name of a book.
pub(super) fn book_name(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_name = (1..=40).contains(&text.len()) && text.bytes().all(is_part);
    is_name.then(|| text.to_owned()).ok_or_else(|| "expected up to 40 letters, digits and hyphens".to_owned())
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    /// The port; 0 is any free one.
    pub(crate) port: u16,
}

impl Listen {
    /// The loopback address: only this machine can connect.
    const HOST: &str = "127.0.0.1";
    const PORT: u16 = 8080;
}

impl Default for Listen {
    fn default() -> Listen {
        Listen { host: Listen::HOST.to_owned(), port: Listen::PORT }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Listen { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let text = if is_digits(text) { format!(":{text}") } else { text.to_owned() };
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) if host.parse::<Ipv6Addr>().is_ok() => (host, port),
            _ if text.parse::<Ipv6Addr>().is_ok() => (&text[..], ""),
            _ => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let is_host = |text: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            text.bytes().all(is_part) && !is_digits(text) || text.parse::<Ipv6Addr>().is_ok()
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|_| is_digits(digits)),
            None => Some(Listen::PORT).filter(|_| port.is_empty() && !host.is_empty()),
        };
        match port {
            Some(port) if host.is_empty() => Ok(Listen { port, ..Listen::default() }),
            Some(port) if is_host(host) => Ok(Listen { host: host.to_owned(), port }),
            _ => Err("expected HOST:PORT, HOST or :PORT, such as localhost:8080 or [::1]:8080".to_owned()),
        }
    }
}

/// Parses a time limit of at least 20 minutes: the job receives the signal to stop ten minutes before the limit.
pub(super) fn time_limit(text: &str) -> Result<String, String> {
    const SECONDS_MIN: u64 = 20 * 60;
    match limit_seconds(text) {
        None => Err("expected minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S, such as 24:00:00".to_owned()),
        Some(seconds) if seconds < SECONDS_MIN => {
            Err("the job stops ten minutes before its time limit; give it 20 minutes or more".to_owned())
        }
        Some(_) => Ok(text.to_owned()),
    }
}

/// Parses a name that `srun --mpi` takes.
pub(super) fn mpi_type(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/.-".contains(&byte));
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("expected a name that `srun --mpi=list` shows, such as pmix".to_owned())
    }
}

/// Parses a time of Slurm (sbatch(1), `--time`), in seconds.
fn limit_seconds(text: &str) -> Option<u64> {
    let number = |text: &str| {
        let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    let (days, time) = match text.split_once('-') {
        Some((days, time)) => (Some(number(days)?), time),
        None => (None, text),
    };
    let parts: Vec<u64> = time.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days, &parts[..]) {
        (None, [minutes]) => (0, *minutes, 0),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return None,
    };
    Some(((days.unwrap_or(0) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

/// Parses a time such as `500ms`, `1.5`, `10s` or `2min`; without a unit it is in seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("h", 3600.0), ("", 1.0)];
    const SECONDS_MAX: f64 = 1e9;
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, seconds)| seconds);
    let seconds = number.parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit);
    let seconds = seconds.filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected a time such as 500ms, 10s or 2min".to_owned())
}

/// Parses a time such as `500ms` or `2s`. Without a unit it is refused where a reader may take it for milliseconds, as in the
/// protocol of engines.
pub(super) fn duration_with_unit(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(_) if text.trim().parse::<f64>().is_ok() => {
            Err(format!("the unit is missing; did you mean {0}ms or {0}s?", text.trim()))
        }
        parsed => parsed,
    }
}

/// A clock for a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockControl {
    /// The time of each side for the game.
    pub(crate) base: Duration,
    /// The time that is added after each move.
    pub(crate) increment: Duration,
}

/// A sequential test of two hypotheses about the difference in Elo of the first engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sprt {
    pub(crate) elo0: f64,
    pub(crate) elo1: f64,
}

/// Parses a clock, `10+0.1`: seconds for the game, and seconds added after each move.
pub(super) fn clock(text: &str) -> Result<ClockControl, String> {
    let (base, increment) = text.split_once('+').unwrap_or((text, "0"));
    let control = duration(base).and_then(|base| Ok(ClockControl { base, increment: duration(increment)? }));
    let control = control.ok().filter(|control| !control.base.is_zero());
    control.ok_or_else(|| "expected seconds and an increment, such as 10+0.1".to_owned())
}

/// Parses two differences in Elo, `0,10`.
pub(super) fn sprt(text: &str) -> Result<Sprt, String> {
    const ELO_MAX: f64 = 1000.0;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|elo| elo.abs() <= ELO_MAX);
    let both = text.split_once(',').and_then(|(elo0, elo1)| Some(Sprt { elo0: number(elo0)?, elo1: number(elo1)? }));
    let ordered = both.filter(|sprt| sprt.elo0 < sprt.elo1);
    ordered.ok_or_else(|| "expected two differences in Elo, the smaller first, such as 0,10".to_owned())
}

pub(super) fn stones(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| {
        let stones: Option<u32> = text.trim().parse().ok();
        stones.filter(|stones| *stones <= game::STONES_MAX)
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (Some(first), Some(last)) => Err(format!("the range is empty; did you mean {last}..{first}?")),
        _ => Err(format!("expected A..B, both ends included, or one number, within 0..{}", game::STONES_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(stones("3..5"), Ok(3..=5));
        assert_eq!(stones("7"), Ok(7..=7));
        assert_eq!(stones("5..3").unwrap_err(), "the range is empty; did you mean 3..5?");
        for bad in ["", "..", "1..", "..1", "-1", "0..49", "a"] {
            assert!(stones(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        let times = [("500ms", 500), ("1.5", 1500), ("10s", 10_000), ("10 s", 10_000), ("2min", 120_000), ("0", 0)];
        for (text, milliseconds) in times {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in ["", "s", "-1", "1e9", "1d", "nan", "1.2.3", "99999999999", "1 2"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_with_units() {
        for (text, milliseconds) in [("500ms", 500), ("1.5 s", 1500), ("2min", 120_000)] {
            assert_eq!(duration_with_unit(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(duration_with_unit(" 20").unwrap_err(), "the unit is missing; did you mean 20ms or 20s?");
        for bad in ["0", "1.5", "-1", "x", "1d"] {
            assert!(duration_with_unit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn clocks_and_tests() {
        let expected = ClockControl { base: Duration::from_secs(10), increment: Duration::from_millis(100) };
        assert_eq!(clock("10+0.1"), Ok(expected));
        assert_eq!(clock("10s+100ms"), Ok(expected));
        assert_eq!(clock("60").map(|control| control.increment), Ok(Duration::ZERO));
        for bad in ["", "+", "0", "10+", "-1+0", "10+x"] {
            assert!(clock(bad).is_err(), "{bad}");
        }
        assert_eq!(sprt("0,10"), Ok(Sprt { elo0: 0.0, elo1: 10.0 }));
        assert_eq!(sprt("-5, 0"), Ok(Sprt { elo0: -5.0, elo1: 0.0 }));
        for bad in ["", "0", "10,0", "0,0", "nan,1", "0,inf", "0,1,2", "0,1e9"] {
            assert!(sprt(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn listen_addresses() {
        for (text, expect) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("localhost:80", "localhost:80"),
            ("my-host.example", "my-host.example:8080"),
            (":9090", "127.0.0.1:9090"),
            ("9090", "127.0.0.1:9090"),
            ("0", "127.0.0.1:0"),
            ("[::1]:0", "[::1]:0"),
            ("[::1]", "[::1]:8080"),
            ("::1", "[::1]:8080"),
            ("0.0.0.0", "0.0.0.0:8080"),
        ] {
            assert_eq!(text.parse::<Listen>().map(|listen| listen.to_string()), Ok(expect.to_owned()), "{text}");
        }
        for bad in [
            "",
            ":",
            "localhost:",
            "localhost:x",
            ":65536",
            "a:b:1",
            "http://localhost:80/",
            "[::1]x",
            "[::1]80",
            "[x]:1",
            ":+1",
        ] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
    }

    #[test]
    fn mpi_types() {
        for text in ["pmi2", "pmix_v4", "cray_shasta"] {
            assert_eq!(mpi_type(text), Ok(text.to_owned()));
        }
        for bad in ["", "a b", "pmi2\n", "$(x)"] {
            assert!(mpi_type(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn time_limits() {
        let times = [("90", 5400), ("90:30", 5430), ("2:00:01", 7201), ("1-2", 93_600), ("1-0:30", 88_200)];
        for (text, seconds) in times.into_iter().chain([("2-01:00:00", 176_400)]) {
            assert_eq!(limit_seconds(text), Some(seconds), "{text}");
            assert_eq!(time_limit(text), Ok(text.to_owned()));
        }
        for bad in ["", "1h", "1:2:3:4", "1-", "-1", "1-2-3", "+5", "99\n#SBATCH", "9999999999", "19", "0-0"] {
            assert!(time_limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(setting("build.threads=2"), pair("build.threads", "2"));
        assert_eq!(setting("run.dir=a=b"), pair("run.dir", "a=b"));
        assert!(setting("build.threads").is_err());
    }
}
