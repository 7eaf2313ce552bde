//! `awari book export`, `stats` and `diagram`.

use super::{expand, is_book_first, open};
use crate::args::{BookDiagramArgs, BookFileArgs, BookPicture, DiagramFormat};
use crate::error::Result;
use crate::output::print;
use crate::text::quantity::{grouped, plural};
use crate::text::screen::Width;
use crate::text::table::TextTable;
use book::book_ends;
use pipeline::Exit;

pub(crate) fn export(args: &BookFileArgs) -> Result<Exit> {
    let (_, book) = open(args)?;
    print(&book.export())?;
    Ok(Exit::Done)
}

pub(crate) fn stats(args: &BookFileArgs) -> Result<Exit> {
    let (file, book) = open(args)?;
    let headings = ["depth", "nodes", "solved", "predecessors", "degree", "expanded"];
    let mut table = TextTable::new(&headings).numbers(0..headings.len());
    for row in book.depth_table() {
        let counts = [row.nodes, row.solved, row.predecessors].map(grouped);
        let [nodes, solved, predecessors] = counts;
        let degree = format!("{:.2}", row.degree());
        table.add_row([row.depth.to_string(), nodes, solved, predecessors, degree, grouped(row.expanded)]);
    }
    print(&format!("{}\n\n{}\n", table.fit(Width::stdout()), expand::line(&book)))?;
    let totals = book.totals();
    if totals.detached > 0 {
        print(&format!("{} detached by databases that were added\n", plural(totals.detached as u64, "position")))?;
    }
    for (engine, results) in file.engines()? {
        let (version, limits, databases) = (engine.version, engine.limits, engine.databases);
        let results = plural(results, "position");
        print(&format!("{results} by awari {version}, searches of {limits}, databases {databases}\n"))?;
    }
    print(&format!("{} searched\n", plural(file.searched()?, "position")))?;
    Ok(Exit::Done)
}

pub(crate) fn diagram(args: &BookDiagramArgs) -> Result<Exit> {
    let (_, book) = open(&args.file)?;
    let is_svg = args.format == DiagramFormat::Svg;
    let picture = match (args.picture, is_svg) {
        (BookPicture::DropOut, _) => None,
        (BookPicture::Depths, true) => Some(book::depth_histogram(&book.depth_table())),
        (BookPicture::Depths, false) => Some(book::depth_csv(&book.depth_table())),
        (BookPicture::Tree, true) => Some(book::tree(&book)),
        (BookPicture::Tree, false) => Some(book::tree_csv(&book)),
        (BookPicture::Cycle, true) => Some(book::cycle(&book)),
        (BookPicture::Cycle, false) => Some(book::cycle_csv(&book)),
    };
    if let Some(picture) = picture {
        print(&picture)?;
        return Ok(Exit::Done);
    }
    let (graph, root, is_book) = (book.graph(), book.roots()[0], is_book_first(args.sides));
    print(&match args.format {
        DiagramFormat::Svg => book::diagram(graph, root, is_book, args.omega),
        DiagramFormat::Csv => book::diagram_csv(&book_ends(graph, root, is_book)),
    })?;
    Ok(Exit::Done)
}
