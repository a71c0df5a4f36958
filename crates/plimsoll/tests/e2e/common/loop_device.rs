//! Loop devices, with and without a file system.

use super::{Bench, Ended};
use std::path::PathBuf;
use std::process::Command;

/// A loop device without a file system, on a file in the bench.
pub struct RawLoopDevice {
    pub bench: Bench,
    /// Path of the device, such as `/dev/loop0`.
    pub path: String,
}

impl RawLoopDevice {
    /// Makes a loop device on a file with the bytes `contents`; `None` if the system has no loop device for this
    /// process.
    pub fn new(contents: &[u8]) -> Option<Self> {
        let bench = Bench::on_tmpfs();
        let image = bench.path("image");
        std::fs::write(&image, contents).unwrap();
        let mut command = Command::new("losetup");
        command.args(["--find", "--show"]).arg(&image);
        let made = Ended::of(command);
        if made.code != Some(0) {
            eprintln!(
                "SKIPPED: no loop device: {}: `make test-root` runs it",
                made.stderr.trim()
            );
            return None;
        }
        let path = made.stdout.trim().to_owned();
        Some(Self { bench, path })
    }

    /// The serial that `--raw-device` takes: the path of the file below the loop device.
    pub fn serial(&self) -> String {
        self.bench.path("image").display().to_string()
    }

    /// Bytes of the file below the loop device.
    pub fn contents(&self) -> Vec<u8> {
        std::fs::read(self.bench.path("image")).unwrap()
    }
}

impl Drop for RawLoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
    }
}

/// ext4 on a loop device, with a file of 64 MiB in the bench behind the device.
pub struct LoopDevice {
    pub bench: Bench,
}

impl LoopDevice {
    /// Makes the file system, and mounts the file system with `options`. `None` if the system has no loop device for this
    /// process, as in a container or a user namespace.
    pub fn ext4(options: &str) -> Option<Self> {
        let this = Self {
            bench: Bench::on_tmpfs(),
        };
        let image = this.image();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(64 << 20).unwrap();
        std::fs::create_dir(this.mount_point()).unwrap();
        let script = "mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard -J size=4 \"$1\" &&
            mount -o \"loop,$3\" \"$1\" \"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]);
        command.arg(&image).arg(this.mount_point()).arg(options);
        let made = Ended::of(command);
        if made.code == Some(0) {
            return Some(this);
        }
        eprintln!(
            "SKIPPED: no loop device: {}: `make test-root` runs it",
            made.stderr.trim()
        );
        None
    }

    fn image(&self) -> PathBuf {
        self.bench.path("image")
    }

    pub fn mount_point(&self) -> PathBuf {
        self.bench.path("mnt")
    }

    /// Takes the end of the device away, whose blocks then fail to be read.
    pub fn keep_bytes(&self, bytes: u64) {
        let file = std::fs::File::options().write(true).open(self.image());
        file.unwrap().set_len(bytes).unwrap();
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let mut command = Command::new("umount");
        let _ = command
            .args(["--lazy", "--"])
            .arg(self.mount_point())
            .status();
    }
}
