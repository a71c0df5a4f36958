//! Filter of a list of results, and its query in an address.

use crate::column::{Direction, Order};
use jiff::civil::Date;
use plimsoll_results::{Entry, Setting, Status};
use std::collections::BTreeSet;

/// Default number of results on a page of the list.
pub const PER_PAGE: u64 = 50;

/// Maximum number of results on a page of the list.
pub const MAX_PER_PAGE: u64 = 1000;

/// Conditions that listed results meet. An empty filter accepts all results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Name of the workload that results must have; `None` for any workload.
    pub workload: Option<String>,
    /// URL of the target that results must have; `None` for any target.
    pub target: Option<String>,
    /// First day on which results may have started, in the time zone of this machine; `None` for no limit.
    pub from: Option<Date>,
    /// Last day on which results may have started, in the time zone of this machine; `None` for no limit.
    pub to: Option<Date>,
    /// Status that results must have; `None` for any status.
    pub status: Option<Status>,
    /// Tags, all of which results must have; empty for any tags.
    pub tags: Vec<String>,
    /// Words, all of which results must contain; `None` for any results.
    pub search: Option<Search>,
}

/// Search for words in the texts of results: name, workload, target, parameters, directory, file system, tags and note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Search text as entered, which the search field of the page shows again.
    pub text: String,
    /// Words of the search text in lower case.
    words: Vec<String>,
}

/// Query of the list of results: a filter, an order, and a page of the filtered results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Filter that the listed results pass.
    pub filter: Filter,
    /// Order of the listed results.
    pub order: Order,
    /// Number of the page of the list, from 1.
    pub page: u64,
    /// Number of results on a page of the list, 1 to [`MAX_PER_PAGE`].
    pub per_page: u64,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            order: Order::default(),
            page: 1,
            per_page: PER_PAGE,
        }
    }
}

impl Listing {
    /// Parses the query of an address (the part after `?`). A parameter without a value is ignored.
    ///
    /// # Errors
    /// A sentence on the first parameter that is unknown or has an invalid value.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut listing = Self::default();
        let mut seen = BTreeSet::new();
        let mut direction: Option<Direction> = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            // Only the key `tag` may occur several times in a query.
            if name != "tag" && !seen.insert(name.to_string()) {
                return Err(format!("`{}` is given twice", name.escape_debug()));
            }
            let filter = &mut listing.filter;
            let text = || Some(value.to_owned());
            match &*name {
                "workload" => filter.workload = text(),
                "target" => filter.target = text(),
                "from" => filter.from = Some(date("from", value)?),
                "to" => filter.to = Some(date("to", value)?),
                "status" => filter.status = Some(value.parse()?),
                "tag" => filter.tags.push(value.to_owned()),
                "q" => filter.search = Some(Search::of(value)),
                "sort" => listing.order = Order::natural(value.parse()?),
                "order" => direction = Some(value.parse()?),
                "page" => listing.page = number("page", value, u64::MAX / MAX_PER_PAGE)?,
                "per_page" => listing.per_page = number("per_page", value, MAX_PER_PAGE)?,
                other => {
                    return Err(format!(
                        "`{}` is not a parameter of a list: expected workload, target, from, to, \
                         status, tag, q, sort, order, page or per_page",
                        other.escape_debug()
                    ));
                }
            }
        }
        if let Some(direction) = direction {
            listing.order.direction = direction;
        }
        Ok(listing)
    }

    /// The first page of the same results in another order.
    #[must_use]
    pub fn ordered(&self, order: Order) -> Self {
        Self {
            order,
            page: 1,
            ..self.clone()
        }
    }

    /// The first page of the results of one workload among the same results.
    #[must_use]
    pub fn of_workload(&self, workload: &str) -> Self {
        let mut listing = self.ordered(self.order.clone());
        listing.filter.workload = Some(workload.to_owned());
        listing
    }

    /// URL parameters `sort` and `order` of the order; empty for the default order.
    #[must_use]
    pub fn order_pairs(&self) -> Vec<(&'static str, String)> {
        let Order { by, direction } = &self.order;
        match self.order == Order::default() {
            true => vec![],
            false => vec![("sort", by.word()), ("order", direction.word().to_owned())],
        }
    }

    /// The query of an address (the part after `?`) for another page of the same list.
    #[must_use]
    pub fn query(&self, page: u64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let f = &self.filter;
        let date = |d: &Option<Date>| d.map(|d| d.to_string());
        let parts = [
            ("workload", f.workload.clone()),
            ("target", f.target.clone()),
            ("from", date(&f.from)),
            ("to", date(&f.to)),
            ("status", f.status.map(|s| s.to_string())),
            ("q", f.search.as_ref().map(|s| s.text.clone())),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                query.append_pair(name, &value);
            }
        }
        for tag in &f.tags {
            query.append_pair("tag", tag);
        }
        query.extend_pairs(self.order_pairs());
        if self.per_page != PER_PAGE {
            query.append_pair("per_page", &self.per_page.to_string());
        }
        if page != 1 {
            query.append_pair("page", &page.to_string());
        }
        query.finish()
    }
}

impl Filter {
    /// Whether results that started on the day `started` meet all conditions of the filter. Results without a start day
    /// pass only a filter without limits of days.
    #[must_use]
    pub fn accepts(&self, entry: &Entry, started: Option<Date>) -> bool {
        let is_since = |from: Date| started.is_some_and(|day| day >= from);
        let is_until = |to: Date| started.is_some_and(|day| day <= to);
        self.workload.as_ref().is_none_or(|w| *w == entry.workload)
            && self.target.as_ref().is_none_or(|t| *t == entry.target)
            && self.status.is_none_or(|s| s == entry.status)
            && self.tags.iter().all(|t| entry.tags.contains(t))
            && self.from.is_none_or(is_since)
            && self.to.is_none_or(is_until)
            && self.search.as_ref().is_none_or(|s| s.finds(entry))
    }
}

impl Search {
    /// Splits a search text into words in lower case.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let words = text.split_whitespace().map(str::to_lowercase);
        Self {
            text: text.to_owned(),
            words: words.collect(),
        }
    }

    /// Whether the texts of results contain all words, in upper or lower case.
    fn finds(&self, entry: &Entry) -> bool {
        // A word contains no white space, so a word is never found across two texts.
        let mut texts = String::new();
        let mut add = |parts: &[&str]| {
            texts.extend(parts.iter().copied());
            texts.push('\n');
        };
        add(&[&entry.name]);
        add(&[&entry.workload]);
        add(&[&entry.target]);
        for (name, values) in &entry.parameters {
            for value in values {
                add(&[name, "=", value]);
            }
        }
        for setting in [Setting::Directory, Setting::FileSystem] {
            for value in entry.settings.get(&setting).into_iter().flatten() {
                add(&[value]);
            }
        }
        for tag in &entry.tags {
            add(&[tag]);
        }
        add(&[&entry.note]);
        let texts = texts.to_lowercase();
        self.words.iter().all(|word| texts.contains(word))
    }
}

fn date(name: &str, value: &str) -> Result<Date, String> {
    let wrong = || {
        format!(
            "{name}: `{}` is not a day: expected one such as 2026-03-01",
            value.escape_debug()
        )
    };
    value.parse().map_err(|_| wrong())
}

fn number(name: &str, value: &str, max: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|n| (1..=max).contains(n));
    number.ok_or_else(|| {
        format!(
            "{name}: `{}` is not a number from 1 to {max}",
            value.escape_debug()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use proptest::prelude::*;

    #[test]
    fn a_filter_is_read_from_an_address() {
        let listing = Listing::parse(
            "workload=vda&target=null%3A%3Flatency%3D1ms&from=2026-03-01&to=&status=valid\
             &tag=a&tag=b%2Fc&page=3&per_page=10",
        )
        .unwrap();
        let f = &listing.filter;
        assert_eq!(f.target.as_deref(), Some("null:?latency=1ms"));
        assert_eq!((f.status, f.to), (Some(Status::Valid), None));
        assert_eq!(f.tags, ["a", "b/c"]);
        assert_eq!((listing.page, listing.per_page), (3, 10));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (query, part) in [
            ("x=1", "`x` is not a parameter of a list"),
            ("from=yesterday", "`yesterday` is not a day"),
            ("from=2026-02-30", "`2026-02-30` is not a day"),
            ("per_page=5&per_page=7", "`per_page` is given twice"),
            ("from=2026-03-01&from=2026-03-02", "`from` is given twice"),
            ("status=good", "expected one of valid,"),
            ("sort=speed", "sort: `speed` is not a column"),
            ("sort=name&order=up", "order: `up` is not an order"),
            ("sort=name&sort=status", "`sort` is given twice"),
            ("page=0", "page: `0` is not a number from 1 to"),
            (
                "per_page=1001",
                "per_page: `1001` is not a number from 1 to 1000",
            ),
        ] {
            let error = Listing::parse(query).unwrap_err();
            assert!(error.contains(part), "{query}: {error}");
        }
    }

    #[test]
    fn an_order_has_the_natural_direction_unless_the_address_names_another() {
        let order = |query: &str| Listing::parse(query).unwrap().order;
        let of = |by, direction| Order { by, direction };
        let (up, down) = (Direction::Ascending, Direction::Descending);
        assert_eq!(order(""), of(Column::Started, down));
        assert_eq!(order("sort=p99_ms"), of(Column::P99Ms, up));
        assert_eq!(order("sort=ops_per_s"), of(Column::OpsPerS, down));
        assert_eq!(order("order=asc"), of(Column::Started, up));
        assert_eq!(order("order=desc&sort=name"), of(Column::Name, down));
    }

    #[test]
    fn every_word_of_a_search_is_found_in_some_text() {
        let mut entry = Entry {
            name: "mail-20260301".into(),
            workload: "varmail".into(),
            target: "posix:?io=uring".into(),
            tags: vec!["Baseline".into()],
            note: "Write cache OFF,\nas in \u{c4}ra 1".into(),
            ..Entry::default()
        };
        let values = |text: &str| vec![text.to_owned()];
        entry.parameters.insert("nThreads".into(), values("16"));
        entry
            .settings
            .insert(Setting::Directory, values("/mnt/Fast"));
        entry.settings.insert(Setting::Host, values("bench"));
        for (text, found) in [
            ("mail", true),
            ("VARMAIL uring", true),
            ("nthreads=16 baseline", true),
            ("/mnt/fast cache  off", true),
            ("\u{e4}ra", true),
            ("mail nthreads=8", false),
            ("off,as", false),
            ("bench", false),
        ] {
            assert_eq!(Search::of(text).finds(&entry), found, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_query_is_too_strange(query in "\\PC{0,60}") {
            let _ = Listing::parse(&query);
        }

        #[test]
        fn the_address_of_a_page_says_the_same_filter(
            workload in "\\PC{1,20}", tags in prop::collection::vec("[a-z/&=]{1,9}", 0..3),
            page in 1u64..99, status in 0usize..5, sort in "[a-z:=&]{1,9}", search in "\\PC{1,20}",
        ) {
            let filter = Filter {
                workload: Some(workload.trim().to_owned()).filter(|w| !w.is_empty()),
                tags,
                status: Some(Status::ALL[status]),
                search: Some(search.trim()).filter(|s| !s.is_empty()).map(Search::of),
                ..Filter::default()
            };
            let by = Column::Parameter(sort);
            let order = Order { by, direction: Direction::Descending };
            let listing = Listing { filter, order, page, per_page: 7 };
            prop_assert_eq!(Listing::parse(&listing.query(page)).unwrap(), listing);
        }
    }
}
