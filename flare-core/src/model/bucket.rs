//! Takes a document's URL; gives its bucket, and the lane a bucket belongs to. Never changes: rows
//! store buckets, so the hash is written out here and held by a golden test.

use serde::{Deserialize, Serialize};

/// How many buckets there are.
const BUCKETS: u32 = 1 << 16;

/// A stable 16-bit hash of a document's URL; a lane works a [range](BucketRange) of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bucket(u16);

impl Bucket {
    /// The bucket with this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The bucket's number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The lane of this bucket among `lanes` of them: bucket · lanes >> 16. No lanes count as one.
    ///
    /// ```
    /// # use flare_core::model::Bucket;
    /// assert_eq!(Bucket::new(0x7FFF).lane(2), 0);
    /// assert_eq!(Bucket::new(0x8000).lane(2), 1);
    /// ```
    pub const fn lane(self, lanes: u16) -> u16 {
        let lanes = if lanes == 0 { 1 } else { lanes };
        // Below `lanes`, as the bucket is below 2^16.
        ((self.0 as u32 * lanes as u32) >> 16) as u16
    }

    /// FNV-1a over the text, then the top of MurmurHash3's finaliser: FNV alone leaves URLs that differ in
    /// their last digits close together, and a lane looks at the top bits first.
    pub(super) fn of(text: &str) -> Self {
        let fnv = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        Self((mixed >> 48) as u16)
    }
}

/// Buckets from `first` to `last`, both included; none if `first` is above `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BucketRange {
    /// The lowest bucket of the range.
    pub first: Bucket,
    /// The highest bucket of the range.
    pub last: Bucket,
}

impl BucketRange {
    /// Every bucket.
    pub const ALL: Self = Self { first: Bucket(0), last: Bucket(u16::MAX) };

    /// No bucket.
    pub const NONE: Self = Self { first: Bucket(u16::MAX), last: Bucket(0) };

    /// Exactly the buckets whose [lane](Bucket::lane) among `lanes` is `lane`; a lane that does not
    /// exist has [none](Self::NONE).
    ///
    /// ```
    /// # use flare_core::model::{Bucket, BucketRange};
    /// let upper_half = BucketRange { first: Bucket::new(0x8000), last: Bucket::new(0xFFFF) };
    /// assert_eq!(BucketRange::of_lane(1, 2), upper_half);
    /// assert_eq!(BucketRange::of_lane(0, 1), BucketRange::ALL);
    /// ```
    pub const fn of_lane(lane: u16, lanes: u16) -> Self {
        let lanes = if lanes == 0 { 1 } else { lanes };
        if lane >= lanes {
            return Self::NONE;
        }
        // With fewer than 2^16 lanes each has a bucket, so the next lane's start is above zero,
        // and both ends fit: at most 2^16 - 1.
        Self {
            first: Bucket(start(lane as u32, lanes) as u16),
            last: Bucket((start(lane as u32 + 1, lanes) - 1) as u16),
        }
    }

    /// Whether `bucket` is one of these.
    pub const fn contains(self, bucket: Bucket) -> bool {
        self.first.0 <= bucket.0 && bucket.0 <= self.last.0
    }
}

/// The first bucket of a lane: lane · 2^16 / lanes, rounded up (lane ≤ 2^16, so in 64 bits).
const fn start(lane: u32, lanes: u16) -> u64 {
    (lane as u64 * BUCKETS as u64).div_ceil(lanes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DocumentUrl;

    /// Stored rows carry these numbers: a change here loses documents.
    #[test]
    fn buckets_never_change() {
        let golden = [
            ("http://a/b", 45_833_u16),
            ("https://example.com/users/1", 22_302),
            ("https://example.com/users/2", 32_439),
            ("https://example.com:8443/caf%C3%A9/~x", 39_622),
        ];
        let found =
            golden.map(|(url, _)| (url, DocumentUrl::parse(url).unwrap().bucket().number()));
        assert_eq!(found, golden);
    }

    #[test]
    fn equal_documents_share_a_bucket() {
        let one = DocumentUrl::parse("HTTP://Example.COM:80/%7Euser").unwrap();
        let other = DocumentUrl::parse("http://example.com/~user").unwrap();
        assert_eq!(one.bucket(), other.bucket());
    }

    #[test]
    fn consecutive_documents_spread_evenly_over_lanes() {
        for lanes in [2, 7, 16] {
            let mut counts = vec![0_u32; usize::from(lanes)];
            for id in 0..50_000 {
                let url = DocumentUrl::parse(&format!("https://example.com/users/{id}")).unwrap();
                counts[usize::from(url.bucket().lane(lanes))] += 1;
            }
            let mean = 50_000 / u32::from(lanes);
            for count in counts {
                assert!(count.abs_diff(mean) < mean / 10, "{count} of {mean} with {lanes} lanes");
            }
        }
    }

    #[test]
    fn lanes_partition_the_buckets_for_every_count_up_to_1024() {
        for lanes in (1..=1024).chain([1025, 32_768, 65_534, 65_535]) {
            let mut next = 0_u32;
            for lane in 0..lanes {
                let range = BucketRange::of_lane(lane, lanes);
                assert_eq!(u32::from(range.first.number()), next, "lane {lane} of {lanes}");
                assert!(range.first <= range.last, "lane {lane} of {lanes} is empty");
                assert_eq!(range.first.lane(lanes), lane);
                assert_eq!(range.last.lane(lanes), lane);
                next = u32::from(range.last.number()) + 1;
            }
            assert_eq!(next, BUCKETS, "{lanes} lanes");
        }
    }

    #[test]
    fn a_range_holds_exactly_the_buckets_of_its_lane() {
        for lanes in [1, 2, 3, 7, 1000, 1024] {
            let ranges: Vec<_> = (0..lanes).map(|lane| BucketRange::of_lane(lane, lanes)).collect();
            for number in (0..=u16::MAX).step_by(13).chain([u16::MAX]) {
                let bucket = Bucket::new(number);
                let holding: Vec<_> =
                    (0..lanes).filter(|lane| ranges[usize::from(*lane)].contains(bucket)).collect();
                assert_eq!(holding, [bucket.lane(lanes)], "bucket {number}, {lanes} lanes");
            }
        }
    }

    #[test]
    fn a_lane_that_does_not_exist_has_no_bucket() {
        for number in [0, 1, 0x8000, u16::MAX] {
            assert!(!BucketRange::of_lane(2, 2).contains(Bucket::new(number)));
            assert!(!BucketRange::NONE.contains(Bucket::new(number)));
            assert!(BucketRange::ALL.contains(Bucket::new(number)));
        }
    }

    #[test]
    fn no_lanes_count_as_one() {
        assert_eq!(Bucket::new(u16::MAX).lane(0), 0);
        assert_eq!(BucketRange::of_lane(0, 0), BucketRange::ALL);
    }

    #[test]
    fn a_bucket_is_a_number_in_json() {
        assert_eq!(serde_json::to_string(&Bucket::new(7)).unwrap(), "7");
        assert_eq!(serde_json::from_str::<Bucket>("65535").unwrap(), Bucket::new(65_535));
        assert!(serde_json::from_str::<Bucket>("65536").is_err());
    }
}
