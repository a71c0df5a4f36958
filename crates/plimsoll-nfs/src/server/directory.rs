//! Directories in memory.

use std::collections::{BTreeMap, HashMap};

/// The names of a directory. Each name has a cookie from which a listing can resume after other
/// names were added or removed.
pub(super) struct Directory {
    /// The node number of the parent; the root is its own parent.
    pub(super) parent: u64,
    /// The node number and the cookie of each name.
    by_name: HashMap<Vec<u8>, (u64, u64)>,
    by_cookie: BTreeMap<u64, Vec<u8>>,
}

impl Directory {
    /// An empty directory.
    pub(super) fn new(parent: u64) -> Self {
        Self {
            parent,
            by_name: HashMap::new(),
            by_cookie: BTreeMap::new(),
        }
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The node number of a name; `None` if the directory does not have the name.
    pub(super) fn find(&self, name: &[u8]) -> Option<u64> {
        self.by_name.get(name).map(|(number, _)| *number)
    }

    /// Adds a name that must not exist. `cookie` must be greater than all earlier cookies.
    pub(super) fn enter(&mut self, name: &[u8], number: u64, cookie: u64) {
        let last = self.by_cookie.last_key_value();
        assert!(
            last.is_none_or(|(last, _)| *last < cookie),
            "cookie {cookie} is not the next"
        );
        let former = self.by_name.insert(name.to_vec(), (number, cookie));
        assert!(former.is_none(), "a name is added that exists");
        self.by_cookie.insert(cookie, name.to_vec());
    }

    /// Removes a name; returns its node number, or `None` if the directory does not have the name.
    pub(super) fn leave(&mut self, name: &[u8]) -> Option<u64> {
        let (number, cookie) = self.by_name.remove(name)?;
        self.by_cookie.remove(&cookie);
        Some(number)
    }

    /// Cookies, names and node numbers after a cookie, in the order in which the names were added.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], u64)> {
        let names = self.by_cookie.range(cookie.saturating_add(1)..);
        names.filter_map(|(cookie, name)| Some((*cookie, &name[..], self.find(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A directory listing that is interrupted and resumed returns each permanent name exactly once, even if other
        /// names are added or removed between the parts.
        #[test]
        fn listings_go_on(
            before in prop::collection::hash_set(0u8..40, 0..40),
            steps in prop::collection::vec((any::<bool>(), 0u8..40), 0..60),
        ) {
            let mut dir = Directory::new(1);
            let mut next = 3;
            for n in &before {
                dir.enter(&[*n], u64::from(*n), next);
                next += 1;
            }
            let (mut seen, mut at, mut gone) = (Vec::new(), 0, Vec::new());
            for (makes, n) in steps {
                if let Some((cookie, name, number)) = dir.after(at).next() {
                    prop_assert_eq!(u64::from(name[0]), number);
                    seen.push(name[0]);
                    at = cookie;
                }
                match (makes, dir.find(&[n])) {
                    (true, None) => {
                        dir.enter(&[n], u64::from(n), next);
                        next += 1;
                    }
                    (false, Some(number)) => {
                        prop_assert_eq!(dir.leave(&[n]), Some(number));
                        gone.push(n);
                    }
                    _ => prop_assert_eq!(dir.len(), dir.after(0).count()),
                }
            }
            seen.extend(dir.after(at).map(|(_, name, _)| name[0]));
            for n in before.iter().filter(|n| !gone.contains(n)) {
                prop_assert_eq!(seen.iter().filter(|s| *s == n).count(), 1);
            }
        }
    }
}
