//! Sparse histograms: only the occupied buckets of the histograms in the log.
//!
//! The decoder of the crate `hdrhistogram` makes whole histograms of a few hundred kilobytes, mostly zeros: for an hour
//! of intervals a hundred times the size of the counts.

use flate2::{Decompress, FlushDecompress, Status};

/// Magic number, in the first four bytes, of HdrHistogram's deflated form of a histogram.
const DEFLATED_COOKIE: u32 = 0x1c84_9314;

/// Magic number of HdrHistogram's V2 form of a histogram, which the deflated form contains.
const V2_COOKIE: u32 = 0x1c84_9313;

/// Length of the header of HdrHistogram's V2 form in bytes.
const HEADER_BYTES: usize = 40;

/// Maximum size of an inflated histogram in bytes: ten times the size of an hour's latencies with samples in every
/// bucket.
const MAX_HISTOGRAM_BYTES: usize = 4 << 20;

/// Initial size of the buffer for inflated histograms in bytes; most histograms fit.
const INITIAL_HISTOGRAM_BYTES: usize = 16 << 10;

/// Inflates histograms one after another with one decompressor and one buffer: allocating both takes longer than
/// inflating a histogram.
pub(crate) struct Inflater {
    state: Decompress,
    plain: Vec<u8>,
}

impl Inflater {
    pub(crate) fn new() -> Self {
        Self {
            state: Decompress::new(true),
            plain: Vec::with_capacity(INITIAL_HISTOGRAM_BYTES),
        }
    }

    fn inflate(&mut self, bytes: &[u8]) -> Result<&[u8], String> {
        let damaged = |e: &dyn std::fmt::Display| format!("the histogram is damaged: {e}");
        self.state.reset(true);
        self.plain.clear();
        loop {
            let read = self.state.total_in() as usize;
            let rest = bytes.get(read..).unwrap_or_default();
            let status = self
                .state
                .decompress_vec(rest, &mut self.plain, FlushDecompress::Finish)
                .map_err(|e| damaged(&e))?;
            if status == Status::StreamEnd {
                return Ok(&self.plain);
            }
            let room = self.plain.capacity() - self.plain.len();
            if room > 0 {
                return Err("the histogram is cut short".into());
            }
            if self.plain.len() >= MAX_HISTOGRAM_BYTES {
                return Err("the histogram is damaged: it never ends".into());
            }
            self.plain
                .reserve(self.plain.len().max(INITIAL_HISTOGRAM_BYTES));
        }
    }
}

/// A latency distribution as the occupied buckets, in increasing order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SparseHistogram {
    /// Greatest value of each occupied bucket in nanoseconds, and number of samples in the bucket.
    pub counts: Vec<(u64, u64)>,
}

/// Converts the indices of a histogram's buckets to latencies.
struct Buckets {
    unit_magnitude: u32,
    half_magnitude: u32,
}

impl Buckets {
    fn new(digits: u32, lowest: u64) -> Option<Self> {
        (digits <= 5 && lowest > 0).then(|| Self {
            unit_magnitude: lowest.ilog2(),
            half_magnitude: (2 * 10u64.pow(digits)).next_power_of_two().ilog2() - 1,
        })
    }

    /// An index beyond the buckets of all 64-bit values.
    fn end(&self) -> u64 {
        (u64::from(u64::BITS) + 2) << self.half_magnitude
    }

    /// Greatest value of the bucket at `index`; `None` beyond 64 bits.
    fn greatest(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_magnitude;
        let (bucket, sub) = match index >> self.half_magnitude {
            0 => (0, index),
            n => (u32::try_from(n - 1).ok()?, index % half + half),
        };
        let shift = bucket.checked_add(self.unit_magnitude)?;
        // A greater shift would lose bits.
        let beyond = u128::from(sub + 1) << Some(shift).filter(|s| *s <= u64::BITS)?;
        u64::try_from(beyond - 1).ok()
    }
}

impl SparseHistogram {
    /// Number of operations whose latencies form the histogram.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, n)| n).sum()
    }

    /// Decodes a histogram in the deflated V2 form.
    ///
    /// # Errors
    /// One sentence about the fault in the bytes.
    pub(crate) fn decode(inflater: &mut Inflater, bytes: &[u8]) -> Result<Self, String> {
        let cut = || "the histogram is cut short".to_owned();
        let head = bytes.get(..8).ok_or_else(cut)?;
        if number(head, 0) != u64::from(DEFLATED_COOKIE) {
            return Err("the histogram is not of the deflated V2 form".into());
        }
        let plain = inflater.inflate(&bytes[8..])?;
        let header = plain.get(..HEADER_BYTES).ok_or_else(cut)?;
        if number(header, 0) != u64::from(V2_COOKIE) {
            return Err("the histogram is not of the V2 form".into());
        }
        let length = number(header, 4) as usize;
        let digits = number(header, 12) as u32;
        let lowest = number(header, 16) << 32 | number(header, 20);
        let buckets = Buckets::new(digits, lowest);
        let buckets = buckets.ok_or("the histogram has bounds that cannot be")?;
        let payload = plain[HEADER_BYTES..].get(..length).ok_or_else(cut)?;
        Self::unpack(payload, &buckets)
    }

    fn unpack(mut payload: &[u8], buckets: &Buckets) -> Result<Self, String> {
        let mut counts = Vec::new();
        let mut index = 0u64;
        let mut samples = 0u64;
        let beyond = || "the histogram has values beyond 64 bits".to_owned();
        while !payload.is_empty() {
            let n = zig_zag(&mut payload).ok_or("the histogram is cut short")?;
            if n < 0 {
                index = index.checked_add(n.unsigned_abs()).ok_or_else(beyond)?;
                continue;
            }
            if n > 0 {
                let value = buckets.greatest(index).ok_or_else(beyond)?;
                let more = samples.checked_add(n.unsigned_abs());
                samples = more.ok_or("the histogram has more samples than can be counted")?;
                counts.push((value, n.unsigned_abs()));
            }
            index = index.checked_add(1).ok_or_else(beyond)?;
            // A few kilobytes can inflate to millions of empty buckets.
            if index > buckets.end() {
                return Err(beyond());
            }
        }
        Ok(Self { counts })
    }
}

/// Four bytes at `at`, in big-endian order; the caller has checked the length.
fn number(bytes: &[u8], at: usize) -> u64 {
    let four = &bytes[at..at + 4];
    four.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Reads a ZigZag LEB128 number: seven bits per byte, least significant first, eight bits in the ninth byte; the lowest
/// bit is the sign.
fn zig_zag(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for i in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if i == 8 {
            value |= u64::from(*byte) << 56;
        } else {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
    use proptest::prelude::*;
    use std::io::Write as _;

    fn encoded(h: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(h, &mut bytes).unwrap();
        bytes
    }

    fn deflated(plain: &[u8]) -> Vec<u8> {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(plain).unwrap();
        let stream = zlib.finish().unwrap();
        let mut bytes = DEFLATED_COOKIE.to_be_bytes().to_vec();
        bytes.extend((stream.len() as u32).to_be_bytes());
        bytes.extend(stream);
        bytes
    }

    /// Encodes a signed number as ZigZag LEB128, as HdrHistogram's V2 form encodes counts.
    fn zig_zag_bytes(n: i64) -> Vec<u8> {
        let mut left = (n << 1 ^ n >> 63).cast_unsigned();
        let mut bytes = Vec::new();
        for _ in 0..8 {
            if left < 0x80 {
                break;
            }
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    }

    /// Bytes that inflate to more than `MAX_HISTOGRAM_BYTES` are refused. The empty buckets of a histogram with 5
    /// significant digits, which would take 50 MB, are not allocated.
    #[test]
    fn what_would_take_far_more_memory_than_it_has_bytes_is_refused() {
        let endless = deflated(&vec![0; MAX_HISTOGRAM_BYTES + (1 << 20)]);
        let refused = SparseHistogram::decode(&mut Inflater::new(), &endless).unwrap_err();
        assert!(refused.contains("it never ends"), "{refused}");
        let mut exact = Histogram::<u64>::new(5).unwrap();
        exact.record(1 << 60).unwrap();
        let exact = encoded(&exact);
        assert!(SparseHistogram::decode(&mut Inflater::new(), &exact).is_ok());
    }

    proptest! {
        #[test]
        fn what_the_crate_writes_is_read_as_the_crate_counts_it(
            digits in 0u8..=5,
            lowest in 1u64..5000,
            samples in prop::collection::vec((0u64..10_000_000_000_000, 1u64..1_000_000_000_000), 0..60),
        ) {
            let mut h = Histogram::<u64>::new_with_bounds(lowest, lowest * 2, digits).unwrap();
            h.auto(true);
            for (value, n) in &samples {
                h.record_n(*value, *n).unwrap();
            }
            let expected: Vec<(u64, u64)> = h
                .iter_recorded()
                .map(|v| (h.highest_equivalent(v.value_iterated_to()), v.count_at_value()))
                .collect();
            let found = SparseHistogram::decode(&mut Inflater::new(), &encoded(&h)).unwrap();
            prop_assert_eq!(found.count(), h.len());
            prop_assert_eq!(found.counts, expected);
        }

        /// Headers and counts that no program writes, bare and inside a valid deflated stream.
        #[test]
        fn any_counts_are_an_error_or_a_histogram(
            digits in 0u32..8,
            lowest in prop_oneof![0u64..5, Just(u64::MAX), any::<u64>()],
            numbers in prop::collection::vec(
                prop_oneof![-3i64..3, Just(i64::MIN), Just(i64::MAX), any::<i64>()], 0..12),
        ) {
            let payload: Vec<u8> = numbers.iter().flat_map(|n| zig_zag_bytes(*n)).collect();
            let mut plain = V2_COOKIE.to_be_bytes().to_vec();
            plain.extend((payload.len() as u32).to_be_bytes());
            plain.extend([0; 4]);
            plain.extend(digits.to_be_bytes());
            plain.extend(lowest.to_be_bytes());
            plain.extend([0xff; 16]);
            plain.extend(payload);
            if let Ok(found) = SparseHistogram::decode(&mut Inflater::new(), &deflated(&plain)) {
                prop_assert!(found.count() >= found.counts.len() as u64);
                prop_assert!(found.counts.is_sorted_by(|a, b| a.0 < b.0));
            }
        }

        #[test]
        fn damaged_bytes_are_an_error_or_another_histogram_and_never_a_panic(
            at in 0usize..200,
            byte in any::<u8>(),
            cut in 0usize..200,
        ) {
            let mut h = Histogram::<u64>::new(3).unwrap();
            (1..50u64).for_each(|v| h.record(v * v * 1000).unwrap());
            let mut bytes = encoded(&h);
            let len = bytes.len();
            bytes[at % len] = byte;
            let _ = SparseHistogram::decode(&mut Inflater::new(), &bytes);
            let cut = cut % len;
            prop_assert!(SparseHistogram::decode(&mut Inflater::new(), &bytes[..cut]).is_err());
        }
    }

    #[test]
    fn headers_that_no_histogram_has_are_named() {
        let decode =
            |bytes: &[u8]| SparseHistogram::decode(&mut Inflater::new(), bytes).unwrap_err();
        assert_eq!(decode(&[0; 7]), "the histogram is cut short");
        assert_eq!(
            decode(&[0; 8]),
            "the histogram is not of the deflated V2 form"
        );
        assert_eq!(decode(&deflated(&[0; 39])), "the histogram is cut short");
        assert_eq!(
            decode(&deflated(&[0; 40])),
            "the histogram is not of the V2 form"
        );
        let header = |length: u32, digits: u32, lowest: u64, payload: &[u8]| {
            let mut plain = V2_COOKIE.to_be_bytes().to_vec();
            plain.extend(length.to_be_bytes());
            plain.extend([0; 4]);
            plain.extend(digits.to_be_bytes());
            plain.extend(lowest.to_be_bytes());
            plain.extend([0; 16]);
            plain.extend(payload);
            deflated(&plain)
        };
        let bounds = "the histogram has bounds that cannot be";
        assert_eq!(decode(&header(0, 6, 1, &[])), bounds);
        assert_eq!(decode(&header(0, 3, 0, &[])), bounds);
        assert_eq!(
            decode(&header(3, 3, 1, &[2, 2])),
            "the histogram is cut short"
        );
        assert_eq!(
            decode(&header(1, 3, 1, &[0x80])),
            "the histogram is cut short"
        );
        // Two samples of 0, four empty buckets, one sample of 5; bytes after the payload are ignored.
        let counts = |bytes: &[u8]| {
            SparseHistogram::decode(&mut Inflater::new(), bytes)
                .unwrap()
                .counts
        };
        assert_eq!(counts(&header(3, 3, 1, &[4, 7, 2, 99])), [(0, 2), (5, 1)]);
        // With a lowest value of 1 << 33, a bucket is 1 << 33 wide.
        assert_eq!(
            counts(&header(2, 3, 1 << 33, &[2, 2])),
            [((1 << 33) - 1, 1), ((2 << 33) - 1, 1)]
        );
    }

    #[test]
    fn more_samples_than_64_bits_are_refused() {
        let buckets = Buckets::new(3, 1).unwrap();
        let payload = |numbers: &[i64]| -> Vec<u8> {
            numbers.iter().flat_map(|n| zig_zag_bytes(*n)).collect()
        };
        let unpack = |numbers: &[i64]| SparseHistogram::unpack(&payload(numbers), &buckets);
        assert_eq!(unpack(&[i64::MAX, i64::MAX, 1]).unwrap().count(), u64::MAX);
        let more = unpack(&[i64::MAX, i64::MAX, 2]).unwrap_err();
        assert_eq!(more, "the histogram has more samples than can be counted");
    }

    #[test]
    fn signed_numbers_have_seven_bits_a_byte() {
        for (bytes, expected) in [
            (&[0][..], Some(0)),
            (&[1], Some(-1)),
            (&[2], Some(1)),
            (&[0x80, 1], Some(64)),
            (&[0xff, 0xff, 3], Some(-32_768)),
            (&[0xff; 9], Some(i64::MIN)),
            (
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                Some(i64::MAX),
            ),
            (&[0x80, 0x80], None),
        ] {
            let mut rest = bytes;
            assert_eq!(zig_zag(&mut rest), expected, "{bytes:x?}");
            assert!(rest.is_empty());
        }
    }
}
