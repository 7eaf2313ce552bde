//! The imports between the files of one crate, and the cycles among them.
//!
//! An import is any path that names an item of another file: in a `use`, in code, in the arguments of a macro. It is
//! resolved through re-exports to the file that declares the item; a file that re-exports names and also declares items
//! is imported itself. A file may import from the modules above it. Items under `#[cfg(test)]` are left out.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemUse, Macro, Meta, UseTree};

/// The files of one target of a crate, by its root file.
#[derive(Default)]
struct Tree {
    files: Vec<SourceFile>,
    modules: Vec<Module>,
}

struct SourceFile {
    path: PathBuf,
    /// Names of modules from the root down.
    module_path: Vec<String>,
}

struct Module {
    file: usize,
    parent: usize,
    /// One name can be a module and a function.
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
    /// Everything but the modules in it.
    items: Vec<Item>,
}

impl Module {
    /// Whether a name in the module is that of an item of another.
    fn re_exports(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|meanings| meanings.iter().any(|meaning| matches!(meaning, Name::Alias(_))))
    }

    fn has_module(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|meanings| meanings.iter().any(|meaning| matches!(meaning, Name::Module(_))))
    }

    fn written_paths(&self) -> BTreeSet<Vec<String>> {
        let mut paths = WrittenPaths::default();
        self.items.iter().for_each(|item| paths.visit_item(item));
        paths.found
    }

    /// Whether the module has nothing but modules and names of theirs.
    fn is_face(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Use(_)))
    }
}

enum Name {
    Item,
    Module(usize),
    Alias(Vec<String>),
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum PathTarget<'a> {
    Item { file: usize, name: &'a str },
    Module(usize),
}

/// The cycles of imports below a root file such as `src/base/game/lib.rs`, as `a.rs -> b.rs -> a.rs` with the
/// names behind each arrow.
pub fn cycles(root: &Path) -> Vec<String> {
    let (tree, folder) = Tree::of(root);
    let imports = tree.imports();
    let mut printed = BTreeSet::new();
    for &(from, to) in imports.keys() {
        let Some(back) = shortest(&imports, to, from) else { continue };
        // Each cycle once, however it is entered.
        let start = back.iter().enumerate().min_by_key(|(_, file)| **file).map_or(0, |(at, _)| at);
        let cycle: Vec<usize> = (0..=back.len()).map(|at| back[(start + at) % back.len()]).collect();
        let name = |file: usize| {
            let path = &tree.files[file].path;
            path.strip_prefix(folder).unwrap_or(path).display().to_string()
        };
        let mut text = cycle.iter().map(|&file| name(file)).collect::<Vec<_>>().join(" -> ");
        for pair in cycle.windows(2) {
            let names: Vec<&str> = imports[&(pair[0], pair[1])].iter().copied().collect();
            text += &format!("\n    {} uses {}", name(pair[0]), names.join(", "));
        }
        printed.insert(text);
    }
    printed.into_iter().collect()
}

/// The names that files below a root file import from it though another file declares them.
pub fn through_root(root: &Path) -> BTreeSet<String> {
    let (tree, _) = Tree::of(root);
    let face = &tree.modules[0];
    let mut found = BTreeSet::new();
    for module in &tree.modules[1..] {
        for path in module.written_paths() {
            let handed_on = |name: &str| face.re_exports(name) && !face.has_module(name);
            if matches!(&path[..], [first, name, ..] if first == "crate" && handed_on(name)) {
                found.insert(format!("{} uses {}", tree.files[module.file].path.display(), path.join("::")));
            }
        }
    }
    found
}

/// The names that the first file of each pair imports from the second.
type Imports<'a> = BTreeMap<(usize, usize), BTreeSet<&'a str>>;

/// The files on a shortest way along the imports, both ends included.
fn shortest(imports: &Imports<'_>, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        if file == to {
            let mut way = vec![to];
            while way[way.len() - 1] != from {
                way.push(came_from[&way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
        for &(_, next) in imports.range((file, 0)..(file + 1, 0)).map(|(edge, _)| edge) {
            came_from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                file
            });
        }
    }
    None
}

impl Tree {
    /// The files below a root file, and its folder.
    fn of(root: &Path) -> (Tree, &Path) {
        let folder = root.parent().expect("a file has a folder");
        let mut tree = Tree::default();
        tree.add_file(root.to_owned(), folder, Vec::new(), 0);
        (tree, folder)
    }

    /// Adds a file whose modules are in `folder`. Returns its module.
    fn add_file(&mut self, path: PathBuf, folder: &Path, module_path: Vec<String>, parent: usize) -> usize {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = self.files.len();
        self.files.push(SourceFile { path, module_path: module_path.clone() });
        self.add_module(parsed.items, file, folder, module_path, parent)
    }

    fn add_module(
        &mut self,
        items: Vec<Item>,
        file: usize,
        folder: &Path,
        module_path: Vec<String>,
        parent: usize,
    ) -> usize {
        let id = self.modules.len();
        let (names, globs) = (BTreeMap::new(), Vec::new());
        self.modules.push(Module { file, parent, names, globs, items: Vec::new() });
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            if let Some(name) = declared_name(&item) {
                self.modules[id].names.entry(name).or_default().push(Name::Item);
            }
            let Item::Mod(module) = item else {
                let mut uses = UseDeclarations::default();
                uses.visit_item(&item);
                for (name, path) in uses.found {
                    match name {
                        Some(name) => {
                            self.modules[id].names.entry(name).or_default().push(Name::Alias(path));
                        }
                        None => self.modules[id].globs.push(path),
                    }
                }
                self.modules[id].items.push(item);
                continue;
            };
            let name = module.ident.to_string();
            let mut child_path = module_path.clone();
            child_path.push(name.clone());
            let below = folder.join(&name);
            let child = match module.content {
                Some((_, items)) => self.add_module(items, file, &below, child_path, id),
                None => {
                    let beside = folder.join(format!("{name}.rs"));
                    let path = if beside.exists() { beside } else { below.join("mod.rs") };
                    self.add_file(path, &below, child_path, id)
                }
            };
            self.modules[id].names.entry(name).or_default().push(Name::Module(child));
        }
        id
    }

    /// The names that one file imports from another, but from a module above it.
    fn imports(&self) -> Imports<'_> {
        let mut imports = Imports::new();
        for (id, module) in self.modules.iter().enumerate() {
            for path in module.written_paths() {
                let is_glob = path.last().is_some_and(|last| last == "*");
                let steps = if is_glob { &path[..path.len() - 1] } else { &path[..] };
                for (length, name) in steps.iter().enumerate().skip(1) {
                    for passed in self.resolve(id, &steps[..length], &mut Vec::new()) {
                        let PathTarget::Module(passed) = passed else { continue };
                        let passed = &self.modules[passed];
                        if passed.re_exports(name) && !passed.is_face() {
                            self.add_import(&mut imports, module.file, passed.file, "a name through it");
                        }
                    }
                }
                for found in self.resolve(id, steps, &mut Vec::new()) {
                    let (file, name) = match found {
                        PathTarget::Item { file, name } => (file, name),
                        PathTarget::Module(module) if is_glob => (self.modules[module].file, "*"),
                        // What is used of it follows in a path of its own.
                        PathTarget::Module(_) => continue,
                    };
                    self.add_import(&mut imports, module.file, file, name);
                }
            }
        }
        imports
    }

    /// Adds an import between two files, unless the second one is of a module above the first.
    fn add_import<'a>(&self, imports: &mut Imports<'a>, from: usize, to: usize, name: &'a str) {
        if !self.files[from].module_path.starts_with(&self.files[to].module_path) {
            imports.entry((from, to)).or_default().insert(name);
        }
    }

    /// What a path in a module leads to; nothing where it leads out of the crate.
    fn resolve<'a>(&'a self, module: usize, path: &[String], open: &mut Vec<(usize, &'a str)>) -> Vec<PathTarget<'a>> {
        let Some(first) = path.first() else { return vec![PathTarget::Module(module)] };
        match first.as_str() {
            "crate" => self.resolve(0, &path[1..], open),
            "self" => self.resolve(module, &path[1..], open),
            "super" => self.resolve(self.modules[module].parent, &path[1..], open),
            name => {
                let mut found = Vec::new();
                for start in self.look_up(module, name, open) {
                    match start {
                        PathTarget::Module(inner) => found.extend(self.resolve(inner, &path[1..], open)),
                        // The rest is a variant or a function of a type.
                        PathTarget::Item { .. } => found.push(start),
                    }
                }
                found
            }
        }
    }

    fn look_up<'a>(&'a self, module: usize, name: &str, open: &mut Vec<(usize, &'a str)>) -> Vec<PathTarget<'a>> {
        let Module { file, names, globs, .. } = &self.modules[module];
        let mut found = Vec::new();
        if let Some((name, meanings)) = names.get_key_value(name) {
            for meaning in meanings {
                match meaning {
                    Name::Item => found.push(PathTarget::Item { file: *file, name }),
                    Name::Module(module) => found.push(PathTarget::Module(*module)),
                    // A name that is being resolved means something else in its own path.
                    Name::Alias(_) if open.contains(&(module, name)) => {}
                    Name::Alias(path) => {
                        open.push((module, name));
                        found.extend(self.resolve(module, path, open));
                        open.pop();
                    }
                }
            }
        } else if !open.contains(&(module, "*")) {
            open.push((module, "*"));
            for glob in globs {
                for target in self.resolve(module, glob, open) {
                    if let PathTarget::Module(target) = target {
                        found.extend(self.look_up(target, name, open));
                    }
                }
            }
            open.pop();
        }
        found
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item other than a module or a `use` declares.
fn declared_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Flattens `a::{b, c as d, e::*}`: the name in scope, none for a glob, and the path.
fn flatten(tree: &UseTree, before: &[String], found: &mut Vec<(Option<String>, Vec<String>)>) {
    let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(path.ident.to_string()), found),
        UseTree::Name(name) if name.ident == "self" => found.push((before.last().cloned(), before.to_vec())),
        UseTree::Name(name) => found.push((Some(name.ident.to_string()), with(name.ident.to_string()))),
        UseTree::Rename(name) => found.push((Some(name.rename.to_string()), with(name.ident.to_string()))),
        UseTree::Glob(_) => found.push((None, before.to_vec())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
    }
}

/// The `use` declarations of an item, those in functions too.
#[derive(Default)]
struct UseDeclarations {
    found: Vec<(Option<String>, Vec<String>)>,
}

impl<'ast> Visit<'ast> for UseDeclarations {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            flatten(&item.tree, &[], &mut self.found);
        }
    }
}

/// All paths of an item, as they are written; a glob ends in `*`.
#[derive(Default)]
struct WrittenPaths {
    found: BTreeSet<Vec<String>>,
}

impl<'ast> Visit<'ast> for WrittenPaths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if is_for_tests(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    /// The arguments of an attribute may name functions, as in `#[arg(value_parser = values::duration)]`.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.scan(list.tokens.clone());
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut uses = UseDeclarations::default();
        uses.visit_item_use(item);
        for (name, mut path) in uses.found {
            path.extend(name.is_none().then(|| "*".to_owned()));
            self.found.insert(path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.found.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.scan(called.tokens.clone());
    }
}

impl WrittenPaths {
    /// The paths among the tokens of a macro's arguments.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.found.insert(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                }
                TokenTree::Group(group) => {
                    self.found.insert(std::mem::take(&mut path));
                    self.scan(group.stream());
                }
                _ => {
                    self.found.insert(std::mem::take(&mut path));
                }
            }
            colons = 0;
        }
        self.found.insert(path);
    }
}
