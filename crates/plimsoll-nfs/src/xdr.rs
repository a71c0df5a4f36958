//! External Data Representation (RFC 4506): numbers are big-endian, everything takes a multiple
//! of four bytes.
//!
//! Decoding borrows from the message and never allocates by a length that the message merely
//! claims, so that no message can take more memory than it has bytes.

/// Why bytes are not what they should be (RFC 4506, 3 and 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum XdrError {
    /// The bytes end before the value does.
    #[error("the message ends too early")]
    Short,
    /// A length is above what the protocol allows.
    #[error("{0} bytes are more than the protocol allows")]
    TooLong(u32),
    /// A record is longer than any answer to what was asked.
    #[error("it announces a record of more than {0} bytes")]
    Record(u32),
    /// A number that stands for none of the choices.
    #[error("{0} is none of the protocol's choices")]
    NoSuchChoice(u32),
    /// Bytes are left when everything has been read.
    #[error("{0} bytes too many")]
    Rest(usize),
}

/// What can be written as XDR (RFC 4506, 4).
pub trait Encode {
    /// Appends the value.
    fn encode(&self, out: &mut Vec<u8>);
}

/// What can be read from XDR (RFC 4506, 4).
pub trait Decode<'a>: Sized {
    /// Takes the value from the front of `from`.
    ///
    /// # Errors
    /// See [`XdrError`].
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError>;

    /// [`Decode::decode`] for values that could not be decoded before: an error leaves in `path`
    /// the fields that lead to its place. This is a function of its own so that decoding need not
    /// keep track of fields.
    ///
    /// # Errors
    /// See [`XdrError`].
    fn decode_traced(from: &mut Decoder<'a>, _path: &mut FieldPath) -> Result<Self, XdrError> {
        Self::decode(from)
    }
}

/// The fields that lead to a place in a message, as its protocol names them. Displayed as
/// `obj_attributes.size`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath {
    /// The innermost field first.
    fields: Vec<&'static str>,
}

impl FieldPath {
    /// Where decoding a value of this type from these bytes fails; empty if it does not.
    #[must_use]
    pub fn of_failure<'a, T: Decode<'a>>(mut from: Decoder<'a>) -> Self {
        let mut path = Self::default();
        let _ = T::decode_traced(&mut from, &mut path);
        path
    }

    /// Decodes a field, whose name is added if that fails.
    ///
    /// # Errors
    /// See [`XdrError`].
    pub fn field<'a, T: Decode<'a>>(
        &mut self,
        name: &'static str,
        from: &mut Decoder<'a>,
    ) -> Result<T, XdrError> {
        let decoded = T::decode_traced(from, self);
        if decoded.is_err() {
            self.fields.push(name);
        }
        decoded
    }

    /// Whether no field is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
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

/// Bytes that are being decoded (RFC 4506, 3).
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    left: &'a [u8],
    /// Bytes inside values that were passed over because the protocol has nothing there.
    passed_over: u32,
}

impl<'a> Decoder<'a> {
    /// Decodes these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            left: bytes,
            passed_over: 0,
        }
    }

    /// Bytes that were not decoded yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// Bytes that are left once a message has been decoded, and those that were passed over inside
    /// it: what the other side sent beyond what the protocol says.
    #[inline]
    #[must_use]
    pub fn surplus(&self) -> u32 {
        // A record is shorter than 2^31 bytes (RFC 5531, 11).
        self.passed_over.saturating_add(self.left.len() as u32)
    }

    /// Counts bytes inside a value that the protocol has nothing for.
    #[inline]
    pub fn pass_over(&mut self, bytes: u32) {
        self.passed_over = self.passed_over.saturating_add(bytes);
    }

    /// The next value.
    ///
    /// # Errors
    /// See [`XdrError`].
    pub fn get<T: Decode<'a>>(&mut self) -> Result<T, XdrError> {
        T::decode(self)
    }

    /// The next `len` bytes, without padding.
    ///
    /// # Errors
    /// [`XdrError::Short`].
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], XdrError> {
        let (taken, left) = self.left.split_at_checked(len).ok_or(XdrError::Short)?;
        self.left = left;
        Ok(taken)
    }

    /// Bytes of fixed length and their padding (RFC 4506, 4.9).
    ///
    /// # Errors
    /// [`XdrError::Short`].
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        let (bytes, _) = self.left.split_first_chunk().ok_or(XdrError::Short)?;
        self.take(N.next_multiple_of(4))?;
        Ok(*bytes)
    }

    /// Bytes with their length before them, of at most `most` (RFC 4506, 4.10).
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

    /// Makes sure that everything was decoded.
    ///
    /// # Errors
    /// [`XdrError::Rest`].
    pub fn finish(self) -> Result<(), XdrError> {
        match self.left.len() {
            0 => Ok(()),
            n => Err(XdrError::Rest(n)),
        }
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
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
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
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Ok(Self::from_be_bytes(from.fixed()?))
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }
}

impl Decode<'_> for bool {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => Ok(false),
            1 => Ok(true),
            other => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// Eight bytes that mean something to the server only: verifiers.
impl Encode for [u8; 8] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl Decode<'_> for [u8; 8] {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        from.fixed()
    }
}

/// Nothing (RFC 4506, 4.16).
impl Encode for () {
    fn encode(&self, _: &mut Vec<u8>) {}
}

impl Decode<'_> for () {
    fn decode(_: &mut Decoder<'_>) -> Result<Self, XdrError> {
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
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        match from.get()? {
            true => Ok(Some(from.get()?)),
            false => Ok(None),
        }
    }

    fn decode_traced(from: &mut Decoder<'a>, path: &mut FieldPath) -> Result<Self, XdrError> {
        match from.get()? {
            true => T::decode_traced(from, path).map(Some),
            false => Ok(None),
        }
    }
}

/// Bytes with their length before them (RFC 4506, 4.10).
pub fn put_opaque(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
    out.resize(out.len() + pad(bytes.len()), 0);
}

/// Bytes that follow `len` bytes to fill up a multiple of four (RFC 4506, 3).
#[must_use]
pub fn pad(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

/// Values one after the other, each announced by a `true` and the last followed by a `false`
/// (RFC 4506, 4.19).
pub fn put_list<T: Encode>(values: impl IntoIterator<Item = T>, out: &mut Vec<u8>) {
    for value in values {
        true.encode(out);
        value.encode(out);
    }
    false.encode(out);
}

/// Makes structures of XDR: their fields one after the other (RFC 4506, 4.14). `= "name"` gives the
/// protocol's name of a field where it is another.
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

        structures!(@decode $name $(<$life>)? { $($field $($protocol)?,)* });
    )*};
    (@decode $name:ident { $($field:ident $($protocol:literal)?,)* }) => {
        impl $crate::xdr::Decode<'_> for $name {
            fn decode(from: &mut $crate::xdr::Decoder<'_>) -> Result<Self, $crate::xdr::XdrError> {
                $(let $field = from.get()?;)*
                Ok(Self { $($field,)* })
            }

            fn decode_traced(
                from: &mut $crate::xdr::Decoder<'_>,
                path: &mut $crate::xdr::FieldPath,
            ) -> Result<Self, $crate::xdr::XdrError> {
                $(let $field = path.field(structures!(@name $field $($protocol)?), from)?;)*
                Ok(Self { $($field,)* })
            }
        }
    };
    (@decode $name:ident <$life:lifetime> { $($field:ident $($protocol:literal)?,)* }) => {
        impl<$life> $crate::xdr::Decode<$life> for $name<$life> {
            fn decode(from: &mut $crate::xdr::Decoder<$life>) -> Result<Self, $crate::xdr::XdrError> {
                $(let $field = from.get()?;)*
                Ok(Self { $($field,)* })
            }

            fn decode_traced(
                from: &mut $crate::xdr::Decoder<$life>,
                path: &mut $crate::xdr::FieldPath,
            ) -> Result<Self, $crate::xdr::XdrError> {
                $(let $field = path.field(structures!(@name $field $($protocol)?), from)?;)*
                Ok(Self { $($field,)* })
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $protocol:literal) => { $protocol };
}

/// Makes enumerations of XDR (RFC 4506, 4.3).
macro_rules! choices {
    ($($(#[$about:meta])* $name:ident {
        $($(#[$of:meta])* $choice:ident = $number:literal,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$of])* $choice = $number,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$choice,)*];

            /// The one of this number.
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
            fn decode(from: &mut $crate::xdr::Decoder<'_>) -> Result<Self, $crate::xdr::XdrError> {
                let number = from.get()?;
                Self::of(number).ok_or($crate::xdr::XdrError::NoSuchChoice(number))
            }
        }
    )*};
}

pub(crate) use {choices, structures};

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
