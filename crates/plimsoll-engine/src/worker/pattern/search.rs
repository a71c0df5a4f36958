//! Stages in which all ranks together search a directory tree.

use super::Rank;
use crate::worker::WorkerExit;
use plimsoll_plan::{MARKER, TreeSearch};
use plimsoll_target::{Attributes, EntryKind, OpError, Session};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Maximum number of bytes of file names that a rank hands over to other ranks, which stat the files.
const MAX_GIVEN_BYTES: usize = 16 << 20;

/// Error of a comparison with the time of a file's last change, on a target that returns no such time.
const NO_TIME: OpError = OpError(Errno::OPNOTSUPP);

/// Files of a directory whose names match: the path of the directory, and the names.
#[derive(Clone, Serialize, Deserialize)]
struct Candidates {
    dir: Vec<u8>,
    names: Vec<Vec<u8>>,
}

/// Criteria of a search for size and time of change; the reference time is in nanoseconds since 1970.
struct Criteria {
    size: Option<u64>,
    since_ns: Option<i64>,
}

impl Criteria {
    /// Whether a file with these attributes matches.
    fn accept(&self, found: &Attributes) -> Result<bool, OpError> {
        let is_recent = match self.since_ns {
            Some(since) => found.changed_ns.ok_or(NO_TIME)? >= since,
            None => true,
        };
        let has_size = self.size.is_none_or(|size| found.size == size);
        Ok(is_recent && has_size && found.kind != EntryKind::Dir)
    }
}

impl<S: Session> Rank<'_, S> {
    pub(super) async fn search(&mut self, work: &TreeSearch) -> Result<(), WorkerExit> {
        self.done.matches = Some(0);
        let criteria = Criteria {
            size: work.size,
            since_ns: self.reference(work).await?,
        };
        let mut found = Vec::new();
        let mut level = vec![work.top.as_str().as_bytes().to_vec()];
        while !level.is_empty() {
            let mut below = Vec::new();
            let (first, step) = (self.rank as usize, self.pattern.ranks as usize);
            for dir in level.into_iter().skip(first).step_by(step) {
                self.list_dir(work, dir, &mut below, &mut found).await?;
            }
            level = self.all_gather(&below, false).await?.concat();
        }
        let names = |all: &[Candidates]| all.iter().map(|c| c.names.len() as u64).sum::<u64>();
        if !work.needs_stat() {
            self.done.matches = Some(names(&found));
            self.all_gather(&Vec::<Candidates>::new(), true).await?;
            return Ok(());
        }
        let mine = (names(&found), givable(&found));
        let counts = self.all_gather(&mine, false).await?;
        let shares = Shares::new(&counts);
        let given = split_off(&mut found, shares.surplus(self.rank as usize));
        let given = self.all_gather(&given, true).await?.concat();
        let taken = shares.taken(self.rank as usize);
        let given = given
            .iter()
            .flat_map(|c| c.names.iter().map(|name| (&c.dir, name)));
        let taken = given.skip(taken.start).take(taken.len());
        let own = found
            .iter()
            .flat_map(|c| c.names.iter().map(|name| (&c.dir, name)));
        for (dir, name) in own.chain(taken) {
            self.stat_candidate(work, &criteria, dir, name).await?;
        }
        Ok(())
    }

    /// All-gather: contributes a value, and returns the values of all ranks in rank order.
    pub(super) async fn all_gather<V: Serialize + for<'de> Deserialize<'de>>(
        &mut self,
        mine: &V,
        is_last: bool,
    ) -> Result<Vec<V>, WorkerExit> {
        let bytes = postcard::to_allocvec(mine).expect("names and numbers can be serialised");
        let (lane, idle) = (&self.context.lane, &self.shared.idle);
        let all = self.run.all_gather(lane, idle, self.rank, bytes, is_last);
        let all = all.await?;
        let parsed = all.iter().map(|bytes| postcard::from_bytes(bytes));
        Ok(parsed
            .collect::<Result<_, _>>()
            .expect("ranks of one version serialise alike"))
    }

    /// Reference time of the search in nanoseconds since 1970; the stat of the reference file is not measured.
    async fn reference(&mut self, work: &TreeSearch) -> Result<Option<i64>, WorkerExit> {
        let Some(path) = &work.changed_since else {
            return Ok(None);
        };
        self.locate_path(path.as_str().as_bytes(), b"");
        let found = self.session.stat().await;
        match found.and_then(|f| f.changed_ns.ok_or(NO_TIME)) {
            Ok(changed_ns) => Ok(Some(changed_ns)),
            Err(e) => Err(self.exit(work.stat.0, self.error_text(e))),
        }
    }

    /// Passes the path of a name in a directory, or of the directory itself if the name is empty, to the session.
    fn locate_path(&mut self, dir: &[u8], name: &[u8]) {
        let path = self.path_in_tree.insert(join(dir, name));
        self.session.locate(|p| p.extend_from_slice(path));
    }

    /// Lists a directory; appends its directories to `below`, and its matching names to `found`.
    async fn list_dir(
        &mut self,
        work: &TreeSearch,
        dir: Vec<u8>,
        below: &mut Vec<Vec<u8>>,
        found: &mut Vec<Candidates>,
    ) -> Result<(), WorkerExit> {
        self.context.lane.yield_if_exhausted().await;
        self.locate_path(&dir, b"");
        let begun = self.context.start(work.list.0);
        let (entries, result) = match self.session.entries().await {
            Ok(entries) => (entries, Ok(())),
            Err(e) => (vec![], Err(e)),
        };
        self.finish(work.list.0, &begun, 0, result)?;
        let mut names = Vec::new();
        for (name, kind) in entries {
            if name.starts_with(MARKER.as_bytes()) {
                continue;
            }
            if kind == EntryKind::Dir {
                below.push(join(&dir, &name));
                continue;
            }
            self.done.rounds += 1;
            if contains(&name, work.name_contains.as_bytes()) {
                names.push(name);
            }
        }
        if !names.is_empty() {
            found.push(Candidates { dir, names });
        }
        self.wait_after(begun.start).await
    }

    /// Stats a file whose name matches, and counts the file if its attributes match.
    async fn stat_candidate(
        &mut self,
        work: &TreeSearch,
        criteria: &Criteria,
        dir: &[u8],
        name: &[u8],
    ) -> Result<(), WorkerExit> {
        self.context.lane.yield_if_exhausted().await;
        self.locate_path(dir, name);
        let begun = self.context.start(work.stat.0);
        let found = self.session.stat().await;
        let (matches, result) = match found.and_then(|found| criteria.accept(&found)) {
            Ok(matches) => (matches, Ok(())),
            Err(e) => (false, Err(e)),
        };
        self.finish(work.stat.0, &begun, 0, result)?;
        *self.done.matches.get_or_insert(0) += u64::from(matches);
        self.wait_after(begun.start).await
    }
}

/// The path of a name in a directory; the directory's path if the name is empty.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match dir.is_empty() || name.is_empty() {
        true => [dir, name].concat(),
        false => [dir, b"/", name].concat(),
    }
}

fn contains(name: &[u8], text: &[u8]) -> bool {
    text.is_empty() || name.windows(text.len()).any(|part| part == text)
}

/// Number of names at the end of `found` that together have at most [`MAX_GIVEN_BYTES`].
fn givable(found: &[Candidates]) -> u64 {
    let mut bytes = 0;
    let backwards = found.iter().rev().flat_map(|c| {
        let each = c.names.iter().rev().enumerate();
        each.map(|(i, name)| name.len() + 8 + if i == 0 { c.dir.len() } else { 0 })
    });
    let fit = backwards.take_while(|len| {
        bytes += len;
        bytes <= MAX_GIVEN_BYTES
    });
    fit.count() as u64
}

/// Removes the last `count` names of `found`, and returns the names.
fn split_off(found: &mut Vec<Candidates>, mut count: u64) -> Vec<Candidates> {
    let mut given = Vec::new();
    while count > 0 {
        let last = found.last_mut().expect("a rank gives names that it has");
        let keep = (last.names.len() as u64).saturating_sub(count) as usize;
        let names = last.names.split_off(keep);
        count -= names.len() as u64;
        let dir = last.dir.clone();
        given.push(Candidates { dir, names });
        if keep == 0 {
            found.pop();
        }
    }
    given
}

/// Division of the files to stat between the ranks: a rank with more names than the mean hands over the names above the
/// mean to ranks with fewer names.
struct Shares {
    /// Number of names that each rank hands over.
    surplus: Vec<u64>,
    /// Number of names that each rank takes over.
    taken: Vec<u64>,
}

impl Shares {
    /// Shares from the number of names of each rank, and the number of names that the rank can hand over.
    fn new(counts: &[(u64, u64)]) -> Self {
        let (all, ranks) = (counts.iter().map(|c| c.0).sum::<u64>(), counts.len() as u64);
        let mean = |rank: usize| all / ranks + u64::from((rank as u64) < all % ranks);
        let each = || counts.iter().enumerate();
        let over = each().map(|(rank, (n, givable))| n.saturating_sub(mean(rank)).min(*givable));
        let surplus: Vec<u64> = over.collect();
        let mut left: u64 = surplus.iter().sum();
        let taken = each().map(|(rank, (n, _))| {
            let takes = mean(rank).saturating_sub(*n).min(left);
            left -= takes;
            takes
        });
        let taken = taken.collect();
        debug_assert_eq!(left, 0, "every name that is given is taken");
        Self { surplus, taken }
    }

    fn surplus(&self, rank: usize) -> u64 {
        self.surplus[rank]
    }

    /// Range of the names that a rank takes over, in the list of the names that all ranks hand over.
    fn taken(&self, rank: usize) -> std::ops::Range<usize> {
        let before: u64 = self.taken[..rank].iter().sum();
        before as usize..(before + self.taken[rank]) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates(dir: &str, names: usize) -> Candidates {
        let names = (0..names).map(|i| format!("{dir}{i}").into_bytes());
        Candidates {
            dir: dir.into(),
            names: names.collect(),
        }
    }

    #[test]
    fn names_are_given_from_the_end() {
        let mut found = vec![candidates("a", 3), candidates("b", 2)];
        assert_eq!(givable(&found), 5);
        let given = split_off(&mut found, 3);
        let shown = |all: &[Candidates]| -> Vec<String> {
            let names = all
                .iter()
                .flat_map(|c| c.names.iter().map(|n| join(&c.dir, n)));
            names.map(|n| String::from_utf8(n).unwrap()).collect()
        };
        assert_eq!(shown(&found), ["a/a0", "a/a1"]);
        assert_eq!(shown(&given), ["b/b0", "b/b1", "a/a2"]);
        let long = Candidates {
            dir: vec![],
            names: vec![vec![b'x'; MAX_GIVEN_BYTES / 3]; 4],
        };
        assert_eq!(givable(&[long]), 2);
    }

    #[test]
    fn a_name_contains_a_text_anywhere() {
        for (name, text, is_in) in [
            ("file.01", "01", true),
            ("01", "01", true),
            ("x1", "01", false),
            ("0", "01", false),
            ("any", "", true),
        ] {
            assert_eq!(
                contains(name.as_bytes(), text.as_bytes()),
                is_in,
                "{name} {text}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_given_name_is_taken_once_and_no_rank_exceeds_the_mean(
            counts in prop::collection::vec((0u64..1000, 0u64..1000), 1..20),
        ) {
            let counts: Vec<(u64, u64)> = counts.into_iter().map(|(n, g)| (n, g.min(n))).collect();
            let shares = Shares::new(&counts);
            let mut next = 0;
            for rank in 0..counts.len() {
                let taken = shares.taken(rank);
                prop_assert_eq!(taken.start, next);
                next = taken.end;
                let all: u64 = counts.iter().map(|c| c.0).sum();
                let most = all.div_ceil(counts.len() as u64);
                let statted = counts[rank].0 - shares.surplus(rank) + taken.len() as u64;
                prop_assert!(statted <= most || shares.surplus(rank) == counts[rank].1);
            }
            prop_assert_eq!(next as u64, shares.surplus.iter().sum::<u64>());
        }
    }
}
