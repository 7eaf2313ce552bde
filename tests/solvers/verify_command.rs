//! `awari verify`: rebuilding by another method, and certificates.

use disk::{Digest, RealDisk};
use game::notation::PositionText;
use game::{Index, Orientation, PositionSet, Score};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tests::claims::{ClaimOutcome, Claims};
use tests::directory::{CommandResult, TestDirectory, ended_child, signal};
use tests::equations::Equations;
use tests::hostile::seal_scores;
use tests::stored_scores::StoredScores;

const METHODS: [&str; 5] = ["sweep", "counting", "two-bit", "one-bit", "one-bit-dual"];

/// A directory with databases in `run`.
struct VerifiedRun(TestDirectory);

impl VerifiedRun {
    fn built(stones: u32, set: PositionSet) -> VerifiedRun {
        let run = VerifiedRun(TestDirectory::new(stones));
        run.0.manifest(&format!(
            "[game]\npositions = \"{set}\"\n[build]\nstones = \"0..{stones}\"\nmemory = \"256 MiB\"\nthreads = 2\n\
             [run]\ndir = \"run\"\n"
        ));
        run.awari("run m.toml").is(0);
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn command(&self, line: &str) -> Command {
        self.0.command(line)
    }

    fn awari(&self, line: &str) -> CommandResult {
        self.0.awari(line)
    }

    fn verify(&self, more: &str) -> CommandResult {
        self.awari(&format!("verify --dir run {more}"))
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(&self, stones: u32) -> StoredScores {
        StoredScores::read(&RealDisk::default(), &self.database(stones)).unwrap()
    }

    fn scores(&self, stones: u32) -> Vec<Score> {
        self.read(stones).scores
    }

    /// Puts a sound file with other scores in place of a database.
    fn plant(&self, stones: u32, scores: &[Score]) {
        let file = StoredScores { scores: scores.to_vec(), ..self.read(stones) };
        file.write(&RealDisk::default(), &self.database(stones));
    }

    /// Plants a file whose footer has the digest of the right scores.
    fn forge(&self, stones: u32, scores: &[Score]) {
        const FOOTER_BYTES: usize = 72;
        let path = self.database(stones);
        let digest = Digest::of_i8(&self.scores(stones));
        self.plant(stones, scores);
        let mut bytes = fs::read(&path).unwrap();
        let footer = bytes.len() - FOOTER_BYTES;
        bytes[footer..footer + digest.0.len()].copy_from_slice(&digest.0);
        seal_scores(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    fn database(&self, stones: u32) -> PathBuf {
        self.path(&format!("run/databases/{stones:02}.awari"))
    }

    /// Databases 0 to `stones`.
    fn all_scores(&self, stones: u32) -> Vec<Vec<Score>> {
        (0..=stones).map(|stones| self.scores(stones)).collect()
    }
}

fn every(stones: u32, status: &str) -> Vec<(u32, &str)> {
    (0..=stones).map(|stones| (stones, status)).collect()
}

#[test]
#[ignore = "slow tier: every method twice"]
fn every_method_rebuilds_the_same_scores() {
    for set in [PositionSet::All, PositionSet::REACHABLE] {
        let place = VerifiedRun::built(6, set);
        let names = place.names("run");
        for method in METHODS {
            let verified = place.verify(&format!("--against {method}")).is(0).prints(&every(6, "rebuilt"));
            let again = verified.says(&[&format!("{method} makes the same scores, digest "), "all checks passed"]);
            let alike = again.err.contains("databases 0..6 were built by sweep or a similar method");
            assert_eq!(alike, method == "sweep", "{}", again.err);
            assert_eq!(place.names("run"), names, "the rebuilt databases are removed");
        }
        let journal = String::from_utf8_lossy(&fs::read(place.path("run/journal")).unwrap()).into_owned();
        assert!(journal.contains("its content digest, rebuilt by one-bit-dual"), "{journal}");
        place.awari("plan m.toml --check").is(0);
    }
}

#[test]
fn checks_combine() {
    let place = VerifiedRun::built(5, PositionSet::All);
    let both = place.verify("--against counting --certify").is(0).prints(&every(5, "certified"));
    both.says(&["wins and losses derived", "counting makes the same scores"]);
    let sampled = place.verify("--against counting --sample 1000 --stones 4..5").is(0);
    sampled.prints(&[(4, "rebuilt"), (5, "rebuilt")]);
    // A certificate is a proof on top of proved databases only.
    let gap = place.verify("--certify --stones 4..5").is(0).prints(&[(4, "verified"), (5, "verified")]);
    gap.says(&["a proof only with certified databases 0..2"]);
    place.verify("--against counted").is(2).says(&["counting"]);
    place.verify("--scratch elsewhere").is(2).says(&["--against"]);
    place.verify("--seed 3").is(2).says(&["--sample"]);
}

#[test]
fn wrong_scores_are_named_recorded_and_repaired() {
    let place = VerifiedRun::built(7, PositionSet::All);
    let right = place.scores(6);
    let index = Index::new(6, PositionSet::All);
    let position = right.iter().rposition(|&score| score == 4).unwrap();
    let mut wrong = right.clone();
    wrong[position] = -2;
    place.plant(6, &wrong);
    let text = PositionText::of_board(index.unrank(position as u64, Orientation::OpponentMajor));
    let found = place.verify("--against two-bit --stones 5..7").is(16);
    let found = found.prints(&[(5, "rebuilt"), (6, "wrong"), (7, "rebuilt")]);
    found.says(&[
        &format!("two-bit scores 1 position differently: position {text}: expected 4, found -2"),
        "recorded in the journal; the next run rebuilds it",
        "stones 6: damaged or wrong",
    ]);
    place.awari("plan m.toml --check").is(10);
    place.awari("run m.toml").is(0);
    assert!(place.scores(6) == right);
    place.verify("--against two-bit").is(0);
}

/// Wrong captures with right checksums, which a run adopts: they lead to impossible scores, and are rebuilt.
#[test]
fn wrong_captures_are_rebuilt() {
    for (method, stones) in [("sweep", 6), ("counting", 6)] {
        let place = VerifiedRun::built(stones, PositionSet::All);
        let right = fs::read(place.database(stones)).unwrap();
        let more = format!("run m.toml --set store.keep=all --set build.method={method}");
        place.awari(&more).is(0);
        let path = place.path("run/captures/06.cap");
        let mut file = StoredScores::read(&RealDisk::default(), &path).unwrap();
        file.scores.fill(file.range.low());
        file.write(&RealDisk::default(), &path);
        fs::remove_file(place.path("run/journal")).unwrap();
        fs::remove_file(place.database(stones)).unwrap();
        let ended = place.awari(&more).is(16);
        assert!(!ended.err.contains("bug in awari"), "{ended:?}");
        // Verification finds possible but wrong scores, and their inputs are rebuilt.
        let mut again = 0;
        while place.awari(&more).code != Some(0) {
            again += 1;
            assert!(again < 3, "{method} never gets done");
        }
        assert!(fs::read(place.database(stones)).unwrap() == right, "{method}");
        place.verify("").is(0);
    }
}

/// Wrong scores with right checksums, found after larger databases were built from them.
#[test]
fn databases_above_wrong_scores_are_rebuilt() {
    let place = VerifiedRun::built(6, PositionSet::All);
    let mut scores = place.scores(5);
    scores.iter_mut().filter(|score| **score == 1).for_each(|score| *score = -1);
    place.forge(5, &scores);
    // Published counts would tell.
    let more = "m.toml --set build.stones=0..8 --set check.published=false";
    let run = format!("run {more}");
    place.awari(&run).is(0);
    let wrong = place.all_scores(8);
    let verified = place.verify("--stones 5").is(16);
    let verified = verified.says(&["recorded in the journal; the next run rebuilds it"]);
    verified.says(&[
        "made from databases/05.awari since it was last known to be good, at 20",
        "databases/07.awari",
        "databases/08.awari",
        "stats/08.json",
    ]);
    let why = "databases/08.awari was made from databases/05.awari, which was found wrong 20";
    place.awari(&format!("plan {more}")).is(0).shows(&[why]);
    place.awari(&format!("explain {more} sweep:8")).is(0).shows(&[why, "made from databases/05.awari", "last good 20"]);
    place.awari(&format!("{run} --frozen")).is(15).says(&["databases/07.awari was made from"]);
    place.awari(&run).is(0);
    let right = VerifiedRun::built(8, PositionSet::All);
    assert_ne!(wrong[8], right.scores(8));
    for stones in 0..=8 {
        assert_eq!(fs::read(place.database(stones)).unwrap(), fs::read(right.database(stones)).unwrap(), "{stones}");
    }
    place.awari(&run).is(0).says(&["nothing to do"]);
    place.verify("").is(0);
}

/// Wrong scores with right checksums below make each larger database wrong again, however often it is rebuilt.
#[test]
fn a_wrong_database_below_is_suspected_and_found() {
    let place = VerifiedRun::built(6, PositionSet::All);
    let mut scores = place.scores(5);
    scores.iter_mut().filter(|score| **score == 1).for_each(|score| *score = -1);
    place.forge(5, &scores);
    let run = "run m.toml --set build.stones=0..8";
    // Databases 7 and 8 may be checked side by side, so either is found first; a database that is wrong again
    // was found before.
    place.awari(run).is(16).says(&["is damaged", "the next run rebuilds it"]);
    let again = (0..3).map(|_| place.awari(run).is(16)).find(|run| run.err.contains("made again from the same files"));
    again.expect("some database is wrong twice").says(&["databases/05.awari", "awari verify --dir run"]);
    place.verify("").is(16).says(&["databases/05.awari"]);
    place.awari(run).is(0);
    let right = VerifiedRun::built(8, PositionSet::All);
    for stones in 0..=8 {
        assert_eq!(fs::read(place.database(stones)).unwrap(), fs::read(right.database(stones)).unwrap(), "{stones}");
    }
    place.verify("").is(0);
}

#[test]
fn consistent_but_wrong_databases_are_refused() {
    for stones in [2, 3, 4] {
        let place = VerifiedRun::built(stones, PositionSet::REACHABLE);
        let right = place.all_scores(stones);
        let equations = Equations::new(PositionSet::REACHABLE, stones, &right);
        let least = &right[stones as usize];
        let extremes = equations.extremes();
        let mut claims = Claims::new(&equations, &extremes, least, 2);
        let ClaimOutcome::Found(wrong) = claims.search(claims.seeds()[0], 100) else { panic!("there are others") };
        place.plant(stones, &wrong);
        place.verify("").is(0).prints(&every(stones, "verified"));
        for (proof, passed) in [("--certify", "certified"), ("--against counting", "rebuilt")] {
            let refused = place.verify(proof).is(16);
            let mut statuses = every(stones - 1, passed);
            statuses.push((stones, "wrong"));
            refused.prints(&statuses);
        }
    }
}

#[test]
fn databases_alone_suffice() {
    let place = VerifiedRun::built(7, PositionSet::REACHABLE);
    fs::create_dir(place.path("copy")).unwrap();
    fs::rename(place.path("run/databases"), place.path("copy/databases")).unwrap();
    let verify = |more: &str| place.awari(&format!("verify --dir copy --against one-bit {more}"));
    verify("").is(0).prints(&every(7, "rebuilt"));
    verify("--stones 3 --threads 1").is(0).prints(&[(3, "rebuilt")]);
    assert_eq!(place.names("copy"), ["databases"]);
    // Nothing that is rebuilt comes from the directory, so neither need the smaller ones be there.
    for stones in 0..7 {
        fs::remove_file(place.path(&format!("copy/databases/{stones:02}.awari"))).unwrap();
    }
    let alone = verify("--stones 6..7").is(3).prints(&[(6, "missing"), (7, "rebuilt")]);
    alone.says(&["databases/00.awari is missing", "one-bit makes the same scores"]);
    verify("").is(0).prints(&[(7, "rebuilt")]);
    // A damaged one is not compared, nor is anything rebuilt for it.
    let path = place.path("copy/databases/07.awari");
    let mut bytes = fs::read(&path).unwrap();
    bytes[10] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = verify("").is(16).prints(&[(7, "damaged")]);
    assert!(!damaged.err.contains("rebuilding 0..7"), "{}", damaged.err);
}

#[test]
fn missing_finished_databases_are_named() {
    let place = VerifiedRun::built(6, PositionSet::All);
    let bytes = fs::read(place.database(6)).unwrap();
    let gone = |stones: u32| fs::remove_file(place.database(stones)).unwrap();
    let again = |stones: &str| format!("stones {stones}: finished according to the journal, but missing; to rebuild");
    gone(6);
    let last = place.verify("").is(16).prints(&[&every(5, "verified")[..], &[(6, "missing")]].concat());
    last.says(&["no such file: databases/06.awari", &again("6"), "awari run run/manifest.toml --dir run"]);
    // Only those that are asked for count.
    place.verify("--stones 0..5").is(0).prints(&every(5, "verified"));
    place.verify("--stones 6").is(16).prints(&[(6, "missing")]).says(&[&again("6")]);
    place.verify("--stones 5..7").is(16).prints(&[(5, "verified"), (6, "missing"), (7, "missing")]);
    place.verify("--stones 7").is(3);
    // A directory in place of the file.
    fs::create_dir(place.database(6)).unwrap();
    place.verify("").is(16).says(&["06.awari: it is not a regular file; move it away", &again("6")]);
    fs::remove_dir(place.database(6)).unwrap();
    // One that is needed by others.
    gone(3);
    let gap = place.verify("--stones 2..5").is(16).says(&[&again("3")]);
    gap.prints(&[(2, "verified"), (3, "missing"), (4, "verified"), (5, "unchecked")]);
    for stones in [0, 1, 2, 4, 5] {
        gone(stones);
    }
    place.verify("").is(16).prints(&every(6, "missing")).says(&[&again("0..6")]);
    place.awari("run m.toml").is(0);
    assert!(fs::read(place.database(6)).unwrap() == bytes);
    place.verify("").is(0).prints(&every(6, "verified"));
    // A database that awari removed is not missing.
    place.awari("run m.toml --set build.stones=0..5").is(0);
    place.awari("gc --dir run --unasked --delete").is(0);
    place.verify("").is(0).prints(&every(5, "verified"));
    // Without a journal, none is missing.
    gone(5);
    fs::remove_file(place.path("run/journal")).unwrap();
    place.verify("").is(0).prints(&every(4, "verified"));
}

#[test]
fn scratch_space_can_be_elsewhere() {
    let place = VerifiedRun::built(4, PositionSet::All);
    fs::create_dir(place.path("elsewhere")).unwrap();
    let rebuilt = place.verify("--against counting --scratch elsewhere").is(0);
    rebuilt.prints(&every(4, "rebuilt")).says(&["rebuilding 0..4 by counting in elsewhere/against-"]);
    assert!(place.names("elsewhere").is_empty());
    let anew = place.verify("--against counting --scratch fresh").is(0);
    assert!(anew.err.contains("fresh/against-") && !place.path("fresh").exists(), "{anew:?}");
    place.verify("--against counting --scratch m.toml").is(12).says(&["m.toml"]);
}

#[test]
fn free_space_is_checked_first() {
    let place = VerifiedRun::built(4, PositionSet::All);
    let names = place.names("run");
    // Each database is reported once, unless progress is asked for.
    let quiet = place.verify("--against counting").is(0);
    assert_eq!(quiet.err.matches("against-").count(), 1, "{}", quiet.err);
    let plain = place.verify("--against counting --progress plain").is(0);
    assert!(plain.err.matches("to run").count() > 3, "{}", plain.err);
    place.verify("--progress none").is(2).says(&["--against"]);
    let short = "--against counting --threads 16 --memory '48 MiB'";
    let refused = place.verify(short).is(12).says(&["of memory, the budget is 48 MiB"]);
    assert_eq!(refused.out, "", "nothing was verified");
    assert_eq!(place.names("run"), names);
    place.verify("--against counting --memory '1 MiB'").is(2).says(&["must be at least 48 MiB"]);
}

#[test]
fn a_signal_leaves_no_scratch_files() {
    let place = VerifiedRun::built(11, PositionSet::All);
    let names = place.names("run");
    let mut command = place.command("verify --dir run --against counting --threads 1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("  8  75,582 positions: ") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "it ended before");
    }
    signal(&child, "INT");
    let mut told = String::new();
    err.read_to_string(&mut told).unwrap();
    let out = ended_child(child).is(75).out;
    assert!(told.contains("stopped on request; the rebuild was removed, and the same command starts over"), "{told}");
    assert!(out.ends_with("8,rebuilt\n"), "{out}");
    assert_eq!(place.names("run"), names);
}
