//! Archives of databases, and their restoration.

use std::fs;
use tests::directory::TestDirectory;

#[test]
fn archives_restore_the_same_bytes() {
    for positions in ["all", "reachable"] {
        let place = TestDirectory::new(10);
        place.awari(&format!("run m.toml --set game.positions={positions} --set store.codec=zstd")).is(0);
        let made = place.awari("archive --dir run --out kept").is(0).out;
        assert_eq!(made.lines().filter(|line| line.contains(".archive written ")).count(), 11, "{made}");
        let again = place.awari("archive --dir run --out kept --threads 1").is(0).out;
        assert_eq!(again, made.replace(" written ", " identical "));
        let bytes = |name: &str| fs::read(place.path(name)).unwrap();
        assert!(bytes("kept/10.archive").len() < bytes("run/databases/10.awari").len());

        let next = "awari run MANIFEST --dir again";
        let restored = place.awari("restore --from kept --dir again").is(0).says(&[next]).out;
        // They are all there is to show.
        place.awari("status --dir again").is(0).shows(&["\ndatabases 0..10, ", next]);
        assert_eq!(restored.lines().filter(|line| line.contains(".awari written ")).count(), 11, "{restored}");
        for stones in 0..=10 {
            let name = format!("databases/{stones:02}.awari");
            assert!(bytes(&format!("run/{name}")) == bytes(&format!("again/{name}")), "{name}");
        }
        // Their codec is another than the one asked for, and a command without one asks for none.
        let there = place.awari("restore --from kept --dir again --codec raw").is(0);
        let there = there.says(&["databases 0..10 have the codec zstd and are kept"]);
        assert_eq!(there.out, restored.replace(" written ", " identical "));
        assert_eq!(place.awari("restore --from kept --dir again").is(0).err, "");
        // A run takes them as they are: nothing is solved again.
        let plan = place.awari(&format!("plan m.toml --dir again --set game.positions={positions}")).is(0).out;
        assert!(!plan.contains("sweep:"), "{plan}");
        place.awari("verify --dir again").is(0);
    }
}

/// Archives of other rules are restored, verified, and never mixed with databases of other rules.
#[test]
fn archives_keep_the_rules() {
    let place = TestDirectory::new(6);
    for rules in ["awari", "wari", "oware"] {
        place.awari(&format!("run m.toml --dir {rules} --set game.rules={rules} --set store.codec=zstd")).is(0);
        place.awari(&format!("archive --dir {rules} --out kept-{rules}")).is(0);
    }
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    for (rules, other) in [("wari", "oware"), ("oware", "awari"), ("oware", "wari"), ("awari", "oware")] {
        let dir = format!("{rules}-restored");
        place.awari(&format!("restore --from kept-{rules} --dir {dir}")).is(0);
        place.awari(&format!("verify --dir {dir} --certify")).is(0);
        for stones in 0..=6 {
            let name = format!("databases/{stones:02}.awari");
            assert!(bytes(&format!("{rules}/{name}")) == bytes(&format!("{dir}/{name}")), "{rules} {name}");
        }
        let plan = place.awari(&format!("plan m.toml --dir {dir} --set game.rules={rules}")).is(0).out;
        assert!(!plan.contains("sweep:"), "{plan}");
        // A build by other rules, built or restored files of others, an archive of others, and a database of others.
        for dir in [rules, &dir] {
            let made = place.files(&format!("{dir}/databases"));
            let run = place.awari(&format!("run m.toml --dir {dir} --set game.rules={other}"));
            run.is(15).says(&[&format!("are for rules {rules}, but the manifest asks for rules {other}")]);
            place.awari(&format!("restore --from kept-{other} --dir {dir}")).is(12).says(&["differs from the archive"]);
            assert_eq!(place.files(&format!("{dir}/databases")), made);
        }
        place.awari(&format!("archive --dir {rules} --out kept-{other}")).is(12).says(&["--force"]);
        let mixed = format!("{rules}-{other}");
        place.awari(&format!("restore --from kept-{rules} --dir {mixed} --stones 0..5")).is(0);
        fs::copy(
            place.path(&format!("{other}/databases/06.awari")),
            place.path(&format!("{mixed}/databases/06.awari")),
        )
        .unwrap();
        for command in ["probe --dir", "stats --dir"] {
            let position = if command.starts_with("probe") { "'1 1 1 0 0 0 1 0 0 0 0 0'" } else { "" };
            let refused = place.awari(&format!("{command} {mixed} {position}")).is(16);
            refused.says(&[&format!("has rules {other}"), &format!("has rules {rules}")]);
        }
    }
    // An archive of other rules among others.
    fs::copy(place.path("kept-wari/06.archive"), place.path("kept-oware/06.archive")).unwrap();
    let refused = place.awari("restore --from kept-oware --dir again");
    assert!(matches!(refused.code, Some(12 | 16)), "{refused:?}");
    assert!(refused.err.contains("kept-oware/06.archive") && refused.err.contains("rules wari"), "{}", refused.err);
    assert!(!place.path("again/databases/06.awari").exists());
}

#[test]
fn obstacles_to_archive_and_restore_are_named() {
    let place = TestDirectory::built(8);
    place.awari("archive --dir run --out kept").is(0);
    place.awari("restore --from kept --dir again --stones 8").is(3).says(&[
        "kept/08.archive needs again/databases/00.awari, which does not exist",
        "awari restore --from kept --dir again --stones 0..8",
    ]);
    place.awari("restore --from run --dir again").is(3);
    place.awari("archive --dir kept --out other").is(3);

    // Any byte of an archive that is not as it was written.
    let path = place.path("kept/08.archive");
    let sound = fs::read(&path).unwrap();
    place.awari("restore --from kept --dir again --stones 0..7").is(0);
    for at in (0..sound.len()).step_by(sound.len() / 9) {
        let mut struck = sound.clone();
        struck[at] ^= 0x10;
        fs::write(&path, &struck).unwrap();
        let ended = place.awari("restore --from kept --dir again --stones 8");
        assert!(matches!(ended.code, Some(12 | 16)), "byte {at}: {ended:?}");
        let is_damage = ended.err.contains("the archive kept/08.archive is damaged: ");
        assert!(!is_damage || ended.err.contains("awari archive --dir DIR --force --out kept"), "{}", ended.err);
        assert!(!ended.err.contains("awari run MANIFEST"), "{}", ended.err);
        assert!(!place.path("again/databases/08.awari").exists());
    }
    fs::write(&path, &sound).unwrap();
    place.awari("archive --dir run --out kept").is(0).shows(&["08.archive identical"]);

    // What stands in the place of a database or an archive is not replaced unasked.
    fs::write(place.path("again/databases/08.awari"), b"no database").unwrap();
    place.awari("restore --from kept --dir again --stones 8").is(12);
    fs::write(place.path("kept/07.archive"), b"no archive").unwrap();
    place.awari("archive --dir run --out kept").is(12).says(&["--force"]);
    place.awari("archive --dir run --out kept --force").is(0);
}
