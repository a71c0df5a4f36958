//! Caches and logs.

use super::{Element, Resolver};
use crate::cache::Policy;
use crate::file::{Cache, CacheBegins, CachePolicy, CacheWrite};
use crate::spanned::Spanned;
use crate::system::{BufferSpec, CacheSpec};
use plimsoll_diagnostics::{Problem, Span};

/// Minimum block size of a cache in bytes: every block of an operation is looked up, so smaller blocks would be slow.
const MIN_BLOCK_BYTES: u64 = 512;

impl Resolver<'_> {
    /// Checks caches and logs, and resolves the names to which they refer.
    pub(super) fn holders(&mut self) {
        for (name, cache) in &self.file.cache {
            let group = self.group(cache.node.as_ref());
            let last = self.system.caches.last().map(|c| c.placement);
            let placement = self.place(group, 1, self.span(name), last);
            let block = cache.block.as_ref().map(|b| b.get_ref().0 as u64);
            if let (Some(block), Some(at)) = (block, &cache.block)
                && block < MIN_BLOCK_BYTES
            {
                let message = format!("a block must have at least {MIN_BLOCK_BYTES} bytes");
                self.problem(at, message, "this size");
            }
            if cache.volatile && group.is_none() {
                self.problem(
                    name,
                    "`volatile` needs `node`: what is lost is lost with a node",
                    "does nothing here",
                );
            }
            let capacity = match (&cache.bytes, &cache.files, block) {
                (Some(bytes), None, Some(block)) => bytes.get_ref().value.0 as u64 / block.max(1),
                (None, Some(files), None) => *files.get_ref(),
                _ => {
                    self.problem(
                        name,
                        "a cache has `bytes` and `block`, or `files`",
                        "this cache",
                    );
                    1
                }
            };
            if capacity == 0 {
                self.problem(name, "the cache does not hold one block", "this cache");
            }
            let number = self.system.caches.len() as u16;
            self.system.caches.push(CacheSpec {
                name: name.get_ref().clone(),
                placement,
                policy: match cache.policy {
                    CachePolicy::Lru => Policy::Lru,
                    CachePolicy::TwoQueue => Policy::TwoQueue,
                },
                capacity: capacity.max(1),
                block,
                begins_full: cache.begins == CacheBegins::Full,
                volatile: cache.volatile,
            });
            self.name(name, Element::Cache(number));
            self.write_back(name, cache, number, group);
        }
        for (name, log) in &self.file.log {
            let group = self.group(log.node.as_ref());
            let in_flight = self.positive(&log.in_flight, "operations in flight");
            let number = self.buffer(
                name.get_ref().clone(),
                self.span(name),
                group,
                log.bytes.get_ref().value.0 as u64,
                in_flight,
            );
            self.name(name, Element::Log(number));
        }
    }

    /// Resolves the fraction of the data set that is accessed.
    pub(super) fn working_set(&mut self) {
        let Some(at) = &self.file.working_set else {
            return;
        };
        let share = at.get_ref().value;
        if !(share > 0.0 && share <= 1.0) {
            self.problem(
                at,
                "a working set is a part of the data set: over 0, and at most 1",
                "this number",
            );
        }
        let begins_full = |c: &Cache| c.begins == CacheBegins::Full && c.block.is_some();
        if !self.file.cache.values().any(begins_full) {
            self.problem(
                at,
                "`working_set` needs a cache with begins = \"full\" and `block`",
                "does nothing here",
            );
        }
        self.system.working_set = Some(share);
    }

    fn write_back(
        &mut self,
        name: &Spanned<String>,
        cache: &Cache,
        number: u16,
        group: Option<u8>,
    ) {
        let given = [
            cache
                .dirty_limit
                .as_ref()
                .map(|at| (self.span(at), "dirty_limit")),
            cache.flush.as_ref().map(|at| (self.span(at), "flush")),
            cache
                .flush_in_flight
                .as_ref()
                .map(|at| (self.span(at), "flush_in_flight")),
        ];
        if cache.write != CacheWrite::Back {
            for (span, key) in given.into_iter().flatten() {
                let message = format!("`{key}` needs write = \"back\"");
                self.problems
                    .push(Problem::new(span, message, "does nothing here"));
            }
            return;
        }
        let (Some(limit), Some(_), Some(in_flight)) =
            (&cache.dirty_limit, &cache.flush, &cache.flush_in_flight)
        else {
            self.problem(
                name,
                "a cache that writes back needs `dirty_limit`, `flush` and `flush_in_flight`",
                "this cache",
            );
            return;
        };
        let in_flight = self.positive(in_flight, "writes in flight");
        let buffer = self.buffer(
            format!("{} dirty", name.get_ref()),
            self.span(name),
            group,
            limit.get_ref().value.0 as u64,
            in_flight,
        );
        self.cache_buffers.insert(number, buffer);
    }

    fn buffer(
        &mut self,
        name: String,
        span: Span,
        group: Option<u8>,
        capacity: u64,
        in_flight: u32,
    ) -> u16 {
        let last = self.system.buffers.last().map(|b| b.placement);
        let placement = self.place(group, 1, span, last);
        let number = self.system.buffers.len() as u16;
        // The drain path and the element number are filled in later.
        self.system.buffers.push(BufferSpec {
            name,
            placement,
            capacity,
            drain: 0,
            in_flight,
            element: 0,
        });
        number
    }
}
