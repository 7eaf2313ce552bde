//! Runs that fail: at any disk operation, for want of space, memory or permission.

use crate::budget::Budget;
use crate::exit::Exit;
use crate::orchestrator::tests::{reference, toy};
use crate::orchestrator::{Orchestrator, RunOptions};
use crate::toy::{Bench, DIRECTORY, Design, Toy};
use disk::{Disk, Fault, MemoryDisk, Operation, OperationSet, PlannedFault};
use std::path::Path;

/// Two databases, one built on the other: there is a run for each operation.
fn small() -> Toy {
    Design { last: 1, ..Design::default() }.toy()
}

/// Runs with a fault at each operation in turn, and then without faults to the end.
fn interrupt(inject: impl Fn(&MemoryDisk, u64), recover: impl Fn(&MemoryDisk)) {
    interrupt_stages(1, inject, recover);
}

/// As [`interrupt`], with several stages at a time.
fn interrupt_stages(at_a_time: usize, inject: impl Fn(&MemoryDisk, u64), recover: impl Fn(&MemoryDisk)) {
    let bench = Bench::with_stages(at_a_time);
    bench.run(&small()).unwrap();
    let (expect, operations) = (bench.files(), bench.disk.operations());
    assert!(operations > 100);
    for k in 0..operations {
        let bench = Bench::with_stages(at_a_time);
        inject(&bench.disk, k);
        let failed = bench.run(&small());
        if let Err(error) = failed {
            let exit = error.exit();
            assert!(matches!(exit, Exit::StageFailed | Exit::PreflightFailed), "{k}: {error}");
        }
        recover(&bench.disk);
        let half = bench.files();
        for (name, bytes) in &half {
            let is_whole = expect.get(name).is_none_or(|expect| expect == bytes);
            assert!(is_whole || name.contains("/."), "{name} is half written after {k}");
        }
        bench.disk.fail_never();
        bench.run(&small()).unwrap();
        assert_eq!(bench.files(), expect, "operation {k}");
        assert_eq!(bench.steps(&small()), "");
    }
}

#[test]
fn a_run_survives_one_failed_operation() {
    interrupt(|disk, k| disk.fail_at(k, Fault::Io), |_| {});
}

#[test]
fn stages_side_by_side_survive_failed_operations_and_kills() {
    interrupt_stages(3, |disk, k| disk.fail_at(k, Fault::Io), |_| {});
    interrupt_stages(3, |disk, k| disk.fail_from(k, Fault::Io), MemoryDisk::crash);
}

#[test]
fn a_run_survives_power_loss_at_every_operation() {
    interrupt(|disk, k| disk.fail_from(k, Fault::Io), MemoryDisk::crash);
    interrupt(|disk, k| disk.fail_from(k, Fault::Io), |disk| disk.crash_torn(7));
}

#[test]
fn a_run_survives_a_kill_at_every_operation() {
    // What was written stays, durable or not.
    interrupt(|disk, k| disk.fail_from(k, Fault::Io), |_| {});
}

/// A killed run may leave a file whose name is not durable. The next run adopts it and removes its sources.
#[test]
fn finished_work_survives_a_kill_and_a_later_power_loss() {
    let bench = Bench::default();
    bench.run(&small()).unwrap();
    for k in 0..bench.disk.operations() {
        let bench = Bench::default();
        bench.disk.fail_from(k, Fault::Io);
        let _ = bench.run(&small());
        bench.disk.fail_never();
        bench.run(&small()).unwrap();
        bench.disk.crash();
        let again = bench.steps(&small());
        assert!(!again.contains("capture") && !again.contains("solve"), "operation {k}: {again}");
    }
}

#[test]
fn a_full_disk_is_reported_and_leaves_only_whole_files() {
    interrupt(|disk, k| disk.fail_from(k, Fault::NoSpace), |_| {});
    let mut first = Bench::default();
    first.options.until = Some("capture:1".to_owned());
    first.run(&toy()).unwrap();
    let operations = first.disk.operations();
    let bench = Bench::default();
    bench.disk.fail_from(operations + 3, Fault::NoSpace);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::StageFailed);
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(error.to_string().contains("the same command resumes"), "{error}");
}

#[test]
fn a_finished_build_can_be_run_where_nothing_can_be_written() {
    let bench = Bench::default();
    bench.run(&small()).unwrap();
    let read_only =
        PlannedFault { among: OperationSet::Kind(Operation::Lock), first: 0, count: u64::MAX, fault: Fault::ReadOnly };
    bench.disk.fail(read_only);
    let done = bench.run(&small()).unwrap();
    assert!(done.ran.is_empty() && done.plan.steps.is_empty());
    // With something to do, it is refused.
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert!(error.to_string().contains("the file system is read-only"), "{error}");
}

/// From some read on, no database can be read: the run names the damaged one, and the next run, on a working
/// disk, rebuilds it. A read that fails once costs no database.
#[test]
fn a_file_that_cannot_be_read_twice_is_damaged() {
    let expect = reference();
    let mut damaged = 0;
    for first in 0..30 {
        for count in [1, u64::MAX] {
            let bench = Bench::default();
            let among = OperationSet::Below(Operation::Read, "databases");
            bench.disk.fail(PlannedFault { among, first, count, fault: Fault::Unreadable });
            let ended = bench.run(&toy());
            bench.disk.fail_never();
            let text = ended.as_ref().err().map(ToString::to_string).unwrap_or_default();
            match ended.as_ref().map_or_else(|error| error.exit(), |summary| summary.exit()) {
                Exit::Done => {}
                Exit::StageFailed => assert!(count == 1 && text.contains("cannot read"), "{first}: {text}"),
                Exit::Integrity => {
                    assert!(
                        count > 1 && text.contains("cannot read") && text.contains("next run rebuilds it"),
                        "{text}"
                    );
                    damaged += 1;
                }
                other => panic!("{first}, {count}: {other:?}, {text}"),
            }
            let toy = toy();
            bench.run(&toy).unwrap();
            let again = toy.take_log();
            assert!(!text.contains("next run rebuilds it") || again.iter().any(|stage| stage.starts_with("solve")));
            assert_eq!(bench.files(), expect);
        }
    }
    assert!(damaged > 3, "{damaged}");
}

#[test]
fn a_read_only_directory_is_reported() {
    let bench = Bench::default();
    bench.disk.fail_from(0, Fault::ReadOnly);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert!(error.to_string().contains("read-only"), "{error}");
    assert!(bench.disk.paths().is_empty());
}

#[test]
fn preflight_refuses_before_anything_is_written() {
    let mut bench = Bench::default();
    bench.options.memory = Budget::new(99);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    let expect = "capture:0 needs 100 B of memory, the budget is 99 B";
    assert!(error.to_string().starts_with(expect), "{error}");
    assert!(bench.files().is_empty());

    let bench = Bench::default();
    bench.disk.set_bytes_max(2000);
    let error = bench.run(&toy()).unwrap_err();
    assert_eq!(error.exit(), Exit::PreflightFailed);
    assert!(error.to_string().contains("need 2.05 KiB of disk space"), "{error}");
}

/// A started run needs space for its next stage, and a new run for all. What its scratch files take is as good as free.
#[test]
fn a_started_run_needs_space_for_its_next_stage() {
    let ends = [(0, 900, Exit::PreflightFailed), (0, 2_000, Exit::Done), (1_100, 900, Exit::Done)];
    for (scratch_bytes, free, exit) in ends {
        let bench = Bench::default();
        let scratch = bench.disk.scratch(&Path::new(DIRECTORY).join("plane"), scratch_bytes).unwrap();
        let (filled, emptied) = (bench.disk.clone(), bench.disk.clone());
        let mut filling = toy();
        filling.exchange_after =
            Some(("stats:0".to_owned(), Box::new(move || filled.fill_at(filled.operations(), free))));
        let stage = move || {
            assert_eq!(emptied.scratch_bytes(Path::new(DIRECTORY)), scratch_bytes);
            emptied.make_room();
        };
        filling.exchange_in = Some(("capture:1".to_owned(), Box::new(stage)));
        let outcome = bench.run(&filling);
        let found = outcome.as_ref().map_or_else(|error| error.exit(), |summary| summary.exit());
        assert_eq!(found, exit, "{free} bytes: {outcome:?}");
        if let Err(error) = outcome {
            let expect = "capture:1 needs 1000 B of disk space, ";
            assert!(error.to_string().starts_with(expect), "{error}");
        }
        drop(scratch);
        // What a new run needs is more than either.
        let bench = Bench::default();
        bench.disk.fill_at(0, free);
        assert_eq!(bench.run(&toy()).unwrap_err().exit(), Exit::PreflightFailed, "{free} bytes");
    }
}

/// A quota forbids the use of free space: the run fails before its first stage, and leaves nothing.
#[test]
fn a_quota_is_found_before_the_first_stage() {
    let toy = toy();
    let undisturbed = MemoryDisk::new();
    Orchestrator::new(&undisturbed, Path::new(DIRECTORY), &toy, RunOptions::default()).run().unwrap();
    let mut refused = 0;
    for operation in 0..undisturbed.operations() {
        let disk = MemoryDisk::new();
        disk.fail_at(operation, Fault::NoSpace);
        let orchestrator = Orchestrator::new(&disk, Path::new(DIRECTORY), &toy, RunOptions::default());
        if let Err(error) = orchestrator.run()
            && error.to_string().contains("of disk space in /run, although")
        {
            refused += 1;
            assert_eq!(error.exit(), Exit::PreflightFailed);
            // Where even the removal fails, the next run removes it.
            let left: Vec<_> = disk.paths().into_iter().filter(|path| !disk::is_leftover(path)).collect();
            assert_eq!(left, [Path::new(DIRECTORY).join("lock")]);
        }
    }
    // Making the file, reserving, writing and syncing it.
    assert!(refused >= 3, "{refused}");
}
