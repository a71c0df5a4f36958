//! Expansion order of the paths that drain logs and dirty caches.

use super::{Element, Resolver};
use crate::file::PathStep;
use crate::spanned::Spanned;
use std::collections::{BTreeMap, BTreeSet};

impl<'a> Resolver<'a> {
    /// Buffers with their drain paths; a buffer that a drain path fills comes before the buffer that the path drains. A
    /// buffer that is drained into itself, perhaps by way of other buffers, is left out and reported.
    pub(super) fn buffers_in_order(&mut self) -> Vec<(u16, &'a Spanned<String>)> {
        let file = self.file;
        let mut drains = BTreeMap::new();
        for (name, log) in &file.log {
            if let Some(Element::Log(number)) = self.element(name.get_ref()) {
                drains.insert(number, &log.drain);
            }
        }
        for (name, cache) in &file.cache {
            if let (Some(Element::Cache(number)), Some(flush)) =
                (self.element(name.get_ref()), &cache.flush)
                && let Some(&buffer) = self.cache_buffers.get(&number)
            {
                drains.insert(buffer, flush);
            }
        }
        let mut filled: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
        for (&buffer, path) in &drains {
            filled.insert(buffer, self.buffers_filled_by(path.get_ref()));
        }
        let mut order = vec![];
        while let Some((&buffer, _)) = { filled.iter() }.find(|(_, by)| by.is_empty()) {
            filled.remove(&buffer);
            for by in filled.values_mut() {
                by.remove(&buffer);
            }
            order.push((buffer, drains[&buffer]));
        }
        for buffer in filled.into_keys() {
            let name = self.system.buffers[buffer as usize].name.clone();
            let message = format!("`{name}` is drained into itself");
            self.problem(drains[&buffer], message, "this path fills what it drains");
        }
        order
    }

    /// The buffers that a background path fills.
    fn buffers_filled_by(&self, path: &'a str) -> BTreeSet<u16> {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        let mut waiting = vec![path];
        while let Some(name) = waiting.pop() {
            if !seen.insert(name) {
                continue;
            }
            match self.element(name) {
                Some(Element::Log(number)) => found.extend([number]),
                Some(Element::Cache(number)) => found.extend(self.cache_buffers.get(&number)),
                _ => {}
            }
            let steps = self.file.path.iter().find(|(key, _)| key.get_ref() == name);
            let steps = steps.into_iter().flat_map(|(_, steps)| steps);
            waiting.extend(steps.filter_map(|step| match step.get_ref() {
                PathStep::Name(name) => Some(name.as_str()),
                PathStep::Table(table) => table.path.as_ref().map(|p| p.get_ref().as_str()),
            }));
        }
        found
    }
}
