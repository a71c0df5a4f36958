//! Compiled-in workloads.

/// A compiled-in workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    /// Name, as `plimsoll run` takes it.
    pub name: &'static str,
    /// One-line description of the workload, from its text.
    pub title: String,
    /// Text of the workload file.
    pub text: &'static str,
}

impl Builtin {
    /// Builds the workloads of a table of names and texts; `title` extracts the title from a text.
    ///
    /// # Panics
    /// If the names are not in strictly increasing order.
    #[must_use]
    pub fn of_table(
        table: &[(&'static str, &'static str)],
        title: fn(&'static str) -> String,
    ) -> Vec<Self> {
        assert!(table.is_sorted_by(|a, b| a.0 < b.0), "names in order");
        let builtin = |(name, text): &(&'static str, &'static str)| Self {
            name,
            title: title(text),
            text,
        };
        table.iter().map(builtin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_those_of_the_table_in_its_order() {
        let title = |text: &'static str| text.to_uppercase();
        let found = Builtin::of_table(&[("a", "first"), ("b", "second")], title);
        let builtin = |name, title: &str, text| Builtin {
            name,
            title: title.into(),
            text,
        };
        let expected = [
            builtin("a", "FIRST", "first"),
            builtin("b", "SECOND", "second"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    #[should_panic(expected = "names in order")]
    fn a_workload_is_listed_once() {
        let _ = Builtin::of_table(&[("a", "first"), ("a", "second")], str::to_owned);
    }
}
