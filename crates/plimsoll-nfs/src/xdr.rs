//! External Data Representation (RFC 4506): numbers are big-endian, every value takes a multiple
//! of four bytes.
//!
//! Decoding borrows from the message and never allocates by an unverified length, so the memory that a message uses is
//! at most proportional to the bytes of the message.

/// An error of decoding (RFC 4506, 3 and 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum XdrError {
    /// The bytes end before the end of the value.
    #[error("the message ends too early")]
    Short,
    /// A length exceeds the protocol's limit.
    #[error("{0} bytes are more than the protocol allows")]
    TooLong(u32),
    /// A record exceeds the maximum length of a reply; the number is the maximum in bytes.
    #[error("it announces a record of more than {0} bytes")]
    Record(u32),
    /// The number is not a value of the enumeration or union.
    #[error("{0} is not a value that the protocol allows")]
    NoSuchChoice(u32),
    /// Bytes follow the last value; the number of the bytes.
    #[error("{0} bytes too many")]
    Rest(usize),
}

/// A value that can be encoded as XDR (RFC 4506, 4).
pub trait Encode {
    /// Appends the encoded value.
    fn encode(&self, out: &mut Vec<u8>);
}

/// A value that can be decoded from XDR (RFC 4506, 4).
pub trait Decode<'a>: Sized {
    /// Takes the value from the front of `from`.
    ///
    /// # Errors
    /// See [`XdrError`].
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError>;
}

/// The treatment of field names by a decoder: `()` ignores field names and costs nothing; [`FieldPath`] collects the
/// names that lead to the field that could not be decoded.
pub trait Fields {
    /// Notes that the field with the RFC's name `name` could not be decoded.
    fn failed_in(&mut self, name: &'static str);
}

impl Fields for () {
    #[inline(always)]
    fn failed_in(&mut self, _: &'static str) {}
}

/// The fields that lead to a position in a message, by their names in the protocol; displayed as
/// `obj_attributes.size`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath {
    /// The fields, from the innermost to the outermost.
    fields: Vec<&'static str>,
}

impl FieldPath {
    /// The field at which decoding a value of type `T` fails; empty if decoding succeeds.
    #[must_use]
    pub fn of_failure<'a, T: Decode<'a>>(from: Decoder<'a>) -> Self {
        let mut traced = Decoder {
            left: from.left,
            passed_over: 0,
            fields: Self::default(),
        };
        let _ = T::decode(&mut traced);
        traced.fields
    }

    /// Whether the path has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

impl Fields for FieldPath {
    fn failed_in(&mut self, name: &'static str) {
        self.fields.push(name);
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, field) in self.fields.iter().rev().enumerate() {
            let dot = if i > 0 { "." } else { "" };
            write!(f, "{dot}{field}")?;
        }
        Ok(())
    }
}

/// A reader of encoded bytes (RFC 4506, 3).
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a, F = ()> {
    left: &'a [u8],
    /// The number of bytes inside decoded values that the protocol does not define, and that the decoder skipped.
    passed_over: u32,
    fields: F,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder that starts at the first of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            left: bytes,
            passed_over: 0,
            fields: (),
        }
    }

    /// Checks that the decoder has consumed all bytes.
    ///
    /// # Errors
    /// [`XdrError::Rest`] with the number of bytes that are left.
    pub fn finish(self) -> Result<(), XdrError> {
        match self.left.len() {
            0 => Ok(()),
            n => Err(XdrError::Rest(n)),
        }
    }
}

impl<'a, F: Fields> Decoder<'a, F> {
    /// The bytes that are not decoded yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// The number of bytes that the protocol does not define: bytes skipped inside values, and bytes that are left.
    #[inline]
    #[must_use]
    pub fn surplus(&self) -> u32 {
        // A record is shorter than 2^31 bytes (RFC 5531, 11).
        self.passed_over.saturating_add(self.left.len() as u32)
    }

    /// Decodes a value in the opaque data `bytes`, which this decoder has already consumed; bytes after the value count
    /// as surplus.
    ///
    /// # Errors
    /// See [`XdrError`].
    pub fn inside<R>(
        &mut self,
        bytes: &'a [u8],
        decode: impl FnOnce(&mut Self) -> Result<R, XdrError>,
    ) -> Result<R, XdrError> {
        let behind = std::mem::replace(&mut self.left, bytes);
        let value = decode(self)?;
        self.passed_over = self.surplus();
        self.left = behind;
        Ok(value)
    }

    /// Decodes the next value.
    ///
    /// # Errors
    /// See [`XdrError`].
    pub fn get<T: Decode<'a>>(&mut self) -> Result<T, XdrError> {
        T::decode(self)
    }

    /// Decodes the next value as the field with the RFC's name `name`, which a traced decoder notes at a failure.
    ///
    /// # Errors
    /// See [`XdrError`].
    #[inline]
    pub fn field<T: Decode<'a>>(&mut self, name: &'static str) -> Result<T, XdrError> {
        T::decode(self).inspect_err(|_| self.fields.failed_in(name))
    }

    /// Takes the next `len` bytes, without padding.
    ///
    /// # Errors
    /// [`XdrError::Short`].
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], XdrError> {
        let (taken, left) = self.left.split_at_checked(len).ok_or(XdrError::Short)?;
        self.left = left;
        Ok(taken)
    }

    /// Takes bytes of fixed length and their padding (RFC 4506, 4.9).
    ///
    /// # Errors
    /// [`XdrError::Short`].
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        let (bytes, _) = self.left.split_first_chunk().ok_or(XdrError::Short)?;
        self.take(N.next_multiple_of(4))?;
        Ok(*bytes)
    }

    /// Takes a length, at most `most` bytes of that length, and their padding (RFC 4506, 4.10).
    ///
    /// # Errors
    /// [`XdrError::TooLong`], [`XdrError::Short`].
    pub fn opaque(&mut self, most: u32) -> Result<&'a [u8], XdrError> {
        let len: u32 = self.get()?;
        if len > most {
            return Err(XdrError::TooLong(len));
        }
        let padded = self.take((len as usize).next_multiple_of(4))?;
        Ok(&padded[..len as usize])
    }
}

impl Encode for u32 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

impl Decode<'_> for u32 {
    #[inline]
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        Ok(Self::from_be_bytes(from.fixed()?))
    }
}

impl Encode for u64 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

impl Decode<'_> for u64 {
    #[inline]
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        Ok(Self::from_be_bytes(from.fixed()?))
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }
}

impl Decode<'_> for bool {
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => Ok(false),
            1 => Ok(true),
            other => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// Opaque data of fixed length (RFC 4506, 4.9).
impl<const N: usize> Encode for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
        out.resize(out.len() + pad(N), 0);
    }
}

impl<const N: usize> Decode<'_> for [u8; N] {
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        from.fixed()
    }
}

/// A void value (RFC 4506, 4.16).
impl Encode for () {
    fn encode(&self, _: &mut Vec<u8>) {}
}

impl<T: Encode> Encode for &T {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

/// Encodes the values of a tuple in sequence.
macro_rules! encode_tuples {
    ($(($($value:ident)*))*) => {$(
        impl<$($value: Encode),*> Encode for ($($value,)*) {
            #[allow(non_snake_case)] // the names of the types are those of the values
            fn encode(&self, out: &mut Vec<u8>) {
                let ($($value,)*) = self;
                $($value.encode(out);)*
            }
        }
    )*};
}

encode_tuples!((A B) (A B C) (A B C D) (A B C D E));

impl Decode<'_> for () {
    fn decode<F: Fields>(_: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        Ok(())
    }
}

/// Optional data (RFC 4506, 4.19).
impl<T: Encode> Encode for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        match from.get()? {
            true => Ok(Some(from.get()?)),
            false => Ok(None),
        }
    }
}

/// Appends the length of `bytes`, the bytes, and their padding (RFC 4506, 4.10).
pub fn put_opaque(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
    out.resize(out.len() + pad(bytes.len()), 0);
}

/// The number of padding bytes after `len` bytes, up to a multiple of four (RFC 4506, 3).
#[must_use]
pub fn pad(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

/// Appends a list: `true` before each value, and `false` after the last value (RFC 4506, 4.19).
pub fn put_list<T: Encode>(values: impl IntoIterator<Item = T>, out: &mut Vec<u8>) {
    for value in values {
        true.encode(out);
        value.encode(out);
    }
    false.encode(out);
}

/// Declares XDR structures: fields in sequence (RFC 4506, 4.14). `= "name"` gives a field's name in
/// the protocol if the names differ.
macro_rules! structures {
    ($($(#[$about:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$of:meta])* $field:ident: $type:ty $(= $protocol:literal)?,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $($(#[$of])* pub $field: $type,)*
        }

        impl $(<$life>)? $crate::xdr::Encode for $name $(<$life>)? {
            fn encode(&self, out: &mut Vec<u8>) {
                $($crate::xdr::Encode::encode(&self.$field, out);)*
            }
        }

        $crate::xdr::impl_decode!($name $(<$life>)?, from {
            $(let $field = from.field(structures!(@name $field $($protocol)?))?;)*
            Ok(Self { $($field,)* })
        });
    )*};
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $protocol:literal) => { $protocol };
}

/// Declares XDR unions: a number, and the fields that follow the number (RFC 4506, 4.15).
macro_rules! unions {
    ($($(#[$about:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$of:meta])* $number:literal => $choice:ident $(($($field:ident: $type:ty),*))?,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name $(<$life>)? {
            $($(#[$of])* $choice $(($($type),*))?,)*
        }

        impl $(<$life>)? $crate::xdr::Encode for $name $(<$life>)? {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$choice $(($($field),*))? => {
                        <u32 as $crate::xdr::Encode>::encode(&$number, out);
                        $($($crate::xdr::Encode::encode($field, out);)*)?
                    })*
                }
            }
        }

        $crate::xdr::impl_decode!($name $(<$life>)?, from {
            match from.get::<u32>()? {
                $($number => Ok(Self::$choice $(($(from.get::<$type>()?),*))?),)*
                other => Err($crate::xdr::XdrError::NoSuchChoice(other)),
            }
        });
    )*};
}

/// Implements [`Decode`] for a type with or without a lifetime: the plain decoder, and the decoder
/// that tracks fields if it differs.
macro_rules! impl_decode {
    ($name:ident, $($how:tt)*) => {
        $crate::xdr::impl_decode!(@impl () '_, $name, $($how)*);
    };
    ($name:ident <$life:lifetime>, $($how:tt)*) => {
        $crate::xdr::impl_decode!(@impl (<$life>) $life, $name<$life>, $($how)*);
    };
    (@impl ($($generics:tt)*) $life:lifetime, $type:ty,
        $from:ident $decode:block
    ) => {
        impl $($generics)* $crate::xdr::Decode<$life> for $type {
            fn decode<F: $crate::xdr::Fields>(
                $from: &mut $crate::xdr::Decoder<$life, F>,
            ) -> Result<Self, $crate::xdr::XdrError> $decode
        }
    };
}

/// Declares XDR enumerations (RFC 4506, 4.3).
macro_rules! choices {
    ($($(#[$about:meta])* $name:ident {
        $($(#[$of:meta])* $choice:ident = $number:literal,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name {
            $(
                $(#[$of])*
                #[doc = concat!("Number ", $number, ".")]
                $choice = $number,
            )*
        }

        impl $name {
            /// All values of the XDR enumeration, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$choice,)*];

            /// The value with the XDR number `number`; `None` if the enumeration does not define the number.
            #[must_use]
            pub fn of(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$choice),)*
                    _ => None,
                }
            }
        }

        impl $crate::xdr::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                (*self as u32).encode(out);
            }
        }

        impl $crate::xdr::Decode<'_> for $name {
            fn decode<F: $crate::xdr::Fields>(
                from: &mut $crate::xdr::Decoder<'_, F>,
            ) -> Result<Self, $crate::xdr::XdrError> {
                let number = from.get()?;
                Self::of(number).ok_or($crate::xdr::XdrError::NoSuchChoice(number))
            }
        }
    )*};
}

/// Declares an XDR enumeration as a table: number, name in the protocol, and description.
macro_rules! named_choices {
    ($($(#[$about:meta])* $enum:ident {
        $($choice:ident = $number:literal $name:literal $description:literal,)*
    })*) => {$(
        $crate::xdr::choices! {
            $(#[$about])*
            $enum { $(#[doc = concat!("`", $name, "`: ", $description, ".")] $choice = $number,)* }
        }

        impl $enum {
            /// The name of the value in the RFC, such as `NFS3ERR_STALE`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$choice => $name,)*
                }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}

pub(crate) use {choices, impl_decode, named_choices, structures, unions};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_have_the_form_of_the_rfc() {
        let mut out = Vec::new();
        7u32.encode(&mut out);
        (1u64 << 32).encode(&mut out);
        true.encode(&mut out);
        Some(9u32).encode(&mut out);
        None::<u32>.encode(&mut out);
        put_opaque(b"abcde", &mut out);
        let words = [7, 1, 0, 1, 1, 9, 0, 5];
        let mut want: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_be_bytes()).collect();
        want.extend_from_slice(b"abcde\0\0\0");
        assert_eq!(out, want);
    }

    #[test]
    fn malformed_values_are_refused() {
        let two = 2u32.to_be_bytes();
        assert_eq!(
            Decoder::new(&two).get::<bool>(),
            Err(XdrError::NoSuchChoice(2))
        );
        assert_eq!(Decoder::new(&two[..3]).get::<u32>(), Err(XdrError::Short));
        let mut long = Decoder::new(&[0xff; 12]);
        assert_eq!(long.opaque(64), Err(XdrError::TooLong(u32::MAX)));
        assert_eq!(
            Decoder::new(&[0xff; 12]).opaque(u32::MAX),
            Err(XdrError::Short)
        );
        assert_eq!(Decoder::new(&two).finish(), Err(XdrError::Rest(4)));
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..100), n: u64) {
            let mut out = Vec::new();
            put_opaque(&bytes, &mut out);
            n.encode(&mut out);
            prop_assert_eq!(out.len() % 4, 0);
            let mut from = Decoder::new(&out);
            prop_assert_eq!(from.opaque(100).unwrap(), &bytes[..]);
            prop_assert_eq!(from.get::<u64>().unwrap(), n);
            prop_assert_eq!(from.finish(), Ok(()));
        }
    }
}
