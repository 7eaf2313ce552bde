//! The schema of a manifest: its keys, as data.

use crate::manifest::value::{Value, ValueType};

/// The keys of a manifest, in the order in which they are printed.
#[derive(Debug, Default)]
pub struct Schema {
    pub(crate) tables: Vec<SchemaTable>,
    pub(crate) keys: Vec<ManifestKey>,
}

#[derive(Debug)]
pub(crate) struct SchemaTable {
    pub(crate) name: String,
    pub(crate) doc: String,
}

/// Checks a value of the right type. The error is a message.
type Check = Box<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// A key of a manifest.
pub struct ManifestKey {
    /// Its table and name: `build.memory`.
    pub(crate) path: String,
    pub(crate) r#type: ValueType,
    /// The default, in the syntax of `--set KEY=VALUE`; `None` if the key is required.
    pub(crate) default: Option<String>,
    pub(crate) doc: String,
    pub(crate) check: Option<Check>,
}

impl ManifestKey {
    /// Makes a key with a default in the syntax of `--set KEY=VALUE`. `path` is its table and name: `build.memory`. A
    /// table by range has the default `{}`.
    pub fn new(path: &str, r#type: ValueType, default: &str, doc: &str) -> Self {
        ManifestKey { default: Some(default.to_owned()), ..ManifestKey::required(path, r#type, doc) }
    }

    /// Makes a required key.
    pub fn required(path: &str, r#type: ValueType, doc: &str) -> Self {
        ManifestKey { path: path.to_owned(), r#type, default: None, doc: doc.to_owned(), check: None }
    }

    /// Adds a check that the type cannot express. Its message follows the name of the key: `must be a power of two`.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Returns the table and the name of the key: `build.memory`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the type of its values.
    pub fn value_type(&self) -> &ValueType {
        &self.r#type
    }

    /// Returns the default in the syntax of `--set KEY=VALUE`; `None` if the key is required.
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Returns the meaning of the key.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    pub(crate) fn table(&self) -> &str {
        self.path.split_once('.').map_or("", |(table, _)| table)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.split_once('.').map_or(&self.path, |(_, name)| name)
    }
}

impl std::fmt::Debug for ManifestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key")
            .field("path", &self.path)
            .field("type", &self.r#type)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

impl Schema {
    /// Makes an empty schema.
    pub fn new() -> Self {
        Schema::default()
    }

    /// Begins a table for the keys added next.
    ///
    /// # Panics
    /// If the table exists: schemas are constants of the program.
    #[must_use]
    pub fn table(mut self, name: &str, doc: &str) -> Self {
        assert!(self.tables.iter().all(|table| table.name != name), "two tables {name}");
        self.tables.push(SchemaTable { name: name.to_owned(), doc: doc.to_owned() });
        self
    }

    /// Adds a key.
    ///
    /// # Panics
    /// If it is not in the last table, exists already, or its default is not a value of its type.
    #[must_use]
    pub fn key(mut self, key: ManifestKey) -> Self {
        let table = self.tables.last().map_or("", |table| &table.name);
        assert!(!table.is_empty() && key.table() == table, "{key:?} is not in its table");
        assert!(!key.name().contains('.'), "{key:?} is nested too deep");
        assert!(self.find(&key.path).is_none(), "two keys {key:?}");
        if let Some(default) = &key.default {
            let value = Value::of_argument(&key.r#type, default);
            assert!(value.is_ok(), "{key:?}: {value:?}");
        }
        self.keys.push(key);
        self
    }

    /// Returns all keys, in the order in which they are printed.
    pub fn keys(&self) -> &[ManifestKey] {
        &self.keys
    }

    /// Returns the paths of all keys.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(ManifestKey::path)
    }

    pub(crate) fn find(&self, path: &str) -> Option<(usize, &ManifestKey)> {
        self.keys.iter().enumerate().find(|(_, key)| key.path == path)
    }
}
