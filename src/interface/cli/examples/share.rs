//! Writes manual pages and shell completions into a folder, laid out as in `/usr/share`:
//!
//! ```text
//! man/man1/awari.1, man/man1/awari-COMMAND.1
//! bash-completion/completions/awari
//! zsh/site-functions/_awari
//! fish/vendor_completions.d/awari.fish
//! ```
//!
//! An example, so that the program is built without what renders manual pages.

use awari::{Shell, completion_script};
use clap::Command;
use clap_mangen::Man;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// The files with completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/awari"),
    (Shell::Zsh, "zsh/site-functions/_awari"),
    (Shell::Fish, "fish/vendor_completions.d/awari.fish"),
];

fn main() -> io::Result<()> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [folder] = arguments.as_slice() else {
        eprintln!("expected one argument, the folder to write into");
        std::process::exit(2);
    };
    let folder = Path::new(folder);
    write_pages(&folder.join("man/man1"))?;
    for (shell, path) in COMPLETIONS {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("each path has a folder"))?;
        fs::write(path, completion_script(shell))?;
    }
    Ok(())
}

/// Writes a page for the program, one for each subcommand, and one for each of theirs.
fn write_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = awari::command().disable_help_subcommand(true);
    program.build();
    let of_parts =
        program.get_subcommands().flat_map(Command::get_subcommands).filter(|part| part.get_name() != "help");
    for command in [&program].into_iter().chain(program.get_subcommands()).chain(of_parts) {
        let manual = Man::new(command.clone());
        fs::write(folder.join(manual.get_filename()), page(&manual, command)?)?;
    }
    Ok(())
}

/// Returns the text of a page. Its title has no date, so that the same program has the same pages;
/// clap_mangen would move the version to the place of the date. It would also join the lines of examples and
/// tables after the options.
fn page(manual: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let title = format!(".TH {} 1 \"\" \"awari {}\" \"User Commands\"\n", escaped(name), env!("CARGO_PKG_VERSION"));
    let mut page = title.into_bytes();
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    manual.render_options_section(&mut page)?;
    if command.has_subcommands() {
        manual.render_subcommands_section(&mut page)?;
    }
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.extend(sections(&text).into_bytes());
    if command.get_name() != "awari" {
        page.extend(b".SH SEE ALSO\nawari(1)\n");
    }
    Ok(page)
}

/// Returns paragraphs as sections: one that begins with a line such as `Examples:` becomes a section with its lines
/// unchanged, all others become notes.
fn sections(text: &str) -> String {
    let mut page = String::new();
    let mut notes = String::new();
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        match first.strip_suffix(':').filter(|_| rest.starts_with("  ")) {
            Some(heading) if heading.split(' ').count() <= 2 => {
                let _ = writeln!(page, ".SH {}\n.nf\n{}\n.fi", heading.to_uppercase(), escaped(rest));
            }
            // A sentence before a list.
            Some(_) => {
                let _ = writeln!(notes, ".PP\n{}\n.nf\n{}\n.fi", escaped(first), escaped(rest));
            }
            None => {
                let _ = writeln!(notes, ".PP\n{}", escaped(paragraph));
            }
        }
    }
    if !notes.is_empty() {
        page += ".SH NOTES\n";
        page += &notes;
    }
    page
}

/// Returns a text with escapes for what is special to roff: backslashes, hyphens, and a dot or quote that
/// begins a line.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for line in text.lines() {
        if !escaped.is_empty() {
            escaped.push('\n');
        }
        if line.starts_with(['.', '\'']) {
            escaped += "\\&";
        }
        escaped += &line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    }
    escaped
}
