//! Unreadable sectors on a real file system: the backing file of a loop device is cut, so that reads of some
//! blocks of a database fail (EIO). Part of the slow tier.
//!
//! cargo test -p tests --test hostile unreadable -- --ignored --nocapture

use std::fs;
use std::process::Command;
use tests::directory::{CommandResult, TestDirectory};
use tests::needs::Need;
use tests::serve_process::ServeProcess;

/// Variable set in a child with a mount namespace of its own, whose mounts and loop devices disappear when it ends.
const INSIDE: &str = "AWARI_TEST_OWN_MOUNTS";

const NAME: &str = "unreadable_sectors::unreadable_databases_are_named_and_rebuilt";

/// The largest database has 705,432 positions, raw a byte each.
const STONES: u32 = 11;
const DATABASE: &str = "run/databases/11.awari";

/// Mounts a new file system of 48 MiB at `run/databases`, the blocks of which are used as they come.
const MOUNT: &str = "set -e; mkdir -p run/databases; if mountpoint -q run/databases; then umount run/databases; fi
    rm -f image; truncate -s 48M image
    mkfs.ext4 -q -F -b 4096 -m 0 -O ^has_journal image
    mount -o loop image run/databases
    echo 0 > /sys/fs/ext4/$(basename $(findmnt -no SOURCE run/databases))/reserved_clusters";

/// Moves a third of the file to blocks behind those of all others, and cuts the device there. The third is a
/// hole first; everything else that is free is filled, so that only the blocks of `high` are left for it.
const CUT: &str = "set -e; cd run/databases; file=11.awari; cp $file ../whole; third=$(($(stat -c %s $file) / 4096 / 3))
    fallocate -l 20M low; head -c 2M /dev/zero > high; sync
    fallocate -p -o $((third*4096)) -l $((third*4096)) $file; sync
    ! dd if=/dev/zero of=fill bs=4096 status=none 2>/dev/null
    sync; rm high; sync
    dd if=../whole of=$file bs=4096 skip=$third seek=$third count=$third conv=notrunc status=none; sync; rm fill low; sync
    cmp ../whole $file
    start=$(filefrag -v -b4096 $file | awk -F'[ :.]+' -v third=$third '$3==third{print $5}'); test -n \"$start\"
    end=$(for one in *.awari; do filefrag -v -b4096 $one; done | awk -F'[ :.]+' -v start=$start \
        '$2 ~ /^[0-9]+$/ && $5 > most && $5 != start {most = $5} END {print most}'); test $end -lt $start
    dd if=$file iflag=nocache count=0 status=none
    truncate -s $((start*4096)) ../../image
    ! dd if=$file of=/dev/null bs=4096 skip=$((third+third/2)) count=1 status=none 2>/dev/null";

#[test]
#[ignore = "slow tier: needs root and loop devices"]
fn unreadable_databases_are_named_and_rebuilt() {
    if std::env::var_os(INSIDE).is_some() {
        return ["raw", "rans"].into_iter().for_each(commands);
    }
    if !Need::LoopDevice.is_met() {
        return;
    }
    let mut child = Command::new("unshare");
    child.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().unwrap());
    let child = child.args(["--ignored", "--exact", NAME, "--nocapture"]).env(INSIDE, "1");
    assert!(child.status().unwrap().success(), "see above");
}

/// Asserts that a command reports the unreadable database.
#[track_caller]
fn refused(ended: CommandResult) -> CommandResult {
    assert!(matches!(ended.code, Some(12 | 16)), "{ended:?}");
    ended.says(&["11.awari", "Input/output error"])
}

fn commands(codec: &str) {
    let place = TestDirectory::new(STONES);
    place.shell(MOUNT).is(0);
    let run = format!("run m.toml --set store.codec={codec}");
    place.awari(&run).is(0);
    let positions: Vec<String> = positions().collect();
    let probe = |position: &str| place.awari(&format!("probe --dir run --json '{position}'"));
    let right: Vec<String> = positions.iter().map(|position| probe(position).is(0).out).collect();
    let bytes = fs::read(place.path(DATABASE)).unwrap();
    place.shell(CUT).is(0);

    let mut unread = Vec::new();
    for (position, right) in positions.iter().zip(&right) {
        match probe(position) {
            ended if ended.code == Some(0) => assert_eq!(&ended.out, right),
            ended => {
                refused(ended);
                unread.push(position);
            }
        }
    }
    let server = ServeProcess::start(&place);
    let ask = |position: &str| server.request(&format!("/v1/probe?pos={}", position.replace(' ', "+")));
    // Of others, only the line of best moves cannot be read.
    let unread = unread.into_iter().find(|position| ask(position).0 != 200);
    let unread = unread.expect("one of the positions is in the part that cannot be read");
    let fen = format!("[FEN \"{}-18-19-S\"]", unread.replace(' ', "-"));
    for _ in 0..3 {
        let (status, body) = ask(unread);
        assert!(status == 503 && body.contains("\"unreadable\""), "{status} {body}");
        assert_eq!(ask("1 1 1 1 0 1 1 0 1 1 1 0").0, 200);
    }
    drop(server);
    // Games go on without it.
    let played = place.awari(&format!("play --dir run --position '{unread}' --side none")).is(0);
    played.says(&["11.awari", "Input/output error", "do without it"]);
    let position = unread.replace(' ', "-");
    let engine = format!("printf 'position fen {position}-18-19-S\\ngo nodes 1000\\n' | $AWARI engine --dir run");
    let replied = place.shell(&engine).is(0).out;
    assert!(replied.contains("11.awari: Input/output error") && replied.contains("bestmove "), "{replied}");
    let pit = unread.split(' ').zip('A'..='F').find(|(stones, _)| *stones != "0").unwrap().1;
    refused(place.shell(&format!("printf '{fen} {pit}' | $AWARI analyze --dir run -")));
    refused(place.awari("export --dir run --format raw --out out"));
    refused(place.awari("archive --dir run --out kept"));
    fs::remove_dir_all(place.path("run/stats")).unwrap();
    refused(place.awari("stats --dir run"));

    // A run that reads it finds that it cannot be read again either, and the next one makes it again.
    let more = format!("{run} --set build.stones=0..13");
    refused(place.awari(&more)).is(16).says(&["the next run rebuilds it"]);
    place.awari(&more).is(0);
    assert!(fs::read(place.path(DATABASE)).unwrap() == bytes);

    // So does verify.
    place.shell(MOUNT).is(0);
    place.awari(&run).is(0);
    place.shell(CUT).is(0);
    refused(place.awari("verify --dir run")).is(16).says(&["the next run rebuilds it"]);
    place.awari(&run).is(0);
    assert!(fs::read(place.path(DATABASE)).unwrap() == bytes);
    // The journal knows of larger ones, which went with the file system that was mounted before.
    place.awari("verify --dir run --stones 0..11").is(0);
}

/// Positions of the largest database, from its beginning to its end.
fn positions() -> impl Iterator<Item = String> {
    (0..=11u32).flat_map(|mover| {
        let half = |stones: u32, spread: u32| {
            let pits: Vec<String> = (0..6).map(|pit| ((stones + (pit * spread) % 6) / 6).to_string()).collect();
            pits.join(" ")
        };
        [1, 5].map(|spread| format!("{} {}", half(mover, spread), half(11 - mover, spread)))
    })
}
