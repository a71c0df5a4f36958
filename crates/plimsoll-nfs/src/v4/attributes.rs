//! File attributes, selected by a bitmap (RFC 7530, 5 and RFC 8881, 5).

use super::types::{FileType, FsId, Handle, Time};
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, put_opaque};

/// The maximum number of words of a bitmap; the first two words contain all supported attributes.
const MAX_BITMAP_WORDS: u32 = 8;

/// A set of attributes, `bitmap4` (RFC 7530, 2.1): bit *n* is attribute *n*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bitmap(pub u64);

impl Bitmap {
    /// The set with the attribute numbers `numbers`, each below 64.
    #[must_use]
    pub const fn of(numbers: &[u32]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < numbers.len() {
            bits |= 1 << numbers[i];
            i += 1;
        }
        Self(bits)
    }

    /// Whether the attribute with this number is in the set.
    #[must_use]
    pub fn has(self, number: u32) -> bool {
        number < 64 && self.0 >> number & 1 == 1
    }
}

impl Encode for Bitmap {
    fn encode(&self, out: &mut Vec<u8>) {
        let words = [self.0 as u32, (self.0 >> 32) as u32];
        let count = match words {
            [0, 0] => 0,
            [_, 0] => 1,
            _ => 2,
        };
        (count as u32).encode(out);
        words[..count].iter().for_each(|w| w.encode(out));
    }
}

impl Decode<'_> for Bitmap {
    /// Refuses attribute numbers of 64 and above, whose values could not be skipped.
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        let count: u32 = from.get()?;
        if count > MAX_BITMAP_WORDS {
            return Err(XdrError::TooLong(count));
        }
        let mut bits = 0;
        for i in 0..count {
            let word: u32 = from.get()?;
            match i {
                0 | 1 => bits |= u64::from(word) << (32 * i),
                _ if word == 0 => {}
                _ => return Err(XdrError::NoSuchChoice(32 * i + word.trailing_zeros())),
            }
        }
        Ok(Self(bits))
    }
}

macro_rules! attributes {
    ($($(#[$of:meta])* $number:literal $constant:ident $field:ident: $type:ty,)*) => {
        /// The numbers of NFSv4 attributes, which are bit numbers in a bitmap of attributes (RFC 7530, 5.8).
        pub mod number {
            $($(#[$of])* pub const $constant: u32 = $number;)*
        }

        /// Attributes of an object, `fattr4` (RFC 7530, 2.2.8); `None` for attributes that the bitmap does not name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Attributes {
            $($(#[$of])* pub $field: Option<$type>,)*
        }

        impl Attributes {
            /// The bitmap of the present attributes, which precedes the values in the encoding (RFC 7530, 2.2.8).
            #[must_use]
            pub fn given(&self) -> Bitmap {
                let mut bits = 0;
                $(bits |= u64::from(self.$field.is_some()) << $number;)*
                Bitmap(bits)
            }
        }

        impl Encode for Attributes {
            fn encode(&self, out: &mut Vec<u8>) {
                self.given().encode(out);
                let mut values = Vec::new();
                $(if let Some(value) = &self.$field {
                    value.encode(&mut values);
                })*
                put_opaque(&values, out);
            }
        }

        impl Decode<'_> for Attributes {
            /// Refuses unknown attributes: a value has no length prefix, so an unknown value cannot
            /// be skipped.
            fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
                let given: Bitmap = from.field("attrmask")?;
                let known = 0u64 $(| 1 << $number)*;
                let unknown = given.0 & !known;
                if unknown != 0 {
                    // The value of an unknown attribute has an unknown length, so the values after it cannot be found.
                    return Err(XdrError::NoSuchChoice(unknown.trailing_zeros()));
                }
                let values = from.opaque(u32::MAX)?;
                from.inside(values, |from| {
                    let mut out = Self::default();
                    $(if given.has($number) {
                        out.$field = Some(from.field(stringify!($field))?);
                    })*
                    Ok(out)
                })
            }
        }
    };
}

attributes! {
    /// The type of the object, such as a regular file or a directory (RFC 7530, 5.8.1.2).
    1 KIND kind: FileType,
    /// A number that changes with each change of the object's data or attributes (RFC 7530, 5.8.1.4).
    3 CHANGE change: u64,
    /// The size of the object in bytes (RFC 7530, 5.8.1.5).
    4 SIZE size: u64,
    /// The identifier of the file system with the object (RFC 7530, 5.8.1.9).
    8 FSID fsid: FsId,
    /// The time in seconds after which the server may drop the state of a silent client (RFC 7530, 5.8.1.11).
    10 LEASE_TIME lease_time: u32,
    /// The status of a directory entry whose other attributes the server could not read (RFC 7530, 5.8.1.12).
    11 READ_ERROR read_error: u32,
    /// The file handle of the object, for READDIR (RFC 7530, 5.8.1.13).
    19 HANDLE handle: Handle,
    /// The file number (inode number) of the object, unique within the file system (RFC 7530, 5.8.2.6).
    20 FILE_ID file_id: u64,
    /// The number of files that the calling user may still create in the file system (RFC 7530, 5.8.2.7).
    21 FILES_AVAILABLE files_available: u64,
    /// The number of free file slots (inodes) of the file system (RFC 7530, 5.8.2.8).
    22 FILES_FREE files_free: u64,
    /// The number of file slots (inodes) of the file system, used and free (RFC 7530, 5.8.2.9).
    23 FILES_TOTAL files_total: u64,
    /// The maximum number of hard links of an object in the file system (RFC 7530, 5.8.2.14).
    28 MAX_LINK max_link: u32,
    /// The maximum length in bytes of a file name in the file system (RFC 7530, 5.8.2.15).
    29 MAX_NAME max_name: u32,
    /// The maximum size of a READ in bytes (RFC 7530, 5.8.2.16).
    30 MAX_READ max_read: u64,
    /// The maximum size of a WRITE in bytes (RFC 7530, 5.8.2.17).
    31 MAX_WRITE max_write: u64,
    /// The permission bits of the object (RFC 7530, 6.2.2).
    33 MODE mode: u32,
    /// The number of hard links of the object (RFC 7530, 5.8.2.21).
    35 LINKS links: u32,
    /// The free space in bytes that the calling user may use in the file system (RFC 7530, 5.8.2.28).
    42 SPACE_AVAILABLE space_available: u64,
    /// The free space of the file system in bytes (RFC 7530, 5.8.2.29).
    43 SPACE_FREE space_free: u64,
    /// The size of the file system in bytes (RFC 7530, 5.8.2.30).
    44 SPACE_TOTAL space_total: u64,
    /// The number of bytes of storage that the object occupies (RFC 7530, 5.8.2.31).
    45 SPACE_USED space_used: u64,
    /// The time of the last access to the object (RFC 7530, 5.8.2.33).
    47 ACCESSED accessed: Time,
    /// The time of the last change of the object's attributes, like `ctime`, which a write also changes (RFC 7530,
    /// 5.8.2.38).
    52 CHANGED changed: Time,
    /// The time of the last change of the object's data, like `mtime` (RFC 7530, 5.8.2.39).
    53 MODIFIED modified: Time,
}
