//! Typed values of manifest keys.

use crate::budget::{Budget, BudgetError};
use crate::manifest::diagnostic::DIAGNOSTICS_MAX;
use crate::suggest::nearest;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// The type of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Any text.
    String,
    /// One of these words.
    OneOf(Vec<String>),
    /// A whole number between these, both included.
    Integer(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// A number of bytes: `"512 MiB"`.
    Size,
    /// A time: `"10 min"`.
    Duration,
    /// Ascending whole numbers `"A..B, C"`: ranges, both ends included, or single numbers, all between these.
    Ranges(u32, u32),
    /// A table that gives each range of numbers, between these, one of these words.
    ByRange(u32, u32, Vec<String>),
}

impl ValueType {
    /// One of these words.
    pub fn one_of(words: &[&str]) -> Self {
        ValueType::OneOf(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// A table that gives ranges of the numbers `first..=last` one of these words each.
    pub fn by_range(first: u32, last: u32, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        ValueType::ByRange(first, last, words)
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of [`ValueType::String`] and [`ValueType::OneOf`].
    String(String),
    /// Of [`ValueType::Integer`].
    Integer(i64),
    /// Of [`ValueType::Boolean`].
    Boolean(bool),
    /// Of [`ValueType::Size`].
    Size(Budget),
    /// Of [`ValueType::Duration`].
    Duration(Duration),
    /// Of [`ValueType::Ranges`]: ascending, apart from each other.
    Ranges(Vec<RangeInclusive<u32>>),
    /// Of [`ValueType::ByRange`].
    ByRange(ByRange),
}

/// Words by range of numbers; the ranges do not overlap and ascend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByRange(Vec<(RangeInclusive<u32>, String)>);

impl ByRange {
    /// Returns the word of a number, if it has one.
    pub fn get(&self, number: u32) -> Option<&str> {
        let entry = self.0.iter().find(|(range, _)| range.contains(&number));
        entry.map(|(_, word)| word.as_str())
    }

    /// Returns ranges and words, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&RangeInclusive<u32>, &str)> {
        self.0.iter().map(|(range, word)| (range, word.as_str()))
    }

    /// Sets the word of a range, replacing earlier words of its numbers.
    pub(crate) fn set(&mut self, range: RangeInclusive<u32>, word: String) {
        let mut entries = Vec::with_capacity(self.0.len() + 2);
        for (old, other) in self.0.drain(..) {
            // The remainder below and above the new range.
            if *old.start() < *range.start() {
                let end = (*old.end()).min(*range.start() - 1);
                entries.push((*old.start()..=end, other.clone()));
            }
            if *old.end() > *range.end() {
                let start = (*old.start()).max(*range.end() + 1);
                entries.push((start..=*old.end(), other));
            }
        }
        entries.push((range, word));
        entries.sort_by_key(|(range, _)| *range.start());
        self.0 = entries;
    }

    fn overlap(&self, range: &RangeInclusive<u32>) -> Option<&RangeInclusive<u32>> {
        let meets = |r: &RangeInclusive<u32>| r.start() <= range.end() && range.start() <= r.end();
        self.0.iter().map(|(range, _)| range).find(|range| meets(range))
    }
}

/// A mistake in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueMistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Value {
    /// Reads a value of a manifest; returns all mistakes at once. Messages follow the name of the key.
    pub(crate) fn of_toml(r#type: &ValueType, value: &Spanned<DeValue<'_>>) -> Result<Self, Vec<ValueMistake>> {
        if let (ValueType::ByRange(first, last, words), DeValue::Table(table)) = (r#type, value.get_ref()) {
            let mut by_range = ByRange::default();
            let mut mistakes = Vec::new();
            for (key, value) in table {
                match entry(*first..=*last, words, key, value) {
                    Ok((range, word)) => match by_range.overlap(&range) {
                        None => by_range.set(range, word),
                        Some(other) => mistakes.push(ValueMistake {
                            span: key.span(),
                            message: format!("has overlapping ranges {} and {key}", show(other), key = show(&range)),
                            help: Some("give each number a single value".to_owned()),
                        }),
                    },
                    Err(found) => mistakes.extend(found),
                }
                if mistakes.len() >= DIAGNOSTICS_MAX {
                    break;
                }
            }
            return if mistakes.is_empty() { Ok(Value::ByRange(by_range)) } else { Err(mistakes) };
        }
        scalar(r#type, value.get_ref())
            .map_err(|(message, help)| vec![ValueMistake { span: value.span(), message, help }])
    }

    /// Reads a value of an argument: TOML, or else a plain string. Spans are positions in the argument.
    pub(crate) fn of_argument(r#type: &ValueType, text: &str) -> Result<Self, Vec<ValueMistake>> {
        let plain = || {
            let value = DeValue::String(text.into());
            Value::of_toml(r#type, &Spanned::new(0..text.len(), value))
        };
        match DeValue::parse(text) {
            // `--set run.dir=2024` means the string.
            Ok(value) => Value::of_toml(r#type, &value).or_else(|found| match value.get_ref() {
                DeValue::Table(_) | DeValue::String(_) => Err(found),
                _ => plain().map_err(|_| found),
            }),
            Err(_) => plain(),
        }
    }

    /// Reads one entry of a [`ValueType::ByRange`] from its key and an argument, which begins at `start` of the text
    /// that spans refer to.
    pub(crate) fn of_entry_argument(
        r#type: &ValueType,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        text: &str,
        start: usize,
    ) -> Result<(RangeInclusive<u32>, String), Vec<ValueMistake>> {
        let ValueType::ByRange(first, last, words) = r#type else {
            return Err(vec![ValueMistake { span: key.span(), message: "is not a table".to_owned(), help: None }]);
        };
        let plain = Spanned::new(0..text.len(), DeValue::String(text.into()));
        let value = DeValue::parse(text).unwrap_or(plain);
        let span = start + value.span().start..start + value.span().end;
        entry(*first..=*last, words, key, &Spanned::new(span, value.into_inner()))
    }

    /// Returns the value as TOML.
    pub(crate) fn to_toml(&self) -> String {
        match self {
            Value::String(text) => quote(text),
            Value::Integer(value) => value.to_string(),
            Value::Boolean(value) => value.to_string(),
            Value::Size(value) => quote(&value.to_string()),
            Value::Duration(value) => quote(&show_duration(*value)),
            Value::Ranges(ranges) => quote(&ranges.iter().map(show).collect::<Vec<_>>().join(", ")),
            Value::ByRange(ByRange(entries)) => {
                let entries: Vec<String> =
                    entries.iter().map(|(range, word)| format!("{} = {}", quote(&show(range)), quote(word))).collect();
                match entries.len() {
                    0 => "{}".to_owned(),
                    _ => format!("{{ {} }}", entries.join(", ")),
                }
            }
        }
    }
}

fn entry(
    limits: RangeInclusive<u32>,
    words: &[String],
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(RangeInclusive<u32>, String), Vec<ValueMistake>> {
    let mut mistakes = Vec::new();
    let mut note = |span: Range<usize>, (message, help): Problem| {
        mistakes.push(ValueMistake { span, message, help });
    };
    let range = range(key.get_ref(), &limits).map_err(|problem| note(key.span(), problem));
    let word = match value.get_ref() {
        DeValue::String(text) => one_of(words, text),
        other => Err(wrong_type("a string", other)),
    };
    let word = word.map_err(|problem| note(value.span(), problem));
    match (range, word) {
        (Ok(range), Ok(word)) => Ok((range, word)),
        _ => Err(mistakes),
    }
}

/// Message and help.
type Problem = (String, Option<String>);

fn wrong_type(expected: &str, found: &DeValue<'_>) -> Problem {
    let found = match found {
        DeValue::String(text) => format!("the string {}", quote(&clip(text))),
        DeValue::Integer(number) => format!("the integer {}", clip(&number.to_string())),
        DeValue::Float(number) => format!("the number {}", clip(&number.to_string())),
        DeValue::Boolean(value) => format!("the boolean {value}"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    (format!("must be {expected}, not {found}"), None)
}

fn scalar(r#type: &ValueType, value: &DeValue<'_>) -> Result<Value, Problem> {
    let integer = |value: &DeValue<'_>| match value {
        // The radix prefix is not part of `as_str`; TOML allows no sign after one.
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    match (r#type, value) {
        (ValueType::String, DeValue::String(text)) => Ok(Value::String(text.to_string())),
        (ValueType::String, other) => Err(wrong_type("a string", other)),
        (ValueType::OneOf(words), DeValue::String(text)) => one_of(words, text).map(Value::String),
        (ValueType::OneOf(words), other) => Err(wrong_type(&format!("one of {}", list(words)), other)),
        (ValueType::Integer(low, high), DeValue::Integer(number)) => match integer(value) {
            Some(value) if (*low..=*high).contains(&value) => Ok(Value::Integer(value)),
            _ => Err((format!("must be in {low}..{high}, not {}", clip(&number.to_string())), None)),
        },
        (ValueType::Integer(..), other) => Err(wrong_type("an integer", other)),
        (ValueType::Boolean, DeValue::Boolean(value)) => Ok(Value::Boolean(*value)),
        (ValueType::Boolean, other) => Err(wrong_type("true or false", other)),
        (ValueType::Size, DeValue::String(text)) => size(text),
        (ValueType::Size, DeValue::Integer(number)) => size(&number.to_string()),
        (ValueType::Size, other) => Err(wrong_type("a size such as \"512 MiB\"", other)),
        (ValueType::Duration, DeValue::String(text)) => duration(text).map(Value::Duration),
        (ValueType::Duration, other) => Err(wrong_type("a time such as \"10 min\"", other)),
        (ValueType::Ranges(first, last), DeValue::String(text)) => ranges(text, &(*first..=*last)).map(Value::Ranges),
        (ValueType::Ranges(first, last), DeValue::Integer(number)) => {
            ranges(&number.to_string(), &(*first..=*last)).map(Value::Ranges)
        }
        (ValueType::Ranges(..), other) => Err(wrong_type("a range such as \"0..12\"", other)),
        (ValueType::ByRange(..), other) => Err(wrong_type("a table by range", other)),
    }
}

fn one_of(words: &[String], text: &str) -> Result<String, Problem> {
    if words.iter().any(|word| word == text) {
        return Ok(text.to_owned());
    }
    let message = format!("must be one of {}, not {}", list(words), quote(&clip(text)));
    let help = nearest(text, words.iter().map(String::as_str));
    Err((message, help.map(|word| format!("did you mean \"{word}\"?"))))
}

fn size(text: &str) -> Result<Value, Problem> {
    let help = "write \"512 MiB\" or \"2 GiB\", for example";
    text.parse().map(Value::Size).map_err(|error| match error {
        BudgetError::Syntax(_) => {
            let message = format!("must be a size, not {}", quote(&clip(text)));
            (message, Some(help.to_owned()))
        }
        BudgetError::TooLarge(_) => {
            let message = format!("is larger than the memory of any machine: {}", quote(&clip(text)));
            (message, Some(help.to_owned()))
        }
    })
}

fn range(text: &str, limits: &RangeInclusive<u32>) -> Result<RangeInclusive<u32>, Problem> {
    let (low, high) = (limits.start(), limits.end());
    let number = |text: &str| {
        let text = text.trim();
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number with too many digits exceeds every limit.
        digits.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        let message = format!("must be a range, not {}", quote(&clip(text)));
        let help = format!("write \"A..B\", both ends included, or one number, within {low}..{high}");
        return Err((message, Some(help)));
    };
    if first > last {
        let message = format!("is an empty range: {first}..{last}");
        return Err((message, Some(format!("did you mean \"{last}..{first}\"?"))));
    }
    if first < *low || last > *high {
        let message = format!("must be within {low}..{high}, not {}", clip(text));
        return Err((message, None));
    }
    Ok(first..=last)
}

/// Reads ascending ranges; joins those that touch.
fn ranges(text: &str, limits: &RangeInclusive<u32>) -> Result<Vec<RangeInclusive<u32>>, Problem> {
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for part in text.split(',') {
        let next = range(part, limits)?;
        match ranges.last_mut() {
            Some(last) if next.start() <= last.end() => {
                let message = format!("has {} after {}", show(&next), show(last));
                return Err((message, Some("list ranges in ascending order, without overlap".to_owned())));
            }
            Some(last) if *next.start() == *last.end() + 1 => *last = *last.start()..=*next.end(),
            _ => ranges.push(next),
        }
    }
    Ok(ranges)
}

const TIMES: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3600), ("d", 86_400)];

fn duration(text: &str) -> Result<Duration, Problem> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = TIMES.iter().find(|(name, _)| *name == unit.trim_start());
    let seconds = match (number.parse::<u64>(), unit) {
        (Ok(number), Some((_, seconds))) => number.checked_mul(*seconds),
        _ => None,
    };
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let message = format!("must be a time, not {}", quote(&clip(text)));
        (message, Some("write \"30 s\", \"10 min\" or \"1 h\", for example".to_owned()))
    })
}

fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let whole = |(_, size): &&(&str, u64)| seconds > 0 && seconds.is_multiple_of(*size);
    let (unit, size) = TIMES.iter().rev().find(whole).unwrap_or(&TIMES[0]);
    format!("{} {unit}", seconds / size)
}

fn show(range: &RangeInclusive<u32>) -> String {
    if range.start() == range.end() { range.start().to_string() } else { format!("{}..{}", range.start(), range.end()) }
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    words.join(", ")
}

/// Quotes text as a TOML string.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn clip(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_words_win_within_their_range() {
        let mut by_range = ByRange::default();
        by_range.set(20..=24, "a".to_owned());
        by_range.set(22..=22, "b".to_owned());
        by_range.set(24..=30, "c".to_owned());
        by_range.set(0..=0, "d".to_owned());
        let shown: Vec<String> = by_range.iter().map(|(r, w)| format!("{}{w}", show(r))).collect();
        assert_eq!(shown, ["0d", "20..21a", "22b", "23a", "24..30c"]);
        assert_eq!(by_range.get(23), Some("a"));
        assert_eq!(by_range.get(1), None);
        by_range.set(0..=u32::MAX, "e".to_owned());
        assert_eq!(by_range.iter().count(), 1);
    }

    #[test]
    fn ranges_ascend() {
        let read = |text| ranges(text, &(0..=48)).map(|ranges| Value::Ranges(ranges).to_toml());
        let check = |text, expect: &str| assert_eq!(read(text).unwrap(), quote(expect), "{text}");
        check("12", "12");
        check("0..46, 48", "0..46, 48");
        check(" 0 .. 3,4,  6..6", "0..4, 6");
        let refuse = |text, message: &str| {
            let (found, help) = read(text).unwrap_err();
            assert!(found.contains(message) && help.is_some_and(|help| !help.is_empty()), "{text}: {found}");
        };
        refuse("4..6, 5", "has 5 after 4..6");
        refuse("9, 3..4", "has 3..4 after 9");
        refuse("0..3,", "must be a range, not \"\"");
        refuse("0..3, x", "must be a range, not \" x\"");
        refuse("0..3, 9..8", "is an empty range: 9..8");
        assert!(read("0..3, 49").is_err());
    }

    #[test]
    fn durations() {
        let check = |text: &str, seconds: u64, shown: &str| {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
            assert_eq!(show_duration(Duration::from_secs(seconds)), shown);
        };
        check("10 min", 600, "10 min");
        check("30s", 30, "30 s");
        check("1 h", 3600, "1 h");
        check("90 min", 5400, "90 min");
        check("0 s", 0, "0 s");
        check("2 d", 172_800, "2 d");
        for bad in ["", "10", "min", "-1 s", "1.5 h", "10 minutes", "99999999999999999999 s", "18446744073709551615 h"]
        {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quoted_strings_parse_back() {
        for text in ["", "a", "\"\\\n\t\r\u{1}\u{7f}", "ä'"] {
            let quoted = quote(text);
            let value = DeValue::parse(&quoted).unwrap();
            assert_eq!(value.get_ref().as_str(), Some(text), "{quoted}");
        }
    }
}
