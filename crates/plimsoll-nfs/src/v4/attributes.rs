//! File attributes, selected by a bitmap (RFC 7530, 5 and RFC 8881, 5).

use super::types::{FileType, FsId, Handle, Time};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, put_opaque};

/// The maximum number of words of a bitmap; the first two words contain all supported attributes.
const MAX_BITMAP_WORDS: u32 = 8;

/// A set of attributes, `bitmap4` (RFC 7530, 2.1): bit *n* is attribute *n*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bitmap(pub u64);

impl Bitmap {
    /// The set of the attributes with these numbers, which are below 64.
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
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
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
        /// The numbers of attributes (RFC 7530, 5.8).
        pub mod number {
            $($(#[$of])* pub const $constant: u32 = $number;)*
        }

        /// The present attributes of an object, `fattr4` (RFC 7530, 2.1).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Attributes {
            $($(#[$of])* pub $field: Option<$type>,)*
        }

        impl Attributes {
            /// The set of the present attributes.
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
            fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
                let given: Bitmap = from.get()?;
                let mut values = Decoder::new(from.opaque(u32::MAX)?);
                let known = 0u64 $(| 1 << $number)*;
                let unknown = given.0 & !known;
                if unknown != 0 {
                    return Err(XdrError::NoSuchChoice(unknown.trailing_zeros()));
                }
                let mut out = Self::default();
                $(if given.has($number) {
                    out.$field = Some(values.get()?);
                })*
                from.pass_over(values.surplus());
                Ok(out)
            }

            fn decode_traced(
                from: &mut Decoder<'_>,
                path: &mut FieldPath,
            ) -> Result<Self, XdrError> {
                let given: Bitmap = path.field("attrmask", from)?;
                let mut values = Decoder::new(from.opaque(u32::MAX)?);
                let mut out = Self::default();
                $(if given.has($number) {
                    out.$field = Some(path.field(stringify!($field), &mut values)?);
                })*
                Ok(out)
            }
        }
    };
}

attributes! {
    /// The type (5.8.1.2).
    1 KIND kind: FileType,
    /// The change counter (5.8.1.4).
    3 CHANGE change: u64,
    /// The size in bytes (5.8.1.5).
    4 SIZE size: u64,
    /// The file system id (5.8.1.9).
    8 FSID fsid: FsId,
    /// The duration of a lease in seconds (5.8.1.11).
    10 LEASE_TIME lease_time: u32,
    /// The status because of which READDIR returns no other attribute of an entry (5.8.1.12).
    11 READ_ERROR read_error: u32,
    /// The file handle (5.8.1.13).
    19 HANDLE handle: Handle,
    /// The number of the object in its file system (5.8.2.9).
    20 FILE_ID file_id: u64,
    /// The number of files that this user can still create (5.8.2.10).
    21 FILES_AVAILABLE files_available: u64,
    /// The number of free files that the file system can still have (5.8.2.11).
    22 FILES_FREE files_free: u64,
    /// The number of files the file system can have (5.8.2.12).
    23 FILES_TOTAL files_total: u64,
    /// The maximum number of hard links of an object (5.8.2.17).
    28 MAX_LINK max_link: u32,
    /// The maximum number of bytes of a name (5.8.2.18).
    29 MAX_NAME max_name: u32,
    /// The maximum number of bytes of a READ (5.8.2.19).
    30 MAX_READ max_read: u64,
    /// The maximum number of bytes of a WRITE (5.8.2.20).
    31 MAX_WRITE max_write: u64,
    /// The permissions (5.8.2.23).
    33 MODE mode: u32,
    /// The number of hard links (5.8.2.25).
    35 LINKS links: u32,
    /// The number of bytes free to this user (5.8.2.33).
    42 SPACE_AVAILABLE space_available: u64,
    /// The number of free bytes (5.8.2.34).
    43 SPACE_FREE space_free: u64,
    /// The size of the file system in bytes (5.8.2.35).
    44 SPACE_TOTAL space_total: u64,
    /// The number of bytes of storage that the object occupies (5.8.2.36).
    45 SPACE_USED space_used: u64,
    /// The time of the last access (5.8.2.38).
    47 ACCESSED accessed: Time,
    /// The time of the last change of the attributes (5.8.2.43).
    52 CHANGED changed: Time,
    /// The time of the last change of the data (5.8.2.44).
    53 MODIFIED modified: Time,
}
