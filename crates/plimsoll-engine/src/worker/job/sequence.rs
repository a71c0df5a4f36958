//! The transfers and flushes of one process of a job, in order.

use crate::permutation::Permutation;
use plimsoll_plan::{FileOrder, Number, OffsetOrder, Rng, Spread, Stream, Transfers, Value, Zone};
use rand::RngExt;
use rand_distr::{Distribution as _, Normal, Zipf};
use std::sync::Arc;

/// Maximum number of blocks whose visits are marked, in all files of a process: 512 MiB of marks.
const MAX_MARKED_BLOCKS: u64 = 1 << 32;

/// Direction of a transfer, as an index of the arrays of a [`Sequence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read = 0,
    Write = 1,
}

/// A read or write of a file of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    /// Number of the file among the files of the process.
    pub(super) file: u32,
    pub(super) way: Way,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Whether a pause follows the transfer.
    pub(super) pauses: bool,
}

/// The next operation of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Transfer(Transfer),
    /// Flush of a file, by the number of the file among the files of the process.
    Flush(u32),
    End,
}

/// Sizes and alignment of the transfers in one direction.
struct Direction {
    size: Number,
    align: u64,
}

/// The part of a file that the process accesses.
struct Area {
    begin: u64,
    end: u64,
    /// Offset after the latest transfer, for reads and for writes.
    position: [u64; 2],
    /// Number of blocks that were taken from the order of the pass.
    drawn: u64,
    /// Whether no offset of the order is left in the pass, for reads and for writes; a run of transfers may still
    /// continue.
    done: [bool; 2],
    /// Order of the blocks in the pass, if each block is drawn once; and scattered ranks of the blocks, if ranks have
    /// different probabilities.
    blocks: Option<Permutation>,
    /// Blocks that were visited in the pass, a bit for each, if each block is visited once and transfers have drawn
    /// sizes; otherwise empty.
    visited: Vec<u64>,
    /// Number of blocks in `visited`.
    visits: u64,
}

impl Area {
    /// The next block in the order of the pass that was not visited; the area must have such a block.
    fn next_block(&mut self) -> u64 {
        let order = self
            .blocks
            .expect("blocks that are drawn once have an order");
        loop {
            let block = order.map(self.drawn);
            self.drawn += 1;
            if self.visited.is_empty() || !self.is_visited(block) {
                return block;
            }
        }
    }

    fn is_visited(&self, block: u64) -> bool {
        self.visited[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// Number of blocks from `block` on that were not visited, at most `most`.
    fn free_from(&self, block: u64, most: u64) -> u64 {
        let blocks = block..block + most;
        blocks.take_while(|b| !self.is_visited(*b)).count() as u64
    }

    fn visit(&mut self, blocks: std::ops::Range<u64>) {
        for block in blocks {
            self.visits += u64::from(!self.is_visited(block));
            self.visited[(block / 64) as usize] |= 1 << (block % 64);
        }
    }
}

/// Generator of the operations of one process.
pub(super) struct Sequence {
    plan: Arc<Transfers>,
    directions: [Option<Direction>; 2],
    areas: Vec<Area>,
    ranks: Option<Zipf<f64>>,
    stream: Stream,
    /// Random generator of directions, sizes, offsets and files, each with draws of its own.
    rngs: [Rng; 4],
    pass: u64,
    bytes: u64,
    transfers: u64,
    /// File of the latest transfer, and the number of further transfers of the file before the next choice.
    file: u32,
    file_left: u32,
    /// Number of further transfers of the run.
    run_left: u32,
    writes: u64,
    /// File that is flushed before the next transfer.
    to_flush: Option<u32>,
}

const DIRECTIONS: usize = 0;
const SIZES: usize = 1;
const OFFSETS: usize = 2;
const FILES: usize = 3;

impl Sequence {
    /// The operations of process number `process` on files of the planned sizes `files`, in bytes; `number` prepares
    /// the numbers of the Plan for drawing.
    ///
    /// # Errors
    /// A sentence that says why the process has no transfer.
    pub(super) fn new(
        plan: &Transfers,
        process: u32,
        files: &[u64],
        stream: Stream,
        number: impl Fn(Value) -> Result<Number, String>,
    ) -> Result<Self, String> {
        let direction = |d: &plimsoll_plan::Direction| -> Result<Direction, String> {
            Ok(Direction {
                align: d.align,
                size: number(d.size)?,
            })
        };
        let [reads, writes] = [&plan.reads, &plan.writes].map(|d| d.as_ref().map(direction));
        let begin = plan
            .offset
            .saturating_add(plan.offset_increment.saturating_mul(u64::from(process)));
        let area = |size: &u64| Area {
            begin,
            end: match plan.span {
                0 => *size,
                span => begin.saturating_add(span).min(*size),
            },
            position: [begin; 2],
            drawn: 0,
            done: [false; 2],
            blocks: None,
            visited: vec![],
            visits: 0,
        };
        let areas: Vec<Area> = files.iter().map(area).collect();
        let align = plan.directions().map(|d| d.align).max().unwrap_or(1);
        if areas.iter().all(|a| a.end < a.begin.saturating_add(align)) {
            return Err(format!(
                "no transfer of {align} bytes fits the files from byte {begin} on"
            ));
        }
        let blocks = areas.iter().map(|a| a.end.saturating_sub(a.begin) / align);
        let all_blocks: u64 = blocks.clone().sum();
        let ranks = match &plan.order {
            OffsetOrder::Random {
                spread: Spread::Zipf { theta },
                ..
            } => Zipf::new(blocks.max().unwrap_or(1) as f64, *theta).ok(),
            _ => None,
        };
        let mut sequence = Self {
            directions: [reads.transpose()?, writes.transpose()?],
            areas,
            ranks,
            rngs: [0, 1, 2, 3].map(|kind| stream.branch(kind).rng()),
            stream: stream.named("pass"),
            pass: 0,
            bytes: 0,
            transfers: 0,
            file: 0,
            file_left: 0,
            run_left: 0,
            writes: 0,
            to_flush: None,
            plan: Arc::new(plan.clone()),
        };
        if sequence.marks_visits() && all_blocks > MAX_MARKED_BLOCKS {
            return Err(format!(
                "the files have {all_blocks} blocks of {align} bytes; transfers of drawn sizes that visit each block once \
                 support at most {MAX_MARKED_BLOCKS} blocks, and `norandommap` any number"
            ));
        }
        sequence.begin_pass();
        Ok(sequence)
    }

    /// Number of files of the process.
    pub(super) fn files(&self) -> u32 {
        self.areas.len() as u32
    }

    fn align(&self) -> u64 {
        self.plan.directions().map(|d| d.align).max().unwrap_or(1)
    }

    /// Whether each block is visited once, by transfers of drawn sizes.
    fn marks_visits(&self) -> bool {
        let mut directions = self.directions.iter().flatten();
        let draws_sizes = directions.any(|d| matches!(d.size, Number::Drawn(_)));
        draws_sizes
            && matches!(
                &self.plan.order,
                OffsetOrder::Random {
                    spread: Spread::Once,
                    ..
                }
            )
    }

    /// Begins a pass over all files when no file is left for the direction `way`. Sequential transfers of one
    /// file without an end begin again in this direction alone, as in fio.
    fn begin_pass_of(&mut self, way: Way) {
        let is_endless = self.plan.bytes.is_none() && self.plan.transfers.is_none();
        let is_sequential = matches!(self.plan.order, OffsetOrder::Sequential { .. });
        match &mut self.areas[..] {
            [area] if is_endless && is_sequential => {
                area.position[way as usize] = area.begin;
                area.done[way as usize] = false;
            }
            _ => self.begin_pass(),
        }
    }

    /// Begins a pass over all files in both directions.
    fn begin_pass(&mut self) {
        let align = self.align();
        let stream = self.stream.branch(self.pass);
        let marks_visits = self.marks_visits();
        // Ranks are scattered in the same way in all passes.
        let scattered = self.stream.named("ranks");
        let (once, ranked) = match &self.plan.order {
            OffsetOrder::Random { spread, .. } => (
                *spread == Spread::Once,
                matches!(spread, Spread::Zipf { .. } | Spread::Pareto { .. }),
            ),
            OffsetOrder::Sequential { .. } => (false, false),
        };
        for (area, number) in self.areas.iter_mut().zip(0..) {
            let blocks = area.end.saturating_sub(area.begin) / align;
            let stream = if once { stream } else { scattered };
            area.position = [area.begin; 2];
            area.drawn = 0;
            if marks_visits {
                area.visits = 0;
                area.visited.clear();
                area.visited.resize(blocks.div_ceil(64) as usize, 0);
            }
            area.done = [blocks == 0; 2];
            area.blocks = ((once || ranked) && blocks > 0)
                .then(|| Permutation::new(blocks, stream.branch(number)));
        }
        self.pass += 1;
        self.file_left = 0;
        self.run_left = 0;
        // The first choice in turn is file 0.
        self.file = self.files() - 1;
    }

    /// The next operation.
    pub(super) fn next(&mut self) -> Next {
        if let Some(file) = self.to_flush.take() {
            return Next::Flush(file);
        }
        let plan = &self.plan;
        if plan.bytes.is_some_and(|limit| self.bytes >= limit)
            || plan.transfers.is_some_and(|limit| self.transfers >= limit)
        {
            return Next::End;
        }
        let way = self.draw_way();
        if !self.choose_file(way) {
            self.begin_pass_of(way);
            let found = self.choose_file(way);
            assert!(found, "a file has room for a transfer");
        }
        let transfer = self.place(way);
        self.note(transfer);
        Next::Transfer(Transfer {
            pauses: self
                .plan
                .pauses
                .is_some_and(|p| self.transfers.is_multiple_of(p.after_transfers)),
            ..transfer
        })
    }

    fn draw_way(&mut self) -> Way {
        match (&self.directions[0], &self.directions[1]) {
            (Some(_), None) => Way::Read,
            (None, _) => Way::Write,
            (Some(_), Some(_)) => {
                let percent = self.rngs[DIRECTIONS].random::<f64>() * 100.0;
                if percent < f64::from(self.plan.read_percent) {
                    Way::Read
                } else {
                    Way::Write
                }
            }
        }
    }

    /// Chooses the file of the next transfer; `false` if the pass over all files is over.
    fn choose_file(&mut self, way: Way) -> bool {
        let continued = self.continues_run(way).then_some(self.file);
        let is_open =
            |file: u32| continued == Some(file) || !self.areas[file as usize].done[way as usize];
        if self.file_left > 0 && is_open(self.file) {
            self.file_left -= 1;
            return true;
        }
        let files = self.files();
        let after = |file: u32| (1..=files).map(move |step| (file + step) % files);
        let chosen = match self.plan.next_file {
            FileOrder::RoundRobin => after(self.file).find(|f| is_open(*f)),
            FileOrder::Sequential => (0..files).find(|f| is_open(*f)),
            FileOrder::Random => {
                let start = self.rngs[FILES].random_range(0..files);
                after((start + files - 1) % files).find(|f| is_open(*f))
            }
        };
        let Some(file) = chosen else {
            return false;
        };
        self.file = file;
        self.file_left = self.plan.transfers_per_file - 1;
        true
    }

    /// Whether the next transfer, in the direction `way`, continues a run in the latest file.
    fn continues_run(&self, way: Way) -> bool {
        self.run_left > 0 && self.has_block_after(&self.areas[self.file as usize], way)
    }

    /// Whether a whole block lies between the position of the direction `way` and the end of the area.
    fn has_block_after(&self, area: &Area, way: Way) -> bool {
        area.position[way as usize].saturating_add(self.align()) <= area.end
    }

    /// Place and size of the next transfer in the chosen file.
    fn place(&mut self, way: Way) -> Transfer {
        let plan = self.plan.clone();
        let offset = match &plan.order {
            OffsetOrder::Sequential { .. } => self.areas[self.file as usize].position[way as usize],
            OffsetOrder::Random { spread, percent } => self.random_offset(way, spread, *percent),
        };
        let direction = self.directions[way as usize].as_ref();
        let direction = direction.expect("a direction is drawn only if the job has the direction");
        let size = direction.size.draw(&mut self.rngs[SIZES]);
        let align = direction.align;
        let size = size.max(align);
        let room = self.room(offset, size);
        let len = if size <= room {
            size
        } else {
            (room / align * align).max(align.min(room))
        };
        Transfer {
            file: self.file,
            way,
            offset,
            len,
            pauses: false,
        }
    }

    /// Number of bytes from `offset` to the end of the file, at most `size`; or to the next block that was visited, but
    /// at least one block, because a transfer that follows another may visit a block again.
    fn room(&self, offset: u64, size: u64) -> u64 {
        let area = &self.areas[self.file as usize];
        let room = size.min(area.end - offset);
        if area.visited.is_empty() {
            return room;
        }
        let align = self.align();
        let block = (offset - area.begin) / align;
        (area.free_from(block, room / align) * align).max(align)
    }

    fn random_offset(&mut self, way: Way, spread: &Spread, percent: u8) -> u64 {
        let align = self.align();
        let area = &self.areas[self.file as usize];
        let next = area.position[way as usize];
        let follows = self.has_block_after(area, way);
        if self.run_left > 0 {
            self.run_left -= 1;
            if follows {
                return next;
            }
        }
        if percent < 100
            && follows
            && self.rngs[OFFSETS].random::<f64>() * 100.0 >= f64::from(percent)
        {
            return next;
        }
        self.run_left = self.plan.run - 1;
        let blocks = (area.end - area.begin) / align;
        let block = match spread {
            Spread::Once => self.areas[self.file as usize].next_block(),
            Spread::Uniform => self.rngs[OFFSETS].random_range(0..blocks),
            Spread::Zipf { .. } => {
                let zipf = self.ranks.as_ref();
                let zipf = zipf.expect("a checked exponent gives a distribution");
                let rank = zipf.sample(&mut self.rngs[OFFSETS]) as u64;
                self.scattered(rank.max(1) - 1)
            }
            Spread::Pareto { h } => {
                let u: f64 = self.rngs[OFFSETS].random();
                let rank = (blocks as f64 * u.powf(h.ln() / (1.0 - h).ln())) as u64;
                self.scattered(rank)
            }
            Spread::Normal { deviation_percent } => self.normal(blocks, *deviation_percent),
            Spread::Zones { zones } => self.in_zone(blocks, zones),
        };
        self.areas[self.file as usize].begin + block * align
    }

    /// The block of a rank in the chosen file, in which ranks are scattered.
    fn scattered(&self, rank: u64) -> u64 {
        let area = &self.areas[self.file as usize];
        let order = area.blocks.expect("ranks are scattered by an order");
        let blocks = (area.end - area.begin) / self.align();
        order.map(rank % blocks)
    }

    fn normal(&mut self, blocks: u64, deviation_percent: f64) -> u64 {
        let n = blocks as f64;
        let normal = Normal::new(n / 2.0, n * deviation_percent / 100.0);
        let normal = normal.expect("a checked deviation gives a distribution");
        loop {
            let at = normal.sample(&mut self.rngs[OFFSETS]);
            if (0.0..n).contains(&at) {
                return (at as u64).min(blocks - 1);
            }
        }
    }

    fn in_zone(&mut self, blocks: u64, zones: &[Zone]) -> u64 {
        let rng = &mut self.rngs[OFFSETS];
        let drawn = rng.random::<f64>() * 100.0;
        let (mut transfers, mut begin) = (0.0, 0.0);
        let mut within = None;
        for zone in zones {
            transfers += zone.transfers_percent;
            if drawn < transfers {
                within = Some(zone);
                break;
            }
            begin += zone.size_percent;
        }
        let last = zones.last().expect("a checked list has zones");
        let (begin, size) = within.map_or((100.0 - last.size_percent, last.size_percent), |z| {
            (begin, z.size_percent)
        });
        let at = begin + rng.random::<f64>() * size;
        ((at / 100.0 * blocks as f64) as u64).min(blocks - 1)
    }

    /// Counts a transfer, and determines the position after the transfer.
    fn note(&mut self, transfer: Transfer) {
        let align = self.align();
        self.bytes = self.bytes.saturating_add(transfer.len);
        self.transfers += 1;
        let way = transfer.way as usize;
        let area = &mut self.areas[transfer.file as usize];
        let end = transfer.offset + transfer.len;
        match &self.plan.order {
            OffsetOrder::Sequential { skip } => {
                let next = end.saturating_add(*skip);
                area.position[way] = next;
                let least = self.directions[way].as_ref().map_or(1, |d| d.align);
                area.done[way] = next.saturating_add(least) > area.end;
            }
            OffsetOrder::Random { spread, .. } => {
                area.position[way] = if self.plan.repeats_offset {
                    transfer.offset
                } else {
                    end
                };
                if *spread == Spread::Once {
                    let blocks = (area.end - area.begin) / align;
                    let visited = if area.visited.is_empty() {
                        area.drawn
                    } else {
                        let first = (transfer.offset - area.begin) / align;
                        area.visit(first..first + transfer.len / align);
                        area.visits
                    };
                    area.done = [visited >= blocks; 2];
                }
            }
        }
        if transfer.way == Way::Write {
            self.writes += 1;
            let every = self.plan.flushes.and_then(|f| f.after_writes);
            if every.is_some_and(|n| self.writes.is_multiple_of(n)) {
                self.to_flush = Some(transfer.file);
            }
        }
    }
}

#[cfg(test)]
mod tests;
