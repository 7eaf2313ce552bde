//! Renders the tables of the manual from the program, and compares them with `docs/manual.md`.
//!
//! `AWARI_GOLDEN=write` writes the tables into the file instead.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use pipeline::manifest::{Schema, ValueType};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use tests::guide_table::{self, markdown};

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Words as code, after each other.
fn codes<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

/// A text in which options are code.
fn with_options_as_code(text: &str) -> String {
    let mut is_code = false;
    let word = |word: &str| {
        let name = word.trim_end_matches([',', '.', ';', ':', ')']);
        let shown = match name.strip_prefix("--") {
            Some(_) if !is_code => format!("{}{}", code(name), &word[name.len()..]),
            _ => word.to_owned(),
        };
        is_code ^= word.matches('`').count() % 2 == 1;
        shown
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The program, with global options in each subcommand.
fn program() -> Command {
    let mut program = awari::command().disable_help_subcommand(true);
    program.build();
    program
}

/// The commands with their names: a command with subcommands is each of these.
fn named_commands(program: &Command) -> Vec<(String, &Command)> {
    let named = |command: &'_ Command| command.get_name().to_owned();
    let mut all = Vec::new();
    for command in program.get_subcommands() {
        let parts: Vec<&Command> = command.get_subcommands().filter(|part| part.get_name() != "help").collect();
        match parts[..] {
            [] => all.push((named(command), command)),
            _ => all.extend(parts.into_iter().map(|part| (format!("{} {}", named(command), named(part)), part))),
        }
    }
    all
}

/// The name of the value of an argument.
fn value_name(argument: &Arg) -> String {
    argument.get_value_names().map(|names| names.join(" ")).unwrap_or_default()
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn commands() -> String {
    let program = program();
    let rows = named_commands(&program).into_iter().map(|(mut usage, command)| {
        for option in command.get_opts().filter(|option| option.is_required_set()) {
            let _ = write!(usage, " --{} {}", option.get_long().unwrap(), value_name(option));
        }
        for argument in command.get_positionals() {
            let name = value_name(argument);
            let _ = if argument.is_required_set() { write!(usage, " {name}") } else { write!(usage, " [{name}]") };
        }
        vec![code(&usage), with_options_as_code(&command.get_about().unwrap().to_string())]
    });
    markdown(&["command", "does"], rows)
}

fn options() -> String {
    let program = program();
    let named = named_commands(&program);
    let names: BTreeSet<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let mut commands: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for (name, command) in &named {
        let is_help = |option: &Arg| matches!(option.get_action(), ArgAction::Help | ArgAction::Version);
        let is_shown = |option: &&Arg| !option.is_positional() && !option.is_hide_set() && !is_help(option);
        for option in command.get_arguments().filter(is_shown) {
            let long = option.get_long().expect("every option has a long name");
            let mut spelling =
                format!("--{long} {}", if takes_value(option) { value_name(option) } else { String::new() });
            spelling = code(spelling.trim_end());
            if let Some(short) = option.get_short() {
                let _ = write!(spelling, ", {}", code(&format!("-{short}")));
            }
            let help = option.get_help().unwrap_or_else(|| panic!("--{long} has no help")).to_string();
            let (help, mut default) = match help.split_once(" [default: ") {
                Some((help, default)) => (help, default.strip_suffix(']').unwrap().to_owned()),
                None => (&*help, String::new()),
            };
            let mut meaning = with_options_as_code(help);
            let values = option.get_possible_values();
            let values: Vec<&str> =
                values.iter().filter(|value| !value.is_hide_set()).map(PossibleValue::get_name).collect();
            if takes_value(option) && !values.is_empty() {
                let _ = write!(meaning, "; one of {}", codes(values));
            }
            if let ([value], true) = (option.get_default_values(), takes_value(option)) {
                default = code(value.to_str().unwrap());
            }
            if !default.is_empty() {
                let _ = write!(meaning, "; default: {default}");
            }
            commands.entry((spelling, meaning)).or_default().insert(name);
        }
    }
    let rows = commands.into_iter().map(|((spelling, meaning), commands_with)| {
        let commands_with = if commands_with == names {
            "all".to_owned()
        } else {
            commands_with.into_iter().collect::<Vec<_>>().join(", ")
        };
        vec![spelling, commands_with, meaning]
    });
    markdown(&["option", "commands", "meaning"], rows)
}

/// The values of a key.
fn values(value_type: &ValueType) -> String {
    match value_type {
        ValueType::String => "text".to_owned(),
        ValueType::OneOf(words) => codes(words.iter().map(String::as_str)),
        ValueType::Integer(first, last) => format!("{first} to {last}"),
        ValueType::Boolean => codes(["true", "false"]),
        ValueType::Size => "size".to_owned(),
        ValueType::Duration => "time".to_owned(),
        ValueType::Ranges(first, last) => {
            format!("`\"A..B\"`, a number, or a list such as `\"A..B, C\"`, within {first}..{last}")
        }
        ValueType::ByRange(first, last, words) => {
            format!("table: `\"A..B\"`, within {first}..{last}, to {}", codes(words.iter().map(String::as_str)))
        }
    }
}

fn keys(schema: &Schema) -> String {
    let rows = schema.keys().iter().map(|key| {
        let default = match (key.path(), key.default()) {
            // Not in the schema: it follows from the name of the manifest.
            ("run.dir", _) => "`runs/NAME`".to_owned(),
            (_, Some("")) => code("\"\""),
            (_, Some(default)) => code(default),
            (_, None) => "required".to_owned(),
        };
        vec![code(key.path()), values(key.value_type()), default, key.doc().trim_end_matches('.').to_owned()]
    });
    markdown(&["key", "values", "default", "meaning"], rows)
}

/// Codes and meanings, from the help of the program.
fn exit_codes() -> Vec<(u8, String)> {
    let help = awari::command().get_after_help().unwrap().to_string();
    let (_, list) = help.split_once("Exit codes:\n").expect("the help lists the exit codes");
    let lines = list.lines().take_while(|line| !line.is_empty());
    let entry = |line: &str| {
        let (code, meaning) = line.trim().split_once("  ").unwrap();
        (code.parse().unwrap(), meaning.to_owned())
    };
    lines.map(entry).collect()
}

#[test]
fn tables_of_the_manual_are_those_of_the_program() {
    let exits = exit_codes().into_iter().map(|(code, meaning)| vec![code.to_string(), with_options_as_code(&meaning)]);
    let tables = [
        ("commands", commands()),
        ("options", options()),
        ("manifest keys", keys(&planner::schema())),
        ("hardware keys", keys(&planner::Hardware::schema())),
        ("exit codes", markdown(&["code", "meaning"], exits)),
    ];
    guide_table::check("docs/manual.md", "pipeline manual_tables", &tables);
}

/// The help lists every variant of the enum of the exit codes.
#[test]
fn the_help_lists_every_exit_code() {
    let source = fs::read_to_string(tests::root().join("src/build/pipeline/exit.rs")).unwrap();
    let file = syn::parse_file(&source).unwrap();
    let variants = file.items.iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == "Exit" => Some(&item.variants),
        _ => None,
    });
    let code = |variant: &syn::Variant| match &variant.discriminant {
        Some((_, syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(code), .. }))) => code.base10_parse().unwrap(),
        _ => panic!("{} has no number", variant.ident),
    };
    let codes: Vec<u8> = variants.unwrap().iter().map(code).collect();
    let listed: Vec<u8> = exit_codes().into_iter().map(|(code, _)| code).collect();
    assert!(codes.len() > 10);
    assert_eq!(listed, codes);
}
