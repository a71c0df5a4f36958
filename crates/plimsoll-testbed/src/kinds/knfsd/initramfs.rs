//! The initial file system of a Linux kernel (initramfs): an archive in cpio's `newc` format, as specified in the
//! kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`.

use crate::BedError;
use crate::bed::Bed;
use crate::daemon::CommandLine;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// File type bits of a mode.
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// Alignment of headers and contents, in bytes.
const ALIGNMENT: usize = 4;

/// Name of the entry that ends an archive.
const END: &str = "TRAILER!!!";

/// Builder of an archive. All files belong to root.
pub(super) struct Initramfs {
    bytes: Vec<u8>,
    names: BTreeSet<PathBuf>,
}

impl Initramfs {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            names: BTreeSet::new(),
        }
    }

    /// Adds a directory and its parent directories.
    pub(super) fn directory(&mut self, path: &Path) {
        self.parents(path);
        self.entry(path, DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub(super) fn file(&mut self, path: &Path, content: &[u8]) {
        self.parents(path);
        self.entry(path, FILE | 0o755, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &Path, target: &str) {
        self.parents(path);
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub(super) fn device(&mut self, path: &Path, number: (u32, u32)) {
        self.parents(path);
        self.entry(path, CHARACTER_DEVICE | 0o600, number, &[]);
    }

    /// Adds the content of a file of this machine, at the same path.
    pub(super) fn copy(&mut self, path: &Path) -> Result<(), BedError> {
        self.copy_to(path, path)
    }

    /// Adds the content of a file of this machine at another path.
    pub(super) fn copy_to(&mut self, from: &Path, to: &Path) -> Result<(), BedError> {
        let content = std::fs::read(from).map_err(BedError::at(from))?;
        self.file(to, &content);
        Ok(())
    }

    /// Adds a program of this machine at a path, with the libraries of the program.
    pub(super) fn program(&mut self, bed: &Bed, from: &Path, to: &Path) -> Result<(), BedError> {
        self.copy_to(from, to)?;
        let ldd = CommandLine::new("sh").args(["-c", LDD, "sh"]).arg(from);
        let text = bed.run(&ldd)?;
        libraries(&text).try_for_each(|library| self.copy(Path::new(library)))
    }

    fn parents(&mut self, path: &Path) {
        let mut all: Vec<&Path> = path.ancestors().skip(1).collect();
        all.retain(|dir| dir.parent().is_some());
        for dir in all.into_iter().rev() {
            self.entry(dir, DIRECTORY | 0o755, (0, 0), &[]);
        }
    }

    /// Adds an entry unless the archive has an entry with the path.
    fn entry(&mut self, path: &Path, mode: u32, device: (u32, u32), content: &[u8]) {
        if self.names.insert(path.to_owned()) {
            let name = path.to_string_lossy();
            self.append(name.trim_start_matches('/'), mode, device, content);
        }
    }

    fn append(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        let number = u32::try_from(self.names.len()).expect("there are few files");
        let size = u32::try_from(content.len()).expect("a file of it is smaller than 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("paths are short");
        // Inode, mode, user, group, links, time, size, device of the file system and of the node, size of
        // the name, checksum.
        let fields = [
            number, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            write!(self.bytes, "{field:08x}").expect("memory can be written to");
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        let length = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(length, 0);
    }

    /// The bytes of the archive, with the end entry.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.append(END, 0, (0, 0), &[]);
        self.bytes
    }
}

/// Prints the libraries of a program; prints nothing for a static program.
const LDD: &str = r#"
if said=$(LC_ALL=C ldd "$1" 2>&1); then echo "$said"; else
    case $said in *"not a dynamic executable"*) ;; *) echo "$said" >&2; exit 1 ;; esac
fi"#;

/// Paths of the libraries in the output of `ldd`: after an arrow, or without an arrow for an absolute path. The line of
/// the kernel's own library (vDSO) has no path.
fn libraries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let place = line.split_once("=>").map_or(line, |(_, place)| place);
        place
            .split_whitespace()
            .next()
            .filter(|p| p.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_form_of_newc() {
        let mut archive = Initramfs::new();
        archive.file(Path::new("/a/b"), b"hello");
        archive.file(Path::new("/a/b"), b"again");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let text = String::from_utf8(bytes).unwrap();
        // The header of a directory, the header of one file although added twice, and the header of the end entry.
        assert_eq!(text.matches("070701").count(), 3);
        let file = text.rfind("070701").unwrap();
        let at = text[..file].rfind("070701").unwrap();
        let field = |n: usize| u32::from_str_radix(&text[at + 6 + 8 * n..][..8], 16).unwrap();
        assert_eq!(field(1), 0o100_755);
        assert_eq!((field(6), field(11)), (5, 4));
        assert_eq!(&text[at + 110..][..4], "a/b\0");
        assert_eq!(&text[at + 116..][..8], "hello\0\0\0");
        assert!(text[file..].contains("TRAILER!!!\0"));
    }

    #[test]
    fn libraries_of_a_program_are_found() {
        let text = "\tlinux-vdso.so.1 (0x00007f)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \tlibno.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found: Vec<&str> = libraries(text).collect();
        assert_eq!(
            found,
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        assert_eq!(libraries("\tstatically linked\n").count(), 0);
    }
}
