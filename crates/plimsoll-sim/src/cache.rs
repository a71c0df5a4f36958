//! Caches that look up every referenced block, or a sample of the blocks.
//!
//! A cache of more than [`MAX_TRACKED_BLOCKS`] blocks is sampled as in SHARDS (Waldspurger et al., FAST 2015): blocks
//! whose hash is below a threshold are looked up in a cache that is smaller by the sampling factor; every other
//! reference is a hit with the probability given by the hit ratio of the sampled blocks.

use hashlink::{LinkedHashMap, LruCache};
use plimsoll_plan::Rng;
use plimsoll_plan::hash::mix64;
use rand::RngExt as _;

/// Maximum number of blocks that a cache instance tracks; each takes about 50 bytes.
pub(crate) const MAX_TRACKED_BLOCKS: u64 = 1 << 18;

/// Queue sizes recommended for 2Q by Johnson and Shasha (VLDB 1994): a quarter of the blocks for A1in (blocks
/// referenced once), and as many names as half of the blocks for A1out (blocks evicted from A1in).
const IN_SHARE: f64 = 0.25;
const OUT_SHARE: f64 = 0.5;

/// Weight, in references, of the initial hit ratio of a sampled cache: keeps the first few references from dominating.
const PRIOR_REFERENCES: f64 = 16.0;

/// Replacement policy: the choice of the block that a full cache evicts for a new block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Lru,
    TwoQueue,
}

/// Maximum weight, in references, of the hit ratio of the sampled blocks. The standard error of the ratio is at most
/// 0.5 / √8192, half a percent.
const RATIO_REFERENCES: f64 = 16_384.0;

/// Counts of the references to a cache since the simulation began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheTotals {
    /// Number of references to the cache: blocks that operations looked up or stored.
    pub references: u64,
    /// Number of references to blocks that the cache held.
    pub hits: u64,
    /// Number of references to tracked blocks; fewer than `references` if the cache is sampled.
    pub followed: u64,
}

impl CacheTotals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.references += other.references;
        self.hits += other.hits;
        self.followed += other.followed;
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            references: self.references - before.references,
            hits: self.hits - before.hits,
            followed: self.followed - before.followed,
        }
    }
}

/// The blocks of the data set that were cached before the first reference. Whether a block is resident is drawn at the
/// block's first reference. Residents are older than every block referenced since the beginning.
#[derive(Debug, Clone, Copy)]
struct Residents {
    /// Number of blocks of the initial contents that have been neither evicted nor referenced.
    held: f64,
    /// Number of blocks of the data set that have not been referenced; kept up to date only while a part of the data
    /// set is left of the initial contents.
    unreferenced: f64,
    /// Whether the whole data set is resident: a sample of the data set may be larger than its expected size.
    are_all: bool,
}

/// Instance of a cache, with all blocks or with the tracked blocks of a sampled cache.
#[derive(Debug)]
pub(crate) struct Cache {
    blocks: Blocks,
    /// Capacity of the cache as a number of tracked blocks.
    capacity: u64,
    residents: Residents,
    /// Maximum hash of a tracked block.
    threshold: u64,
    followed_hits: f64,
    followed_references: f64,
    pub(crate) totals: CacheTotals,
}

#[derive(Debug)]
enum Blocks {
    Lru(LruCache<u64, ()>),
    TwoQueue {
        once: LinkedHashMap<u64, ()>,
        once_capacity: u64,
        forgotten: LinkedHashMap<u64, ()>,
        forgotten_capacity: u64,
        often: LruCache<u64, ()>,
    },
}

impl Cache {
    /// A cache of `capacity` blocks, initially with `resident` blocks of a data set of `dataset` blocks.
    pub(crate) fn new(policy: Policy, capacity: u64, resident: u64, dataset: u64) -> Self {
        let sampled = (MAX_TRACKED_BLOCKS as f64 / capacity.max(1) as f64).min(1.0);
        let scaled = |blocks: u64| blocks as f64 * sampled;
        let capacity = (scaled(capacity) as u64).max(1);
        let blocks = match policy {
            Policy::Lru => Blocks::Lru(LruCache::new_unbounded()),
            Policy::TwoQueue => Blocks::TwoQueue {
                once: LinkedHashMap::new(),
                once_capacity: ((capacity as f64 * IN_SHARE) as u64).max(1),
                forgotten: LinkedHashMap::new(),
                forgotten_capacity: ((capacity as f64 * OUT_SHARE) as u64).max(1),
                often: LruCache::new_unbounded(),
            },
        };
        let residents = Residents {
            held: scaled(resident.min(dataset)).min(capacity as f64),
            unreferenced: scaled(dataset),
            are_all: dataset > 0 && resident >= dataset && scaled(dataset) <= capacity as f64,
        };
        let begin = match dataset {
            0 => 0.0,
            _ => residents.held / residents.unreferenced,
        };
        Self {
            blocks,
            capacity,
            residents,
            threshold: (sampled * u64::MAX as f64) as u64,
            followed_hits: PRIOR_REFERENCES * begin,
            followed_references: PRIOR_REFERENCES,
            totals: CacheTotals::default(),
        }
    }

    /// Looks up a block, caches the block on a miss, and returns whether the lookup was a hit.
    pub(crate) fn reference(&mut self, block: u64, rng: &mut Rng) -> bool {
        self.totals.references += 1;
        let hit = if mix64(block) <= self.threshold {
            self.totals.followed += 1;
            let hit = self.follow(block, rng);
            self.note(hit);
            hit
        } else {
            rng.random::<f64>() * self.followed_references < self.followed_hits
        };
        self.totals.hits += u64::from(hit);
        hit
    }

    /// Counts a lookup of a tracked block. Past references lose half of their weight at [`RATIO_REFERENCES`], so that
    /// the ratio follows the present and forgets a cold start.
    fn note(&mut self, hit: bool) {
        self.followed_references += 1.0;
        self.followed_hits += f64::from(u8::from(hit));
        if self.followed_references >= RATIO_REFERENCES {
            self.followed_references /= 2.0;
            self.followed_hits /= 2.0;
        }
    }

    /// Drops every block, as when the node loses its memory.
    pub(crate) fn clear(&mut self) {
        self.residents.held = 0.0;
        self.residents.are_all = false;
        self.followed_hits = 0.0;
        self.followed_references = PRIOR_REFERENCES;
        match &mut self.blocks {
            Blocks::Lru(held) => held.clear(),
            Blocks::TwoQueue {
                once,
                forgotten,
                often,
                ..
            } => {
                once.clear();
                forgotten.clear();
                often.clear();
            }
        }
    }

    fn follow(&mut self, block: u64, rng: &mut Rng) -> bool {
        let known = match &mut self.blocks {
            Blocks::Lru(held) => held.get(&block).is_some(),
            Blocks::TwoQueue {
                once,
                forgotten,
                often,
                ..
            } => {
                if often.get(&block).is_some() || once.contains_key(&block) {
                    true
                } else if forgotten.remove(&block).is_some() {
                    often.insert(block, ());
                    self.make_room();
                    return false;
                } else {
                    false
                }
            }
        };
        if known {
            return true;
        }
        let resident = self.draw_residency(rng);
        match &mut self.blocks {
            Blocks::Lru(held) => drop(held.insert(block, ())),
            Blocks::TwoQueue { once, .. } => drop(once.insert(block, ())),
        }
        self.make_room();
        resident
    }

    /// Whether a block was resident before its first reference: all unreferenced blocks are equally likely to be
    /// resident.
    fn draw_residency(&mut self, rng: &mut Rng) -> bool {
        let Residents {
            held,
            unreferenced,
            are_all,
        } = &mut self.residents;
        if *are_all {
            *held = (*held - 1.0).max(0.0);
            return true;
        }
        if *held <= 0.0 || *unreferenced <= 0.0 {
            return false;
        }
        let resident = rng.random::<f64>() * *unreferenced < *held;
        *unreferenced -= 1.0;
        if resident {
            *held -= 1.0;
        }
        resident
    }

    fn make_room(&mut self) {
        let known = match &self.blocks {
            Blocks::Lru(held) => held.len(),
            Blocks::TwoQueue { once, often, .. } => once.len() + often.len(),
        } as f64;
        let excess = known + self.residents.held - self.capacity as f64;
        if excess <= 0.0 {
            return;
        }
        // Residents are the oldest blocks, so they are evicted first.
        self.residents.are_all = false;
        if self.residents.held > 0.0 {
            self.residents.held = (self.residents.held - excess).max(0.0);
            if known <= self.capacity as f64 {
                return;
            }
        }
        match &mut self.blocks {
            Blocks::Lru(held) => drop(held.remove_lru()),
            Blocks::TwoQueue {
                once,
                once_capacity,
                forgotten,
                forgotten_capacity,
                often,
            } => {
                if once.len() as u64 > *once_capacity || often.is_empty() {
                    if let Some((block, ())) = once.pop_front() {
                        forgotten.insert(block, ());
                    }
                    if forgotten.len() as u64 > *forgotten_capacity {
                        forgotten.pop_front();
                    }
                } else {
                    often.remove_lru();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Stream;
    use rand_distr::{Distribution, Zipf};

    /// Hit ratio of an LRU cache of `capacity` objects with popularities `p`, by Che's approximation (Che, Tung and
    /// Wang 2002).
    fn che(p: &[f64], capacity: f64) -> f64 {
        let held = |t: f64| p.iter().map(|q| 1.0 - (-q * t).exp()).sum::<f64>();
        let (mut low, mut high) = (0.0, 1e12);
        for _ in 0..200 {
            let t = f64::midpoint(low, high);
            match held(t) < capacity {
                true => low = t,
                false => high = t,
            }
        }
        p.iter().map(|q| q * (1.0 - (-q * low).exp())).sum()
    }

    fn zipf(objects: u32, exponent: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=objects)
            .map(|k| f64::from(k).powf(-exponent))
            .collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|w| w / sum).collect()
    }

    #[test]
    fn lru_hits_as_che_s_approximation_says() {
        let (objects, capacity) = (20_000, 2_000);
        for exponent in [0.6, 0.9, 1.2] {
            let mut rng = Stream::new(3).rng();
            let draw = Zipf::new(f64::from(objects), exponent).unwrap();
            let mut cache = Cache::new(Policy::Lru, capacity, 0, 0);
            let reference = |cache: &mut Cache, rng: &mut Rng| {
                let block = draw.sample(rng) as u64;
                cache.reference(block, rng)
            };
            for _ in 0..200_000 {
                reference(&mut cache, &mut rng);
            }
            let n = 400_000;
            let hits = (0..n).filter(|_| reference(&mut cache, &mut rng)).count();
            let found = hits as f64 / f64::from(n);
            let expected = che(&zipf(objects, exponent), capacity as f64);
            // The tolerance is four standard errors of the hit ratio, and 1 % for the error of Che's approximation.
            let error = 4.0 * (expected * (1.0 - expected) / f64::from(n)).sqrt() + 0.01 * expected;
            assert!(
                (found - expected).abs() < error,
                "{exponent}: {found} instead of {expected}"
            );
        }
    }

    #[test]
    fn two_queues_resist_a_scan_that_empties_an_lru_cache() {
        let hits_after_scan = |policy| {
            let mut rng = Stream::new(4).rng();
            let mut cache = Cache::new(policy, 1000, 0, 0);
            for _ in 0..20 {
                for block in 0..500 {
                    cache.reference(block, &mut rng);
                    // Another block is referenced between two references to a block, so that 2Q counts the second
                    // reference as separate.
                    cache.reference(1_000_000 + rng.random::<u64>() % 5000, &mut rng);
                }
            }
            for block in 10_000..12_000 {
                cache.reference(block, &mut rng);
            }
            (0..500)
                .filter(|&block| cache.reference(block, &mut rng))
                .count()
        };
        assert_eq!(hits_after_scan(Policy::Lru), 0);
        assert!(hits_after_scan(Policy::TwoQueue) > 400);
    }

    #[test]
    fn a_full_cache_begins_with_the_share_of_the_data_that_fits() {
        let mut rng = Stream::new(5).rng();
        let mut cache = Cache::new(Policy::Lru, 30_000, 30_000, 100_000);
        let hits = (0..10_000u64)
            .filter(|&b| cache.reference(b, &mut rng))
            .count() as f64;
        // Each of the 10 000 blocks is resident with a probability that falls from 0.3, since 0.7 of the new blocks
        // evict a resident: held(n) falls by 1 per reference, of 100 000 − n.
        let expected: f64 = (0..10_000)
            .map(|n| (30_000.0 - f64::from(n)) / (100_000.0 - f64::from(n)))
            .sum();
        assert!(
            (hits - expected).abs() < 4.0 * (10_000.0f64 * 0.25 * 0.75).sqrt(),
            "{hits} of {expected}"
        );
        // Referenced blocks are cached.
        assert!((0..10_000u64).all(|b| cache.reference(b, &mut rng)));
    }

    #[test]
    fn a_sampled_cache_hits_as_often_as_a_whole_one() {
        // The cache has four times as many blocks as are tracked, and uniform references go to twice as many blocks as
        // the cache holds.
        let capacity = 4 * MAX_TRACKED_BLOCKS;
        let mut rng = Stream::new(6).rng();
        let mut cache = Cache::new(Policy::Lru, capacity, 0, 0);
        let mut reference = || {
            let block = rng.random::<u64>() % (2 * capacity);
            cache.reference(block, &mut rng)
        };
        for _ in 0..6 * capacity {
            reference();
        }
        let n = 1_000_000;
        let found = (0..n).filter(|_| reference()).count() as f64 / f64::from(n);
        // The hit ratio of 250 000 tracked references is 0.5 ± 0.001; the mean of some twenty ratios adds as much
        // error.
        assert!((found - 0.5).abs() < 0.006, "{found}");
        assert!(cache.totals.followed * 3 < cache.totals.references);
    }
}
