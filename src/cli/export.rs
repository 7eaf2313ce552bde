//! `awari export`: databases in layouts that other programs read.

use crate::args::{ExportArgs, ExportFormat};
use crate::databases::{artifact, chosen, library, threads};
use crate::error::CliError;
use crate::output::{print, say};
use crate::signals;
use disk::{Disk, RealDisk};
use exchange::{ExchangeError, Format, Options};
use game::Index;
use oracle::LibraryFile;
use pipeline::Exit;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit, CliError> {
    let disk = RealDisk::default();
    let library = library(&disk, &args.databases.dir)?;
    let chosen = chosen(&library, &args.databases)?;
    // A file on its way has to be removed first.
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
        let scores = match library.files().get(&stones) {
            Some(LibraryFile::Sound(scores)) => scores,
            Some(LibraryFile::Damaged { what, .. }) => return Err(CliError::Damaged { what: what.clone() }),
            None => return Err(library.missing(stones).into()),
        };
        let index = Index::new(stones, library.set());
        let exported = threads.install(|| exchange::export(&disk, scores, &index, &args.out, &options));
        match exported {
            Ok(files) => {
                for file in files {
                    let what = if file.is_new { "written" } else { "identical" };
                    print(&format!("{} {what} {}\n", file.path.display(), file.bytes))?;
                }
            }
            Err(ExchangeError::Stopped) => {
                say(format_args!("stopped at {}; files written before it are complete", artifact(stones)));
                return Ok(Exit::Stopped);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Done)
}
