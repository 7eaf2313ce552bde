//! Cases for manifests: text and overrides, with all the mistakes expected.

use crate::budget::Budget;
use crate::manifest::{DIAGNOSTICS_MAX, Diagnostic, Manifest, ManifestKey, Schema, Value, ValueType};
use proptest::prelude::*;
use std::time::Duration;

fn schema() -> Schema {
    Schema::new()
        .table("game", "What is solved.")
        .key(ManifestKey::new("game.rules", ValueType::one_of(&["toy", "other"]), "toy", "The rules."))
        .table("build", "What is built.\nAnd how.")
        .key(ManifestKey::required("build.stones", ValueType::Ranges(0, 48), "Which databases."))
        .key(ManifestKey::new("build.method", ValueType::one_of(&["auto", "sweep"]), "auto", "The method."))
        .key(ManifestKey::new("build.methods", ValueType::by_range(0, 48, &["sweep", "counting"]), "{}", "Exceptions."))
        .key(ManifestKey::new("build.memory", ValueType::Size, "2 GiB", "Memory.").check(|value| match value {
            Value::Size(size) if size.bytes() < 1 << 20 => Err("must be at least 1 MiB".to_owned()),
            _ => Ok(()),
        }))
        .key(ManifestKey::new("build.threads", ValueType::Integer(0, 1024), "0", "Threads; 0 is all."))
        .key(ManifestKey::new("build.snapshot", ValueType::Duration, "10 min", "Snapshots."))
        .table("run", "Where.")
        .key(ManifestKey::new("run.dir", ValueType::String, "runs/small", "The directory."))
        .key(ManifestKey::new("run.published", ValueType::Boolean, "true", "Compare."))
}

fn parse(text: &str, overrides: &[&str]) -> Result<Manifest, Vec<Diagnostic>> {
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|argument| {
            let (key, value) = argument.split_once('=').unwrap();
            (key.to_owned(), value.to_owned())
        })
        .collect();
    Manifest::parse(text, "m.toml", &schema(), &overrides)
}

#[track_caller]
fn good(text: &str, overrides: &[&str]) -> Manifest {
    parse(text, overrides).unwrap_or_else(|found| panic!("{}", lines(&found)))
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<String> = diagnostics.iter().map(|d| format!("{d}\n")).collect();
    lines.concat()
}

#[track_caller]
fn check(text: &str, overrides: &[&str], expect: &str) {
    let expect: String = expect.trim().lines().map(|line| format!("{}\n", line.trim())).collect();
    let found = parse(text, overrides).map(|_| ()).map_err(|found| lines(&found));
    assert_eq!(found, Err(expect));
}

/// However many mistakes a text has, some of them are reported, and no more.
#[test]
fn mistakes_are_reported_up_to_a_number() {
    let many = |line: &dyn Fn(usize) -> String| (0..5000).map(line).collect::<String>();
    let texts = [
        format!("[build]\n{}", many(&|at| format!("k{at} = 1\n"))),
        many(&|at| format!("[t{at}]\n")),
        many(&|_| "[build]\n".to_owned()),
        many(&|_| "= =\n".to_owned()),
        many(&|at| format!("k{at} = 1\n")),
        format!("[build.methods]\n{}", many(&|at| format!("x{at} = \"swep\"\n"))),
        format!("[build.methods]\n{}", many(&|at| format!("\"1..{}\" = \"sweep\"\n", at % 48))),
        format!("[build]\nmethods = {{ {} }}\n", many(&|at| format!("\"0{at}\" = \"sweep\", "))),
    ];
    for text in texts {
        let found = parse(&text, &[]).unwrap_err();
        assert_eq!(found.len(), DIAGNOSTICS_MAX, "{}", &text[..40]);
        assert!(found.is_sorted_by_key(|diagnostic| diagnostic.span.start));
    }
    let overrides: Vec<String> = (0..5000).map(|at| format!("build.k{at}=1")).collect();
    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
    assert_eq!(parse("", &overrides).unwrap_err().len(), DIAGNOSTICS_MAX);
}

#[test]
fn defaults_and_values() {
    let manifest = good("[build]\nstones = 12\n", &[]);
    assert_eq!(manifest.string("game.rules"), "toy");
    assert_eq!(manifest.ranges("build.stones"), [12..=12]);
    assert_eq!(manifest.size("build.memory"), Budget::new(2 << 30));
    assert_eq!(manifest.duration("build.snapshot"), Duration::from_secs(600));
    assert_eq!(manifest.by_range("build.methods").get(3), None);
    assert!(!manifest.is_given("game.rules") && manifest.is_given("build.stones"));

    let text = r#"
        game.rules = "other"
        run = { dir = "x y", published = false }
        [build]
        stones = "3..0x"
        "#;
    assert!(parse(text, &[]).is_err());
    let manifest = good(
        r#"
        game.rules = "other"
        run = { dir = "x y", published = false }
        [build]
        stones = " 3 .. 14 "
        memory = "1.5 GiB"
        threads = 0x10
        snapshot = "30s"
        [build.methods]
        "13..14" = "counting"
        "7" = "sweep"
        "#,
        &[],
    );
    assert_eq!(manifest.string("game.rules"), "other");
    assert_eq!(manifest.string("run.dir"), "x y");
    assert!(!manifest.boolean("run.published"));
    assert_eq!(manifest.ranges("build.stones"), [3..=14]);
    assert_eq!(manifest.size("build.memory").bytes(), 3 << 29);
    assert_eq!(manifest.integer("build.threads"), 16);
    assert_eq!(manifest.by_range("build.methods").get(14), Some("counting"));
    assert_eq!(manifest.by_range("build.methods").get(8), None);
}

#[test]
fn every_mistake_at_once_with_its_place() {
    check(
        "[game]\nrules = \"oter\"\n[build]\nstones = \"12..3\"\nmetohd = \"sweep\"\n\
         memory = \"2 GiBi\"\nthreads = \"4\"\nsnapshot = 10\n[biuld]\nx = 1\n[run]\ndir = 3\n",
        &["build.threads=-1", "run.published=perhaps"],
        r#"
        m.toml:2:9: game.rules must be one of "toy", "other", not "oter" (did you mean "other"?)
        m.toml:4:10: build.stones is an empty range: 12..3 (did you mean "3..12"?)
        m.toml:5:1: unknown key metohd in [build] (did you mean method?)
        m.toml:6:10: build.memory must be a size, not "2 GiBi" (write "512 MiB" or "2 GiB", for example)
        m.toml:7:11: build.threads must be an integer, not the string "4"
        m.toml:8:12: build.snapshot must be a time such as "10 min", not the integer 10
        m.toml:9:2: unknown table [biuld] (did you mean [build]?)
        m.toml:12:7: run.dir must be a string, not the integer 3
        --set build.threads=-1: build.threads must be in 0..1024, not -1
        --set run.published=perhaps: run.published must be true or false, not the string "perhaps"
        "#,
    );
}

/// Of an argument, too: mistakes in the value stand behind the key, in whole characters.
#[test]
fn mistakes_in_arguments_have_their_place() {
    let check = |argument: &str, expect: &str| {
        let mistakes = parse("[build]\nstones = 1\n", &[argument]).unwrap_err();
        let places: Vec<&str> = mistakes.iter().map(|mistake| &argument[mistake.span.clone()]).collect();
        assert_eq!(places, [expect], "{argument}");
    };
    check("build.threads=-1", "-1");
    check("build.methods.\"1..2\"=swep", "swep");
    check(
        "build.methods.\"1..2\"= [\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        " [\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
    );
    check("build.methods.\"1..2\"=3", "3");
    check("build.methods.\"2..1\"=sweep", "build.methods.\"2..1\"");
}

#[test]
fn unknown_names() {
    let base = |more: &str| format!("[build]\nstones = 1\n{more}");
    check(&base("dir = 1\n"), &[], "m.toml:3:1: unknown key dir in [build] (did you mean dir in [run]?)");
    check(
        &base("zzz = 1\n"),
        &[],
        "m.toml:3:1: unknown key zzz in [build] (the keys of [build] are stones, method, methods, \
         memory, threads, snapshot)",
    );
    check(&base("[zzz]\n"), &[], "m.toml:3:2: unknown table [zzz] (the tables are [game], [build], [run])");
    check(
        "rules = \"toy\"\n[build]\nstones = 1\n",
        &[],
        "m.toml:1:1: unknown key rules (did you mean rules in [game]?)",
    );
    check(
        "memory = 1\nzzzz = 1\n[build]\nstones = 1\n",
        &[],
        "m.toml:1:1: unknown key memory (did you mean memory in [build]?)
         m.toml:2:1: unknown key zzzz (every key belongs to a table)",
    );
    check(
        &base("\"a.b\" = 1\n"),
        &[],
        "m.toml:3:1: unknown key a.b in [build] (the keys of [build] are stones, method, methods, memory, threads, snapshot)",
    );
    check("build = 3\n", &[], "m.toml:1:9: build must be a table (write [build])");
    check(&base("stone = 1\n"), &[], "m.toml:3:1: unknown key stone in [build] (did you mean stones?)");
}

#[test]
fn missing_keys() {
    check("", &[], "m.toml:1:1: build.stones is missing (Which databases.)");
    check("[game]\n", &[], "m.toml:2:1: build.stones is missing (Which databases.)");
    // A slip in the key is one mistake, not two.
    check("[build]\nstone = 1\n", &[], "m.toml:2:1: unknown key stone in [build] (did you mean stones?)");
    good("", &["build.stones=3"]);
}

#[test]
fn ranges() {
    let text = |value: &str| format!("[build]\nstones = {value}\n");
    let help = "(write \"A..B\", both ends included, or one number, within 0..48)";
    check(&text("\"\""), &[], &format!("m.toml:2:10: build.stones must be a range, not \"\" {help}"));
    check(&text("\"1..\""), &[], &format!("m.toml:2:10: build.stones must be a range, not \"1..\" {help}"));
    check(&text("\"1..2..3\""), &[], &format!("m.toml:2:10: build.stones must be a range, not \"1..2..3\" {help}"));
    check(&text("-1"), &[], &format!("m.toml:2:10: build.stones must be a range, not \"-1\" {help}"));
    check(&text("\"0..49\""), &[], "m.toml:2:10: build.stones must be within 0..48, not 0..49");
    check(&text("99999999999"), &[], "m.toml:2:10: build.stones must be within 0..48, not 99999999999");
    check(&text("1.5"), &[], "m.toml:2:10: build.stones must be a range such as \"0..12\", not the number 1.5");
    check(&text("[1, 2]"), &[], "m.toml:2:10: build.stones must be a range such as \"0..12\", not an array");
}

#[test]
fn tables_by_range() {
    let text = |value: &str| format!("[build]\nstones = 1\n[build.methods]\n{value}\n");
    check(
        &text("\"3..x\" = \"swep\"\n\"50\" = 1\n\"5..4\" = \"sweep\""),
        &[],
        "m.toml:4:1: build.methods must be a range, not \"3..x\" (write \"A..B\", both ends included, \
         or one number, within 0..48)
         m.toml:4:10: build.methods must be one of \"sweep\", \"counting\", not \"swep\" (did you mean \"sweep\"?)
         m.toml:5:1: build.methods must be within 0..48, not 50
         m.toml:5:8: build.methods must be a string, not the integer 1
         m.toml:6:1: build.methods is an empty range: 5..4 (did you mean \"4..5\"?)",
    );
    check(
        &text("\"3..5\" = \"sweep\"\n\"5\" = \"counting\""),
        &[],
        "m.toml:5:1: build.methods has overlapping ranges 3..5 and 5 (give each number a single value)",
    );
    check(
        "[build]\nstones = 1\nmethods = \"sweep\"\n",
        &[],
        "m.toml:3:11: build.methods must be a table by range, not the string \"sweep\"",
    );
}

#[test]
fn syntax() {
    check("[build]\nstones = \n", &[], "m.toml:2:10: string values must be quoted, expected literal string");
    // The rest is checked as well.
    check(
        "[build]\nstones = 1\nmemory = = 3\nthreads = \"x\"\n",
        &[],
        "m.toml:3:10: extra `=`, expected nothing
         m.toml:4:11: build.threads must be an integer, not the string \"x\"",
    );
    check("[build]\nstones = 1\nstones = 2\n", &[], "m.toml:3:1: duplicate key");
    check("[build\nstones = 1\n", &[], "m.toml:1:7: unclosed table, expected `]`");
}

#[test]
fn checks_of_the_caller() {
    check("[build]\nstones = 1\nmemory = \"1 KiB\"\n", &[], "m.toml:3:10: build.memory must be at least 1 MiB");
    check("[build]\nstones = 1\n", &["build.memory=0"], "--set build.memory=0: build.memory must be at least 1 MiB");
    let manifest = good("[build]\nstones = 1\nmemory = \"1 MiB\"\n", &["build.threads=2"]);
    let found = manifest.diagnose("build.memory", "is too small for 1 stone", Some("use 2 MiB"));
    let expect = "m.toml:3:10: build.memory is too small for 1 stone (use 2 MiB)";
    assert_eq!((found.to_string().as_str(), found.span), (expect, 28..35));
    let found = manifest.diagnose("build.threads", "is odd", None);
    assert_eq!(found.to_string(), "--set build.threads=2: build.threads is odd");
    let found = manifest.diagnose("run.dir", "is bad", None);
    assert_eq!(found.to_string(), "m.toml:1:1: run.dir is bad");
}

#[test]
fn overrides() {
    let text = "[build]\nstones = 1\n[build.methods]\n\"20..24\" = \"sweep\"\n";
    let manifest = good(
        text,
        &[
            "build.stones=0..18",
            "build.method=sweep",
            "build.memory=512 MiB",
            "build.methods.\"21..21\"=counting",
            "run.dir=2024-01-01",
            "run.published=false",
            "game.rules=\"other\"",
        ],
    );
    assert_eq!(manifest.ranges("build.stones"), [0..=18]);
    assert_eq!(manifest.string("build.method"), "sweep");
    assert_eq!(manifest.size("build.memory").bytes(), 512 << 20);
    assert_eq!(manifest.string("run.dir"), "2024-01-01");
    assert_eq!(manifest.string("game.rules"), "other");
    assert!(!manifest.boolean("run.published"));
    let methods = manifest.by_range("build.methods");
    let found: Vec<Option<&str>> = (19..=25).map(|n| methods.get(n)).collect();
    let (s, c) = (Some("sweep"), Some("counting"));
    assert_eq!(found, [None, s, c, s, s, s, None]);

    let replaced = good(text, &["build.methods={ 3 = \"counting\" }", "build.methods.4='sweep'"]);
    let methods = replaced.by_range("build.methods");
    assert_eq!((methods.get(3), methods.get(4), methods.get(20)), (c, s, None));
    assert_eq!(good(text, &["run.dir=12", "run.dir=true"]).string("run.dir"), "true");
}

#[test]
fn mistakes_in_overrides() {
    let text = "[build]\nstones = 1\n";
    check(
        text,
        &["build.stone=3", "memory=3", "zzz=3", "build=3", "build.zzzz=1"],
        "--set build.stone=3: unknown key build.stone (did you mean build.stones?)
         --set memory=3: unknown key memory (did you mean build.memory?)
         --set zzz=3: unknown key zzz (no key has a similar name)
         --set build=3: unknown key build (no key has a similar name)
         --set build.zzzz=1: unknown key build.zzzz (no key has a similar name)",
    );
    let help = "(write TABLE.KEY=VALUE, and quote parts with dots: 'a.b.\"1..2\"'=x)";
    check(
        text,
        &["build..stones=3", "=3", "[build]=1"],
        &format!(
            "--set build..stones=3: \"build..stones\" is not a key {help}
             --set =3: \"\" is not a key {help}
             --set [build]=1: \"[build]\" is not a key {help}"
        ),
    );
    check(
        text,
        &["build.stones.3=1", "build.methods.9..3=sweep", "build.methods.\"9\"=swep", "build.a.b.c=1", "build.methods.1.2=x"],
        &format!(
            "--set build.stones.3=1: build.stones is not a table
             --set build.methods.9..3=sweep: \"build.methods.9..3\" is not a key {help}
             --set build.methods.\"9\"=swep: build.methods must be one of \"sweep\", \"counting\", not \"swep\" (did you mean \"sweep\"?)
             --set build.a.b.c=1: unknown key build.a (no key has a similar name)
             --set build.methods.1.2=x: build.methods has no keys below it"
        ),
    );
    check(
        text,
        &["build.memory=", "build.method=[1"],
        r#"
        --set build.memory=: build.memory must be a size, not "" (write "512 MiB" or "2 GiB", for example)
        --set build.method=[1: build.method must be one of "auto", "sweep", not "[1"
        "#,
    );
}

#[test]
fn the_resolved_manifest_reads_as_itself() {
    let manifest = good(
        "[build]\nstones = \"1..3\"\nmemory = 1234567\n[build.methods]\n\"2\" = \"sweep\"\n",
        &["run.dir=a \"b\"\\", "build.snapshot=90 s"],
    );
    let text = manifest.to_toml();
    let expect = r#"# What is solved.
[game]
# The rules.
rules = "toy"

# What is built.
# And how.
[build]
# Which databases.
stones = "1..3"
# The method.
method = "auto"
# Exceptions.
methods = { "2" = "sweep" }
# Memory.
memory = "1234567 B"
# Threads; 0 is all.
threads = 0
# Snapshots.
snapshot = "90 s"

# Where.
[run]
# The directory.
dir = "a \"b\"\\"
# Compare.
published = true
"#;
    assert_eq!(text, expect);
    let again = good(&text, &[]);
    assert_eq!(again.to_toml(), text);
    assert_eq!(again.digest(), manifest.digest());
    assert_ne!(good(&text, &["build.threads=1"]).digest(), manifest.digest());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "[\\[\\]a-z=\"'.#{}, \n0-9é-]{0,80}", key in ".{0,20}", value in ".{0,20}") {
        let overrides = [(key, value)];
        if let Err(found) = Manifest::parse(&text, "m.toml", &schema(), &overrides) {
            prop_assert!(!found.is_empty());
            lines(&found);
        }
    }

    #[test]
    fn any_change_to_a_manifest_is_survived(at in 0usize..400, with in ".{0,3}") {
        let mut text = good("[build]\nstones = 1\n", &[]).to_toml();
        let at = text.floor_char_boundary(at.min(text.len()));
        text.insert_str(at, &with);
        let _ = parse(&text, &[]);
    }
}
