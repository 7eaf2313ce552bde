//! Mistakes in a manifest: with an excerpt on a terminal, one line each elsewhere.

use crate::text::terminal::{is_control, say, say_controls};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use pipeline::manifest::{Diagnostic, Origin};
use std::io::IsTerminal;

/// The longest line of a manifest that is printed as an excerpt.
const LINE_BYTES_MAX: usize = 400;

/// Shows all mistakes on stderr.
pub(crate) fn show(name: &str, text: &str, diagnostics: &[Diagnostic]) {
    let plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    for diagnostic in diagnostics {
        let is_option = matches!(diagnostic.origin, Origin::Option(_));
        if plain || is_option || is_long(text, diagnostic) {
            say(diagnostic);
        } else {
            say_controls(rendered(name, text, diagnostic));
        }
    }
}

/// Whether a line of the excerpt is too long.
fn is_long(text: &str, diagnostic: &Diagnostic) -> bool {
    let text = match &diagnostic.origin {
        Origin::File(_) => text,
        Origin::Set(argument) => argument,
        Origin::Option(_) => return false,
    };
    // The line itself and its neighbours.
    let line = diagnostic.line.saturating_sub(1);
    text.lines().skip(line.saturating_sub(1)).take(3).any(|line| line.len() > LINE_BYTES_MAX)
}

/// Replaces control characters without changing the length in bytes.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) { masked.extend(std::iter::repeat_n('?', c.len_utf8())) } else { masked.push(c) }
    }
    masked
}

/// Renders a mistake with an excerpt.
fn rendered(name: &str, text: &str, diagnostic: &Diagnostic) -> String {
    let (name, text) = match &diagnostic.origin {
        Origin::File(_) => (name, text),
        Origin::Set(argument) => ("--set", argument.as_str()),
        Origin::Option(name) => (*name, ""),
    };
    let (name, text, message) = (masked(name), masked(text), masked(&diagnostic.message));
    let mistake = AnnotationKind::Primary.span(diagnostic.span.clone());
    let excerpt = Snippet::source(text).path(name).annotation(mistake);
    let help = diagnostic.help.as_deref().map(|help| Level::HELP.message(masked(help)));
    let report = Level::ERROR.primary_title(message).element(excerpt).elements(help);
    let mut rendered = Renderer::styled().decor_style(DecorStyle::Unicode).render(&[report]);
    rendered.push('\n');
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_show_the_mistake() {
        let text = "[build]\nstone = \"0..3\"\n";
        let diagnostic = Diagnostic {
            origin: Origin::File("x.toml".to_owned()),
            line: 2,
            column: 1,
            span: 8..13,
            message: "unknown key stone in [build]".to_owned(),
            help: Some("did you mean stones?".to_owned()),
        };
        let rendered = rendered("x.toml", text, &diagnostic);
        for part in ["unknown key stone", "x.toml:2:1", "stone = \"0..3\"", "did you mean stones?"] {
            assert!(rendered.contains(part), "{part} in {rendered}");
        }
    }
}
