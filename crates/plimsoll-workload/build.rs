//! Writes one Rust list of `Builtin` values for each file extension in `workloads` and `profiles`. The statics
//! `BUILTINS` of the modules `wml`, `mix` and `profile` include the lists, so every file of the two directories with an
//! extension in the list of `main` is built in.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    for (dir, ending) in [
        ("workloads", "f"),
        ("workloads", "toml"),
        ("profiles", "prof"),
    ] {
        println!("cargo::rerun-if-changed={dir}");
        let list = list(Path::new(dir), ending);
        fs::write(out.join(format!("{ending}.rs")), list).expect("OUT_DIR is writable");
    }
}

/// A Rust expression of type `&[Builtin]` with the names and texts of the files in `dir` that have the extension
/// `ending`, sorted by name.
fn list(dir: &Path, ending: &str) -> String {
    let dir = fs::canonicalize(dir).expect("the directory exists");
    let entries = fs::read_dir(&dir).expect("the directory is readable");
    let paths = entries.map(|entry| entry.expect("the directory is readable").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    paths.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let builtins = paths.iter().map(|path| {
        let name = path.file_stem().unwrap_or_default();
        format!("Builtin {{ name: {name:?}, text: include_str!({path:?}) }},\n")
    });
    format!("&[\n{}]\n", builtins.collect::<String>())
}
