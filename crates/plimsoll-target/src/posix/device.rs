//! A block device as the only file of a target: `device:/dev/sdb?serial=TEXT`.
//!
//! The user repeats the serial of the device, so that a wrong letter in a path overwrites nothing. The target holds an
//! exclusive open of the device (`O_EXCL`): the kernel refuses the open while a file system of the device is mounted,
//! and refuses mounts while the target is open. All other opens go through the exclusive open (`/proc/self/fd`), so
//! that no change of names in `/dev` leads to another device.

use super::block_device::BlockDevice;
use super::uring::{IoOptions, OPTIONS as IO_OPTIONS};
use super::{AioThreadPool, Posix, WorkDirOrigin};
use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::url_parser::UrlParser;
use plimsoll_plan::{Bytes, OpClass, OpKind, WorkDirSpec};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Unit of the file `size` in sysfs, whatever the sectors of the device.
const SYSFS_SECTOR_BYTES: u64 = 512;

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "device",
    form: "device:/dev/NAME?serial=SERIAL",
    storage: FileStorage::None,
    takes_events: false,
    options: &[&IO_OPTIONS, &["serial"]],
    row_names: no_rows,
};

/// Files below the sysfs directory of a device that identify the device, each with the place where the user reads the
/// same text; the most usual identity comes first.
const IDENTITIES: [(&str, &str); 7] = [
    ("device/serial", LSBLK),
    ("serial", LSBLK),
    (VPD_SERIAL, LSBLK),
    ("wwid", "the file `wwid` of the device in /sys/block"),
    (
        "device/wwid",
        "the file `device/wwid` of the device in /sys/block",
    ),
    ("dm/uuid", "the line `UUID` of `dmsetup info`"),
    (
        "loop/backing_file",
        "the column `BACK-FILE` of `losetup --list`",
    ),
];

const LSBLK: &str = "the column `SERIAL` of `lsblk -o NAME,SERIAL`";

/// The vital product data page 0x80 of SCSI, which has a header of four bytes.
const VPD_SERIAL: &str = "device/vpd_pg80";

/// A block device, as sysfs describes the device. `Display` writes model and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    pub(super) numbers: BlockDevice,
    model: String,
    /// Texts that identify the device; for a partition, the texts of the disk. Never empty.
    identities: Vec<String>,
    /// The place where the user finds the first identity.
    identity_place: &'static str,
    /// Size in bytes.
    pub bytes: u64,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.model, Bytes(self.bytes))
    }
}

impl DeviceInfo {
    /// Path, model, size and serial of the device, for the results.
    pub(super) fn describe(&self, path: &Path) -> String {
        format!(
            "{}, {}: {self}, serial {}",
            SCHEME.name,
            path.display(),
            self.identities[0]
        )
    }

    /// Where the user finds the serial of the device, as a part of a sentence.
    #[must_use]
    pub fn serial_place(&self) -> &'static str {
        self.identity_place
    }

    /// Reads the description of a device from a directory of sysfs; an error is a part of a sentence.
    fn read(dir: &Path, numbers: BlockDevice) -> Result<Self, &'static str> {
        let partition = text(&dir.join("partition"));
        let parent = dir.join("..");
        let disk = match partition {
            Some(_) => &parent,
            None => dir,
        };
        let sectors = text(&dir.join("size")).and_then(|size| size.parse::<u64>().ok());
        let bytes = sectors.and_then(|sectors| sectors.checked_mul(SYSFS_SECTOR_BYTES));
        let bytes = bytes.filter(|bytes| *bytes > 0);
        let found = IDENTITIES.iter().filter_map(|(file, place)| {
            let path = disk.join(file);
            let identity = match *file == VPD_SERIAL {
                true => vpd_serial(&path),
                false => text(&path),
            };
            Some((identity?, *place))
        });
        let (identities, places): (Vec<String>, Vec<&str>) = found.unzip();
        let identity_place = places.first().copied();
        let identity_place = identity_place.ok_or("has no serial that sysfs shows")?;
        let model = text(&disk.join("device/model"));
        let model = model.or_else(|| Some(format!("volume {}", text(&disk.join("dm/name"))?)));
        let model = model.unwrap_or_else(|| match disk.join("loop").exists() {
            true => "loop device".into(),
            false => "unknown model".into(),
        });
        Ok(Self {
            numbers,
            model: match partition {
                Some(number) => format!("partition {number} of {model}"),
                None => model,
            },
            identities,
            identity_place,
            bytes: bytes.ok_or("has no size: the device has no medium or is not set up")?,
        })
    }

    /// Checks that a serial is an identity of the device. The message about a wrong serial omits the right serial, so
    /// that the user looks up the serial and compares.
    fn check(&self, url: &DeviceUrl<'_>) -> Result<(), TargetError> {
        if self.identities.iter().any(|known| known == url.serial) {
            return Ok(());
        }
        let (path, place) = (url.path, self.identity_place);
        let reason = format!("`{path}` ({self}) has another serial: {place} has the serial");
        Err(url.text.wrong(url.serial, reason))
    }
}

/// Trimmed text of a file of sysfs; `None` for a missing or an empty file, and for unprintable text.
fn text(path: &Path) -> Option<String> {
    printable(&std::fs::read(path).ok()?)
}

fn printable(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let is_good = !text.is_empty() && !text.chars().any(char::is_control);
    is_good.then(|| text.to_owned())
}

/// The serial in a vital product data page: page code 0x80 in byte 1, length in bytes 2 and 3, then the text.
fn vpd_serial(path: &Path) -> Option<String> {
    let page = std::fs::read(path).ok()?;
    let [_, 0x80, high, low, rest @ ..] = &page[..] else {
        return None;
    };
    printable(rest.get(..usize::from(u16::from_be_bytes([*high, *low])))?)
}

/// The block device at a path, without an open of the device.
///
/// # Errors
/// One sentence: the path is no block device, or sysfs shows neither size nor serial of the device.
pub fn look_at_device(path: &Path) -> Result<DeviceInfo, String> {
    let shown = path.display();
    let stat = rustix::fs::stat(path).map_err(|e| format!("`{shown}`: {}", OpError(e)))?;
    let numbers = BlockDevice::of_stat(&stat);
    let numbers = numbers.ok_or_else(|| format!("`{shown}` is not a block device"))?;
    DeviceInfo::read(Path::new(&numbers.attributes()), numbers)
        .map_err(|why| format!("`{shown}` {why}"))
}

/// A parsed URL of the scheme `device`.
struct DeviceUrl<'u> {
    text: UrlParser<'u>,
    path: &'u str,
    serial: &'u str,
    io: IoOptions,
}

impl<'u> DeviceUrl<'u> {
    fn parse(url: &'u str) -> Result<Self, TargetError> {
        let text = UrlParser {
            scheme: SCHEME.name,
            url,
        };
        let (path, options) = text.parts();
        if !path.starts_with('/') {
            let form = SCHEME.form;
            return Err(text.wrong(
                path,
                format!("there is no path of a device: expected {form}"),
            ));
        }
        let mut given = text.options(options)?;
        let at = given.iter().position(|(name, _)| *name == "serial");
        let serial = at.map_or("", |at| given.remove(at).1);
        let mut known = vec!["serial"];
        known.extend(IO_OPTIONS);
        let io = IoOptions::of(&text, &given, &known)?;
        let auto = given
            .iter()
            .find(|(name, value)| *name == "io" && *value == "auto");
        if let Some((name, value)) = auto {
            return Err(text.wrong_value(name, value, "sync or uring"));
        }
        if serial.is_empty() {
            let reason = "the URL lacks the serial of the device, which protects other devices: expected ?serial=SERIAL";
            return Err(text.wrong(path, reason));
        }
        Ok(Self {
            text,
            path,
            serial,
            io,
        })
    }
}

/// Whether a URL has the scheme `device`.
pub(crate) fn is_device(url: &str) -> bool {
    url.split(':').next() == Some(SCHEME.name)
}

/// Path of the device in a URL of the scheme `device`, whether or not the rest of the URL is valid.
pub(crate) fn path_of(url: &str) -> &Path {
    let text = UrlParser {
        scheme: SCHEME.name,
        url,
    };
    Path::new(text.parts().0)
}

pub(crate) fn check_url(url: &str) -> Result<(), TargetError> {
    DeviceUrl::parse(url).map(drop)
}

pub(super) fn options(url: &str) -> Result<IoOptions, TargetError> {
    DeviceUrl::parse(url).map(|parsed| parsed.io)
}

/// Opens the device for either purpose: an open changes nothing.
pub(crate) fn connect(url: &str, _: &WorkDirSpec, _: Purpose) -> Result<Posix, TargetError> {
    open(url)
}

pub(super) fn open(url: &str) -> Result<Posix, TargetError> {
    let url = DeviceUrl::parse(url)?;
    let path = Path::new(url.path);
    let wrong = |why: String| url.text.wrong(url.path, why);
    // The open of another kind of device, such as a tape, may block or change the device.
    let found = look_at_device(path).map_err(wrong)?;
    found.check(&url)?;
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    let root = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::BUSY) => {
            let shown = url.path;
            return Err(wrong(format!(
                "`{shown}` ({found}) is in use by a mounted file system, a volume, swap or another program: \
                 `lsblk {shown}` shows mounts and volumes"
            )));
        }
        opened => opened.map_err(|e| TargetError::Place {
            path: path.into(),
            error: e.into(),
        })?,
    };
    // The path may have become the name of another device since the look.
    let numbers = rustix::fs::fstat(&root).ok();
    let numbers = numbers.and_then(|stat| BlockDevice::of_stat(&stat));
    let numbers = numbers.ok_or_else(|| wrong(format!("`{}` is not a block device", url.path)))?;
    let device = DeviceInfo::read(Path::new(&numbers.attributes()), numbers)
        .map_err(|why| wrong(format!("`{}` {why}", url.path)))?;
    device.check(&url)?;
    Ok(Posix {
        root: Arc::new(root),
        path: path.into(),
        aio: Arc::<AioThreadPool>::default(),
        found: WorkDirOrigin::Existing,
        device: Some(device),
    })
}

/// The reason why operations of a kind are not supported on a block device.
pub(super) fn unsupported_reason(kind: OpKind) -> Option<&'static str> {
    match kind {
        OpKind::Read | OpKind::Write | OpKind::MmapRead | OpKind::MmapWrite => None,
        OpKind::Open | OpKind::Close | OpKind::Fsync => None,
        _ if kind.class() != OpClass::Io => None,
        _ => Some(
            "a block device can be opened, read, written, mapped and flushed, and nothing else",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posix::uring::IoMethod;
    use std::fs::{create_dir_all, write};

    const URL: &str = "device:/dev/x?serial=S1";

    /// A directory of sysfs with files, each a path with its contents.
    fn sysfs(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, contents) in files {
            let path = dir.path().join(file);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, contents).unwrap();
        }
        dir
    }

    fn read(dir: &Path) -> Result<DeviceInfo, &'static str> {
        let (major, minor) = (8, 1);
        DeviceInfo::read(dir, BlockDevice { major, minor })
    }

    #[test]
    fn each_kind_of_device_has_its_identity_model_and_size() {
        let vpd: &[u8] = b"\0\x80\0\x08  WD-123 and more";
        for (files, identity, shown) in [
            (
                vec![
                    ("device/serial", &b"S4EV \n"[..]),
                    ("device/model", b"Samsung SSD  \n"),
                    ("wwid", b"eui.01\n"),
                ],
                vec!["S4EV", "eui.01"],
                "Samsung SSD, 1 MiB",
            ),
            (
                vec![("serial", b"virtio-1")],
                vec!["virtio-1"],
                "unknown model, 1 MiB",
            ),
            (
                vec![
                    ("device/vpd_pg80", vpd),
                    ("device/wwid", b"t10.ATA     WDC\n"),
                    ("device/model", b"WDC"),
                ],
                vec!["WD-123", "t10.ATA     WDC"],
                "WDC, 1 MiB",
            ),
            (
                vec![("dm/uuid", b"LVM-abc\n"), ("dm/name", b"vg-lv\n")],
                vec!["LVM-abc"],
                "volume vg-lv, 1 MiB",
            ),
            (
                vec![("loop/backing_file", b"/tmp/an image\n")],
                vec!["/tmp/an image"],
                "loop device, 1 MiB",
            ),
        ] {
            let dir = sysfs(&[&files[..], &[("size", b"2048\n")]].concat());
            let found = read(dir.path()).unwrap();
            assert_eq!(found.identities, identity);
            assert_eq!((found.bytes, found.to_string()), (1 << 20, shown.into()));
        }
    }

    #[test]
    fn a_partition_has_the_identity_of_its_disk_and_its_own_size() {
        let dir = sysfs(&[
            ("size", b"4096\n"),
            ("device/serial", b"S4EV\n"),
            ("device/model", b"SSD\n"),
            ("x1/size", b"2\n"),
            ("x1/partition", b"1\n"),
        ]);
        let found = read(&dir.path().join("x1")).unwrap();
        assert_eq!((found.identities, found.bytes), (vec!["S4EV".into()], 1024));
        assert_eq!(found.model, "partition 1 of SSD");
    }

    #[test]
    fn a_device_without_identity_or_size_is_refused() {
        let reason = |files: &[(&str, &[u8])]| read(sysfs(files).path()).unwrap_err();
        let nameless = reason(&[("size", b"8\n"), ("serial", b"\n"), ("wwid", b"\0\0")]);
        assert_eq!(nameless, "has no serial that sysfs shows");
        // A page of another code, and a page shorter than its length.
        for page in [&b"\0\x83\0\x01a"[..], b"\0\x80\0\x09a"] {
            let found = reason(&[("size", b"8\n"), ("device/vpd_pg80", page)]);
            assert_eq!(found, nameless);
        }
        assert!(reason(&[("size", b"0\n"), ("serial", b"S1")]).contains("has no size"));
        assert!(reason(&[("serial", b"S1")]).contains("has no size"));
    }

    #[test]
    fn a_wrong_serial_is_refused_without_the_right_serial() {
        let dir = sysfs(&[
            ("size", b"2048"),
            ("device/serial", b"RIGHT"),
            ("device/model", b"SSD"),
        ]);
        let found = read(dir.path()).unwrap();
        for wrong in ["S1", "RIGH", "right"] {
            let url = URL.replace("S1", wrong);
            let message = found.check(&DeviceUrl::parse(&url).unwrap()).unwrap_err();
            let message = message.to_string();
            assert!(!message.contains("RIGHT"), "{message}");
            for part in ["/dev/x", "SSD, 1 MiB", "lsblk -o NAME,SERIAL", "^"] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
        let right = URL.replace("S1", "RIGHT");
        assert_eq!(found.check(&DeviceUrl::parse(&right).unwrap()), Ok(()));
    }

    #[test]
    fn urls_have_a_path_and_a_serial() {
        let uring = options("device:/dev/x?io=uring&lanes=2&serial=a=b c").unwrap();
        assert_eq!(uring.method, IoMethod::Uring);
        assert_eq!(
            DeviceUrl::parse("device:/dev/x?serial=a=b c")
                .unwrap()
                .serial,
            "a=b c"
        );
        for (url, reason) in [
            ("device", "there is no path of a device"),
            ("device:sdb?serial=S", "there is no path of a device"),
            ("device:/dev/x", "lacks the serial"),
            ("device:/dev/x?serial=", "lacks the serial"),
            ("device:/dev/x?serial=S&io=auto", "expected sync or uring"),
            ("device:/dev/x?serial=S&lanes=2", "are options of io=uring"),
            ("device:/dev/x?serail=S", "did you mean `serial`?"),
        ] {
            let message = check_url(url).unwrap_err().to_string();
            assert!(message.contains(reason), "{url}: {message}");
        }
        assert_eq!(path_of("device:/dev/x?serial=S"), Path::new("/dev/x"));
    }

    #[test]
    fn other_files_than_block_devices_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for path in [Path::new("/dev/null"), dir.path()] {
            let message = look_at_device(path).unwrap_err();
            assert!(message.ends_with("is not a block device"), "{message}");
        }
        assert!(
            look_at_device(&dir.path().join("x"))
                .unwrap_err()
                .contains("ENOENT")
        );
    }
}
