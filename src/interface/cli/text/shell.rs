//! Commands as text that can be pasted into a shell.

use crate::text::terminal::is_control;
use pipeline::directory::manifest_path;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Quotes arguments for a shell.
pub(crate) fn command_line(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let words: Vec<String> = arguments.into_iter().map(|word| shell_word(word.as_ref())).collect();
    words.join(" ")
}

fn shell_word(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match word.to_str() {
        Some(word) if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        Some(word) if !word.contains(is_control) => format!("'{}'", word.replace('\'', "'\\''")),
        // Not printable text: escaped bytes.
        _ => {
            let byte = |&byte: &u8| match byte {
                b' '..=b'~' if byte != b'\'' && byte != b'\\' => char::from(byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
        }
    }
}

/// Returns the command that builds the databases of a directory; of 0 to `stones` stones, if given.
pub(crate) fn building(dir: &Path, stones: Option<u32>) -> String {
    let path = manifest_path(dir);
    let manifest = if path.is_file() { path.into_os_string() } else { "MANIFEST".into() };
    let mut words = vec!["awari".into(), "run".into(), manifest, "--dir".into(), dir.as_os_str().to_owned()];
    if let Some(stones) = stones {
        words.extend(["--set".into(), format!("build.stones=0..{stones}").into()]);
    }
    command_line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let words = ["awari", "run", "a b.toml", "--set", "build.methods.\"1..2\"=sweep", "it's", ""];
        assert_eq!(
            command_line(words.map(str::to_owned)),
            "awari run 'a b.toml' --set 'build.methods.\"1..2\"=sweep' 'it'\\''s' ''"
        );
        let odd = [OsStr::from_bytes(b"it's \xff"), OsStr::new("\u{1b}[31m\\"), OsStr::new("\u{202e}")];
        assert_eq!(command_line(odd), r"$'it\x27s \xff' $'\x1b[31m\x5c' $'\xe2\x80\xae'");
    }
}
