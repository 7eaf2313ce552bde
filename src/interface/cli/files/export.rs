//! `awari export`: writes databases in formats that other programs read.

use crate::args::{ExportArgs, ExportFormat};
use crate::error::Result;
use crate::files::databases::{chosen, library, report, sound, stopped_at, threads};
use crate::signals;
use disk::{Disk, RealDisk};
use exchange::{ExchangeError, Format, Options};
use game::Index;
use pipeline::Exit;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let disk = RealDisk::default();
    let library = library(&disk, &args.databases.dir)?;
    let chosen = chosen(&library, &args.databases)?;
    // A stop removes the unfinished file.
    let stop = signals::stop_flag()?;
    let options = Options {
        format: match args.format {
            ExportFormat::Raw => Format::Raw,
            ExportFormat::Csv => Format::Csv,
            ExportFormat::Parquet => Format::Parquet,
            ExportFormat::Vu => Format::Vu,
        },
        force: args.force,
        memory_bytes: args.memory.bytes(),
        stop: &stop,
    };
    disk.create_dir(&args.out)?;
    let threads = threads(args.databases.threads)?;
    for stones in chosen {
        let scores = sound(&library, stones)?;
        let index = Index::new(stones, library.set());
        let exported = threads.install(|| exchange::export(&disk, scores, &index, &args.out, &options));
        match exported {
            Ok(files) => files.iter().try_for_each(report)?,
            Err(ExchangeError::Stopped) => return Ok(stopped_at(stones)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}
