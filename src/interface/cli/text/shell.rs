//! Commands as text that can be pasted into a shell.

use crate::text::terminal::is_control;
use pipeline::directory::manifest_path;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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

/// Returns a path as an argument: one that begins with a hyphen would be read as an option.
pub(crate) fn path_argument(path: &Path) -> PathBuf {
    if path.as_os_str().as_bytes().starts_with(b"-") { Path::new(".").join(path) } else { path.to_path_buf() }
}

/// Returns the command of this process, with the launcher if it is a rank of a job.
pub(crate) fn own_command() -> Vec<OsString> {
    let variable = |name: &str| std::env::var(name).ok();
    let launcher = messaging::launched_rank().and_then(|_| launcher(variable)).into_iter().flatten();
    launcher.map(OsString::from).chain(std::env::args_os()).collect()
}

/// Returns the launcher that the environment of a rank shows, with its number of ranks: that of Open MPI or
/// of MPICH, or `srun`.
fn launcher(variable: impl Fn(&str) -> Option<String>) -> Option<[String; 3]> {
    // Slurm sets the variables of PMI too, but not those that the launcher of MPICH adds.
    let launchers =
        [("OMPI_COMM_WORLD_SIZE", "mpirun"), ("MPI_LOCALNRANKS", "mpirun"), ("SLURM_STEP_NUM_TASKS", "srun")];
    let (_, program) = launchers.into_iter().find(|(name, _)| variable(name).is_some())?;
    let sizes = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
    let size = sizes.iter().find_map(|name| variable(name)?.trim().parse::<u64>().ok()).filter(|&size| size > 1)?;
    Some([program.to_owned(), "-n".to_owned(), size.to_string()])
}

/// Returns the command that builds the databases of a directory; of 0 to `stones` stones, if given.
pub(crate) fn building(dir: &Path, stones: Option<u32>) -> String {
    let dir = path_argument(dir);
    let path = manifest_path(&dir);
    let manifest = if path.is_file() { path.into_os_string() } else { "MANIFEST".into() };
    let mut words = vec!["awari".into(), "run".into(), manifest, "--dir".into(), dir.into_os_string()];
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
        assert_eq!(building(Path::new("-d"), None), "awari run MANIFEST --dir ./-d");
        let words = ["awari", "run", "a b.toml", "--set", "build.methods.\"1..2\"=sweep", "it's", ""];
        assert_eq!(
            command_line(words.map(str::to_owned)),
            "awari run 'a b.toml' --set 'build.methods.\"1..2\"=sweep' 'it'\\''s' ''"
        );
        let odd = [OsStr::from_bytes(b"it's \xff"), OsStr::new("\u{1b}[31m\\"), OsStr::new("\u{202e}")];
        assert_eq!(command_line(odd), r"$'it\x27s \xff' $'\x1b[31m\x5c' $'\xe2\x80\xae'");
    }

    #[test]
    fn the_launcher_is_that_of_the_ranks() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let value =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(launcher(value).map(|words| words.join(" ")).as_deref(), expected, "{variables:?}");
        };
        check(&[], None);
        check(&[("MPI_LOCALNRANKS", "2"), ("PMI_SIZE", "4")], Some("mpirun -n 4"));
        check(&[("OMPI_COMM_WORLD_SIZE", "3")], Some("mpirun -n 3"));
        check(&[("SLURM_STEP_NUM_TASKS", "8"), ("PMI_SIZE", "8")], Some("srun -n 8"));
        // Ranks of a launcher inside an allocation, which it uses to start one process on each node.
        check(&[("SLURM_STEP_NUM_TASKS", "2"), ("MPI_LOCALNRANKS", "8"), ("PMI_SIZE", "16")], Some("mpirun -n 16"));
        check(&[("SLURM_STEP_NUM_TASKS", "1")], None);
    }
}
