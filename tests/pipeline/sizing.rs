//! The table of the guide that says which databases fit which machine.

use game::PositionSet;
use indicatif::HumanCount;
use tests::directory::{TestDirectory, between};
use tests::{guide_table, root};

/// The greatest number of stones, the machine as the table names it, and the options of `plan` for it.
const ROWS: [(u32, &str, &str); 8] = [
    (16, "2 cores, 512 MiB", "--hardware reference --memory 512MiB"),
    (20, "2 cores, 1 GiB", "--hardware reference --memory 1GiB"),
    (24, "2 cores, 2 GiB", "--hardware reference --memory 2GiB"),
    (28, "2 cores, 4 GiB", "--hardware reference --memory 4GiB"),
    (32, "2 cores, 8 GiB", "--hardware reference --memory 8GiB"),
    (36, "16 cores, 48 GiB", "--hardware manifests/hardware/desktop.toml"),
    (44, "16 cores, 48 GiB", "--hardware manifests/hardware/desktop.toml"),
    (48, "32 cores, 1000 GiB", "--hardware manifests/hardware/server.toml"),
];

#[test]
fn the_table_of_machines_is_that_of_the_program() {
    let rows = ROWS.map(|(stones, machine, options)| {
        let place = TestDirectory::new(stones);
        let options = options.replace("manifests/", &format!("{}/manifests/", root().display()));
        let plan =
            place.awari(&format!("plan m.toml --set store.codec=zstd --set check.verify=sample {options}")).is(0).out;
        let total = plan.lines().find(|line| line.contains(" to run; about ")).expect("a line of all stages");
        let positions: u64 = (0..=stones).map(|stones| PositionSet::All.positions(stones)).sum();
        let [time, memory] = [("about ", ", at most "), ("at most ", " of memory")]
            .map(|(before, after)| between(total, before, after).to_owned());
        let (_, disk) = total.rsplit_once("and ").expect("the disk space comes last");
        let disk = disk.trim_end_matches(" of disk").to_owned();
        let millions = format!("{} million", HumanCount((positions + 500_000) / 1_000_000));
        vec![format!("0 to {stones}"), millions, machine.to_owned(), memory, disk, time]
    });
    let columns = ["stones", "positions", "machine", "memory taken", "disk, at most", "time"];
    let tables = [("machines", guide_table::markdown(&columns, rows))];
    for chapter in ["docs/sizing.md", "README.md"] {
        guide_table::check(chapter, "pipeline sizing", &tables);
    }
}
