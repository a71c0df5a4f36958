//! Attributes, which are asked for and given by a bitmap (RFC 7530, 5 and RFC 8881, 5).

use super::types::{FileType, FsId, Handle, Time};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, put_opaque};

/// Words of a bitmap that are taken at most; attributes we know are in the first two.
const MAX_BITMAP_WORDS: u32 = 8;

/// A set of attributes, `bitmap4` (RFC 7530, 2.1): bit *n* is attribute *n*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bitmap(pub u64);

impl Bitmap {
    /// The set of these attributes, by their numbers below 64.
    #[must_use]
    pub const fn of(numbers: &[u32]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < numbers.len() {
            bits |= 1 << numbers[i];
            i += 1;
        }
        Self(bits)
    }

    /// Whether an attribute is in it.
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
    /// Attributes from 64 on are refused, since their values could not be passed over.
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
        /// Numbers of attributes (RFC 7530, 5.8).
        pub mod number {
            $($(#[$of])* pub const $constant: u32 = $number;)*
        }

        /// Attributes of an object, as far as they are given, `fattr4` (RFC 7530, 2.1).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Attributes {
            $($(#[$of])* pub $field: Option<$type>,)*
        }

        impl Attributes {
            /// Which are given.
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
            /// Values follow each other without their lengths, so that one of an unknown
            /// attribute cannot be passed over.
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
    /// What it is (5.8.1.2).
    1 KIND kind: FileType,
    /// Counts its changes (5.8.1.4).
    3 CHANGE change: u64,
    /// Bytes (5.8.1.5).
    4 SIZE size: u64,
    /// Its file system (5.8.1.9).
    8 FSID fsid: FsId,
    /// Seconds of a lease (5.8.1.11).
    10 LEASE_TIME lease_time: u32,
    /// Why READDIR has no other attribute of an entry (5.8.1.12).
    11 READ_ERROR read_error: u32,
    /// Its handle (5.8.1.13).
    19 HANDLE handle: Handle,
    /// Number of the object in its file system (5.8.2.9).
    20 FILE_ID file_id: u64,
    /// Objects that this user may still make (5.8.2.10).
    21 FILES_AVAILABLE files_available: u64,
    /// Objects that may still be made (5.8.2.11).
    22 FILES_FREE files_free: u64,
    /// Objects that may be there (5.8.2.12).
    23 FILES_TOTAL files_total: u64,
    /// Hard links that an object may have (5.8.2.17).
    28 MAX_LINK max_link: u32,
    /// Bytes that a name may have (5.8.2.18).
    29 MAX_NAME max_name: u32,
    /// Bytes of the longest READ (5.8.2.19).
    30 MAX_READ max_read: u64,
    /// Bytes of the longest WRITE (5.8.2.20).
    31 MAX_WRITE max_write: u64,
    /// Permissions (5.8.2.23).
    33 MODE mode: u32,
    /// Hard links (5.8.2.25).
    35 LINKS links: u32,
    /// Bytes that this user may still take (5.8.2.33).
    42 SPACE_AVAILABLE space_available: u64,
    /// Bytes that are free (5.8.2.34).
    43 SPACE_FREE space_free: u64,
    /// Bytes of the file system (5.8.2.35).
    44 SPACE_TOTAL space_total: u64,
    /// Bytes that it takes (5.8.2.36).
    45 SPACE_USED space_used: u64,
    /// Last access (5.8.2.38).
    47 ACCESSED accessed: Time,
    /// Last change of the attributes (5.8.2.43).
    52 CHANGED changed: Time,
    /// Last change of the data (5.8.2.44).
    53 MODIFIED modified: Time,
}
