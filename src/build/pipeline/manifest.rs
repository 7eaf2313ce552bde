//! Manifests: TOML text and `--set` arguments, checked against a schema. All mistakes are reported at once.

mod diagnostic;
mod schema;
#[cfg(test)]
mod tests;
mod value;

use disk::Digest;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use crate::manifest::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Origin};
pub use crate::manifest::schema::{ManifestKey, Schema};
pub use crate::manifest::value::{ByRange, Value, ValueType};

use crate::budget::Budget;
use crate::manifest::diagnostic::{position, shown};
use crate::manifest::value::{ValueMistake, quote};
use crate::suggest::nearest;

/// The longest file that is read as a manifest, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 10;

/// A manifest without mistakes: every key of its schema has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    file_name: String,
    text: String,
    tables: Vec<(String, String)>,
    entries: Vec<ManifestEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ManifestEntry {
    path: String,
    doc: String,
    value: Value,
    source: ValueSource,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueSource {
    Default,
    File(Range<usize>),
    Set { argument: String, span: Range<usize> },
}

impl Manifest {
    /// Reads a manifest. `overrides` are the keys and values of `--set KEY=VALUE`, in order.
    ///
    /// # Errors
    /// All mistakes, or [`DIAGNOSTICS_MAX`] of them: those of the file first, in the order of the text.
    pub fn parse(
        text: &str,
        file_name: &str,
        schema: &Schema,
        overrides: &[(String, String)],
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut reader = ManifestReader {
            schema,
            text,
            file_name,
            values: schema.keys.iter().map(|_| None).collect(),
            mistaken: vec![false; schema.keys.len()],
            diagnostics: Vec::new(),
            recovering: false,
        };
        reader.read_text();
        for (key, value) in overrides {
            reader.read_override(key, value);
        }
        let values = reader.finish()?;
        let entries = schema.keys.iter().zip(values).map(|(key, (value, source))| ManifestEntry {
            path: key.path.clone(),
            doc: key.doc.clone(),
            value,
            source,
        });
        let tables = schema.tables.iter();
        Ok(Manifest {
            file_name: file_name.to_owned(),
            text: text.to_owned(),
            tables: tables.map(|t| (t.name.clone(), t.doc.clone())).collect(),
            entries: entries.collect(),
        })
    }

    /// The value of a key.
    ///
    /// # Panics
    /// Like every getter, if the schema has no such key or it has another type: keys are constants
    /// of the program.
    pub fn value(&self, path: &str) -> &Value {
        &self.entry(path).value
    }

    /// The value of a key of type string or one-of.
    pub fn string(&self, path: &str) -> &str {
        match self.value(path) {
            Value::String(value) => value,
            other => mistyped(path, other),
        }
    }

    /// The value of a key of type integer.
    pub fn integer(&self, path: &str) -> i64 {
        match self.value(path) {
            Value::Integer(value) => *value,
            other => mistyped(path, other),
        }
    }

    /// The value of a key of type boolean.
    pub fn boolean(&self, path: &str) -> bool {
        match self.value(path) {
            Value::Boolean(value) => *value,
            other => mistyped(path, other),
        }
    }

    /// The value of a key of type size.
    pub fn size(&self, path: &str) -> Budget {
        match self.value(path) {
            Value::Size(value) => *value,
            other => mistyped(path, other),
        }
    }

    /// The value of a key of type duration.
    pub fn duration(&self, path: &str) -> Duration {
        match self.value(path) {
            Value::Duration(value) => *value,
            other => mistyped(path, other),
        }
    }

    /// The value of a key of type ranges.
    pub fn ranges(&self, path: &str) -> &[RangeInclusive<u32>] {
        match self.value(path) {
            Value::Ranges(value) => value,
            other => mistyped(path, other),
        }
    }

    /// The value of a key of type by-range.
    pub fn by_range(&self, path: &str) -> &ByRange {
        match self.value(path) {
            Value::ByRange(value) => value,
            other => mistyped(path, other),
        }
    }

    /// Whether a key was given, in the file or by `--set`.
    pub fn is_given(&self, path: &str) -> bool {
        self.entry(path).source != ValueSource::Default
    }

    /// Makes a diagnostic for the value of a key, for checks that the schema cannot make.
    pub fn diagnose(&self, path: &str, message: &str, help: Option<&str>) -> Diagnostic {
        let (origin, text, span) = match &self.entry(path).source {
            ValueSource::Default => (Origin::File(self.file_name.clone()), &self.text, 0..0),
            ValueSource::File(span) => (Origin::File(self.file_name.clone()), &self.text, span.clone()),
            ValueSource::Set { argument, span } => (Origin::Set(argument.clone()), argument, span.clone()),
        };
        let (line, column) = position(text, span.start);
        Diagnostic { origin, line, column, span, message: format!("{path} {message}"), help: help.map(str::to_owned) }
    }

    /// Returns the manifest as TOML with every key and its value.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (table, doc) in &self.tables {
            if !text.is_empty() {
                text.push('\n');
            }
            comment(&mut text, doc);
            text.push_str(&format!("[{table}]\n"));
            for entry in &self.entries {
                let Some((prefix, name)) = entry.path.split_once('.') else {
                    continue;
                };
                if prefix == table {
                    comment(&mut text, &entry.doc);
                    text.push_str(&format!("{name} = {}\n", entry.value.to_toml()));
                }
            }
        }
        text
    }

    /// Returns a digest of every key and its value.
    pub fn digest(&self) -> Digest {
        let lines: Vec<String> =
            self.entries.iter().map(|entry| format!("{} = {}", entry.path, entry.value.to_toml())).collect();
        Digest::of(lines.join("\n").as_bytes())
    }

    fn entry(&self, path: &str) -> &ManifestEntry {
        let entry = self.entries.iter().find(|entry| entry.path == path);
        entry.unwrap_or_else(|| panic!("the schema has no key {path}"))
    }
}

fn mistyped(path: &str, value: &Value) -> ! {
    panic!("{path} is of another type: {value:?}")
}

fn comment(text: &mut String, doc: &str) {
    for line in doc.lines() {
        text.push_str("# ");
        text.push_str(line);
        text.push('\n');
    }
}

struct ManifestReader<'a> {
    schema: &'a Schema,
    text: &'a str,
    file_name: &'a str,
    values: Vec<Option<(Value, ValueSource)>>,
    /// Keys that were given with a mistake, so that they are not reported as missing too.
    mistaken: Vec<bool>,
    diagnostics: Vec<Diagnostic>,
    /// Whether the text is not TOML, and the reader works on what recovery made of it.
    recovering: bool,
}

impl ManifestReader<'_> {
    fn read_text(&mut self) {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        let line_ends: Vec<usize> = self.text.match_indices('\n').map(|(at, _)| at).collect();
        let mut broken_lines = BTreeSet::new();
        for error in &errors {
            let end = self.text.len();
            let span = error.span().unwrap_or(end..end);
            // Only the first error of a line is reported: the others follow from it.
            if broken_lines.insert(1 + line_ends.partition_point(|&at| at < span.start)) {
                self.note(span, first_line(error.message()), None);
            }
        }
        let syntax = self.diagnostics.len();
        self.recovering = syntax > 0;
        for (name, value) in document.get_ref() {
            self.read_table(name, value);
        }
        if !errors.is_empty() {
            // Recovery invents values for broken lines: their mistakes are not reported.
            let mut found = self.diagnostics.split_off(syntax);
            found.retain(|d| !broken_lines.contains(&d.line) && !d.span.is_empty());
            self.diagnostics.extend(found);
            // A key may be missing only because its line is broken.
            self.mistaken.fill(true);
        }
        self.diagnostics.sort_by_key(|d| d.span.start);
    }

    fn read_table(&mut self, name: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let tables = || self.schema.tables.iter().map(|table| table.name.as_str());
        let known = tables().any(|table| table == name.get_ref().as_ref());
        match value.get_ref() {
            DeValue::Table(keys) if known => {
                for (key, value) in keys {
                    self.read_key(name.get_ref(), key, value);
                }
            }
            _ if known => {
                let message = format!("{name} must be a table", name = name.get_ref());
                let help = format!("write [{}]", name.get_ref());
                self.note(value.span(), message, Some(help));
                for (at, key) in self.schema.keys.iter().enumerate() {
                    self.mistaken[at] |= key.table() == name.get_ref().as_ref();
                }
            }
            _ if self.is_full() => {}
            DeValue::Table(_) => {
                let is_header = self.text.get(..name.span().start).is_some_and(|text| text.ends_with('['));
                if self.recovering && !is_header {
                    return;
                }
                let near = nearest(name.get_ref(), tables());
                let help = match near {
                    Some(near) => format!("did you mean [{near}]?"),
                    None => {
                        let all: Vec<String> = tables().map(|t| format!("[{t}]")).collect();
                        format!("the tables are {}", all.join(", "))
                    }
                };
                // Its keys count as given in the suggested table.
                for (at, key) in self.schema.keys.iter().enumerate() {
                    self.mistaken[at] |= near.is_some_and(|near| key.table() == near);
                }
                let message = format!("unknown table [{}]", shown(name.get_ref()));
                self.note(name.span(), message, Some(help));
            }
            _ => self.unknown_key("", name),
        }
    }

    fn read_key(&mut self, table: &str, name: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let path = format!("{table}.{}", name.get_ref());
        let schema = self.schema;
        let Some((at, key)) = schema.find(&path).filter(|_| !name.get_ref().contains('.')) else {
            return self.unknown_key(table, name);
        };
        self.mistaken[at] = true;
        match Value::of_toml(&key.r#type, value) {
            Ok(found) => {
                if let Some(mistake) = failed_check(key, &found, value.span()) {
                    self.note(mistake.span, mistake.message, mistake.help);
                } else {
                    self.values[at] = Some((found, ValueSource::File(value.span())));
                }
            }
            Err(mistakes) => {
                for mistake in mistakes {
                    self.note(mistake.span, format!("{path} {}", mistake.message), mistake.help);
                }
            }
        }
    }

    fn unknown_key(&mut self, table: &str, name: &Spanned<Cow<'_, str>>) {
        if self.is_full() {
            return;
        }
        let (help, meant) = self.meant(table, name.get_ref());
        if let Some(at) = meant {
            self.mistaken[at] = true;
        }
        let message = match table {
            "" => format!("unknown key {}", shown(name.get_ref())),
            _ => format!("unknown key {} in [{table}]", shown(name.get_ref())),
        };
        self.note(name.span(), message, Some(help));
    }

    /// Suggests a known key for an unknown key in a table.
    fn meant(&self, table: &str, name: &str) -> (String, Option<usize>) {
        let keys = || self.schema.keys.iter().enumerate();
        let here = || keys().filter(|(_, key)| key.table() == table);
        if let Some(near) = nearest(name, here().map(|(_, key)| key.name())) {
            let at = here().find(|(_, key)| key.name() == near).map(|(at, _)| at);
            return (format!("did you mean {near}?"), at);
        }
        let elsewhere = nearest(name, keys().map(|(_, key)| key.name()));
        if let Some((at, key)) = keys().find(|(_, key)| Some(key.name()) == elsewhere) {
            let help = format!("did you mean {} in [{}]?", key.name(), key.table());
            return (help, Some(at));
        }
        let names: Vec<&str> = here().map(|(_, key)| key.name()).collect();
        let help = match names.len() {
            0 => "every key belongs to a table".to_owned(),
            _ => format!("the keys of [{table}] are {}", names.join(", ")),
        };
        (help, None)
    }

    fn read_override(&mut self, key: &str, value: &str) {
        let argument = format!("{key}={value}");
        let value_start = key.len() + 1;
        let in_value = |span: Range<usize>| value_start + span.start..value_start + span.end;
        let fail = |reader: &mut Self, span, message: String, help| {
            let origin = Origin::Set(argument.clone());
            if !reader.is_full() {
                reader.diagnostics.push(placed(origin, &argument, span, message, help));
            }
        };
        let Some(parts) = key_parts(key) else {
            let help = "write TABLE.KEY=VALUE, and quote parts with dots: 'a.b.\"1..2\"'=x";
            let message = format!("{} is not a key", quote(&shown(key)));
            return fail(self, 0..key.len(), message, Some(help.to_owned()));
        };
        let names: Vec<&str> = parts.iter().map(|part| part.get_ref().as_ref()).collect();
        let path = names.iter().take(2).copied().collect::<Vec<_>>().join(".");
        let schema = self.schema;
        let known = schema.find(&path).filter(|_| names.iter().take(2).all(|name| !name.contains('.')));
        let Some((at, spec)) = known else {
            let near = nearest(&path, schema.paths());
            let help = match (near, names.as_slice()) {
                (Some(near), _) => format!("did you mean {near}?"),
                (None, [name]) | (None, [_, name, ..]) => match self.meant("", name).1 {
                    Some(at) => format!("did you mean {}?", schema.keys[at].path),
                    None => "no key has a similar name".to_owned(),
                },
                (None, []) => "no key has a similar name".to_owned(),
            };
            let message = format!("unknown key {}", shown(&path));
            return fail(self, 0..key.len(), message, Some(help));
        };
        self.mistaken[at] = true;
        let found = match parts.as_slice() {
            [_, _] => Value::of_argument(&spec.r#type, value).map_err(|mistakes| {
                let moved = |mistake: ValueMistake| ValueMistake { span: in_value(mistake.span), ..mistake };
                mistakes.into_iter().map(moved).collect()
            }),
            [_, _, range] => {
                let range = Spanned::new(0..key.len(), range.get_ref().clone());
                let entry = Value::of_entry_argument(&spec.r#type, &range, value, value_start);
                entry.map(|(range, word)| {
                    let mut by_range = match &self.values[at] {
                        Some((Value::ByRange(by_range), _)) => by_range.clone(),
                        _ => ByRange::default(),
                    };
                    by_range.set(range, word);
                    Value::ByRange(by_range)
                })
            }
            _ => Err(vec![ValueMistake { span: 0..key.len(), message: "has no keys below it".to_owned(), help: None }]),
        };
        let span = value_start..argument.len();
        match found {
            Ok(found) => match failed_check(spec, &found, span.clone()) {
                Some(mistake) => fail(self, mistake.span, mistake.message, mistake.help),
                None => {
                    let source = ValueSource::Set { argument: argument.clone(), span };
                    self.values[at] = Some((found, source));
                }
            },
            Err(mistakes) => {
                for mistake in mistakes {
                    let message = format!("{path} {}", mistake.message);
                    fail(self, mistake.span, message, mistake.help);
                }
            }
        }
    }

    /// The values of all keys, with defaults for those not given.
    fn finish(mut self) -> Result<Vec<(Value, ValueSource)>, Vec<Diagnostic>> {
        let schema = self.schema;
        let mut values = Vec::with_capacity(schema.keys.len());
        let given = std::mem::take(&mut self.values);
        for (at, (key, given)) in schema.keys.iter().zip(given).enumerate() {
            let default = || {
                let default = key.default.as_deref()?;
                let value = Value::of_argument(&key.r#type, default);
                Some((value.expect("the schema has checked it"), ValueSource::Default))
            };
            match given.or_else(default) {
                Some(value) => values.push(value),
                None if self.mistaken[at] => {}
                None => {
                    let end = self.text.len();
                    let message = format!("{} is missing", key.path);
                    let help = key.doc.lines().next().map(str::to_owned);
                    self.note(end..end, message, help);
                }
            }
        }
        if self.diagnostics.is_empty() { Ok(values) } else { Err(self.diagnostics) }
    }

    fn is_full(&self) -> bool {
        self.diagnostics.len() >= DIAGNOSTICS_MAX
    }

    /// Adds a mistake in the file.
    fn note(&mut self, span: Range<usize>, message: String, help: Option<String>) {
        if self.is_full() {
            return;
        }
        let origin = Origin::File(self.file_name.to_owned());
        let diagnostic = placed(origin, self.text, span, message, help);
        self.diagnostics.push(diagnostic);
    }
}

fn placed(origin: Origin, text: &str, span: Range<usize>, message: String, help: Option<String>) -> Diagnostic {
    let (line, column) = position(text, span.start);
    Diagnostic { origin, line, column, span, message, help }
}

fn failed_check(key: &ManifestKey, value: &Value, span: Range<usize>) -> Option<ValueMistake> {
    let error = key.check.as_ref()?(value).err()?;
    Some(ValueMistake { span, message: format!("{} {error}", key.path), help: None })
}

/// The parts of a dotted key as TOML reads them: `build.methods."21..21"`.
fn key_parts(key: &str) -> Option<Vec<Spanned<Cow<'static, str>>>> {
    if key.contains(['\n', '\r', '=', '#', '[', ']', '{', '}']) {
        return None;
    }
    let line = format!("{key} = 0");
    let document = DeTable::parse(&line).ok()?;
    let mut parts = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (name, value) = table.iter().next()?;
        parts.push(Spanned::new(name.span(), Cow::Owned(name.get_ref().to_string())));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(parts),
        }
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or("not TOML").to_owned()
}
