mod large;

use super::*;
use crate::fileset::{EntriesPerDir, RelPath};
use crate::ids::VariableId;
use crate::variable::{Distribution, Value, Variable};
use proptest::prelude::*;
use rand_distr::{Distribution as _, Gamma};
use std::collections::{BTreeMap, BTreeSet};

fn fileset(entries: u64, leaf_dirs: u64, mean: f64, gamma_shape: Option<f64>) -> Fileset {
    Fileset {
        path: RelPath::new("below").unwrap(),
        leaf_dirs,
        width: EntriesPerDir { mean, gamma_shape },
        prealloc_percent: 80,
        reuse: false,
        ..Fileset::new("set", entries, Value::Draw(VariableId(0)))
    }
}

fn plan(fileset: Fileset, seed: u64) -> Plan {
    let (offset, shape, scale) = (0.0, 1.5, 10_000.0);
    let sizes = Distribution::Gamma {
        offset,
        shape,
        scale,
    };
    Plan {
        seed,
        filesets: vec![fileset],
        variables: vec![Variable::new("size", sizes)],
        ..Plan::empty("test")
    }
}

fn paths(layout: &Layout) -> Vec<String> {
    let text = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    };
    let files = (0..layout.files()).map(|i| text(&|o| layout.push_file(FileId(i), o)));
    let leaves = (0..layout.leaf_dirs()).map(|i| text(&|o| layout.push_leaf_dir(i, o)));
    files.chain(leaves).collect()
}

#[test]
fn one_file_lies_where_filebench_puts_it() {
    let f = fileset(1, 0, 10.0, None);
    let layout = Layout::new(&plan(f, 1), FilesetId(0)).unwrap();
    assert_eq!(paths(&layout), ["below/set/00000001/00000001"]);
}

#[test]
fn exact_widths_give_the_textbook_tree() {
    // The depth is ln 1000 / ln 10 = 3: the root, ten directories, and a hundred directories that hold the files.
    let layout = Layout::new(&plan(fileset(1000, 0, 10.0, None), 1), FilesetId(0)).unwrap();
    let all = paths(&layout);
    assert_eq!(all[0], "below/set/00000001/00000001/00000001");
    assert_eq!(all[999], "below/set/00000010/00000010/00000010");
    assert_eq!(layout.dirs(), 1 + 10 + 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_entry_exists_once_and_parents_come_first(
        entries in 0u64..3000,
        leaf_dirs in 0u64..300,
        width in 2.0f64..200.0,
        gamma in prop::option::of(0.3f64..4.0),
        seed: u64,
    ) {
        let p = plan(fileset(entries, leaf_dirs, width, gamma), seed);
        let layout = Layout::new(&p, FilesetId(0)).unwrap();
        prop_assert_eq!(u64::from(layout.files()), entries);
        prop_assert_eq!(u64::from(layout.leaf_dirs()), leaf_dirs);
        let mut all = BTreeSet::new();
        for d in 0..layout.dirs() {
            let mut out = Vec::new();
            layout.push_dir(DirId(d), &mut out);
            prop_assert!(all.insert(String::from_utf8(out).unwrap()));
            prop_assert!(layout.parent(DirId(d)).is_none_or(|p| p.0 < d));
            prop_assert!(layout.level(DirId(d)) <= MAX_LEVELS);
        }
        for path in paths(&layout) {
            let parent = path.rsplit_once('/').unwrap().0;
            prop_assert!(all.contains(parent));
            prop_assert!(all.insert(path));
        }
        let total: u64 = (0..layout.files()).map(|i| layout.size(FileId(i))).sum();
        let summary = layout.size_summary(false);
        prop_assert_eq!(summary.total, u128::from(total));
        prop_assert_eq!(summary.buckets.iter().map(|(_, n)| n).sum::<u64>(), entries);
    }

    #[test]
    fn one_seed_one_tree(entries in 1u64..500, seed: u64) {
        let lay = |seed| {
            let p = plan(fileset(entries, 5, 7.0, Some(1.5)), seed);
            Layout::new(&p, FilesetId(0)).unwrap()
        };
        prop_assert_eq!(lay(seed).tree, lay(seed).tree);
        prop_assert_eq!(lay(seed).fingerprint(), lay(seed).fingerprint());
        prop_assert_ne!(lay(seed).fingerprint(), lay(seed.wrapping_add(1)).fingerprint());
    }
}

/// Number of files of each directory that holds files, by the directory's number.
fn files_by_dir(layout: &Layout) -> BTreeMap<u32, u64> {
    let mut files = BTreeMap::new();
    for i in 0..layout.files() {
        *files.entry(layout.dir_of(FileId(i)).0).or_insert(0) += 1;
    }
    files
}

/// Draws of a gamma distribution with this mean, truncated to whole numbers of at least 1.
fn whole_draws(shape: f64, mean: f64) -> Vec<f64> {
    let gamma = Gamma::new(shape, mean / shape).unwrap();
    let mut rng = Stream::new(7).rng();
    let draw = |_| gamma.sample(&mut rng).floor().max(1.0);
    (0..20_000).map(draw).collect()
}

fn share(draws: &[f64], fits: impl Fn(f64) -> bool) -> f64 {
    draws.iter().filter(|d| fits(**d)).count() as f64 / draws.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn exact_widths_and_depths_are_exact(entries in 1u64..20_000, width in 2u64..200, seed: u64) {
        let p = plan(fileset(entries, 0, width as f64, None), seed);
        let layout = Layout::new(&p, FilesetId(0)).unwrap();
        // Levels of a full tree of the width for this number of entries; the root holds no files.
        let levels = (1..).take_while(|l| width.pow(*l) <= entries).count().max(2);
        let mut files = files_by_dir(&layout);
        for dir in files.keys() {
            prop_assert_eq!(layout.level(DirId(*dir)), levels);
        }
        let (_, last) = files.pop_last().unwrap();
        prop_assert!((1..=width).contains(&last));
        prop_assert!(files.values().all(|n| *n == width), "{files:?}");
    }

    /// Each directory draws a width and a depth: a directory of level L holds files if the drawn depth is at most L.
    #[test]
    fn random_widths_and_depths_follow_their_distributions(
        dirs in 400u64..1500,
        width in 2.0f64..60.0,
        shape in 0.5f64..4.0,
        seed: u64,
    ) {
        let entries = (dirs as f64 * width) as u64;
        let p = plan(fileset(entries, 0, width, Some(shape)), seed);
        let layout = Layout::new(&p, FilesetId(0)).unwrap();
        let mut files = files_by_dir(&layout);

        let depths = whole_draws(shape, (entries as f64).ln() / width.ln());
        let ends: Vec<f64> = (0..=MAX_LEVELS)
            .map(|level| if level == MAX_LEVELS { 1.0 } else { share(&depths, |d| d <= level as f64) })
            .collect();
        let (mut found, mut expected, mut variance) = (0.0, 0.0, 0.0);
        for dir in 1..layout.dirs() {
            let p = ends[layout.level(DirId(dir))];
            found += f64::from(u8::from(files.contains_key(&dir)));
            expected += p;
            variance += p * (1.0 - p);
        }
        // The number of directories with files may differ by six standard deviations, and by 1 % because the
        // probabilities are estimated from draws.
        let slack = 6.0 * f64::sqrt(variance) + 0.01 * f64::from(layout.dirs()) + 1.0;
        prop_assert!(f64::abs(found - expected) <= slack, "{found}, not {expected}");

        // The last directory is not full.
        files.pop_last();
        let widths = whole_draws(shape, width);
        let expected = widths.iter().sum::<f64>() / widths.len() as f64;
        let found = files.values().sum::<u64>() as f64 / files.len() as f64;
        let chance = expected / (shape * files.len() as f64).sqrt();
        let slack = 6.0 * chance + 0.05 * expected;
        prop_assert!((found - expected).abs() <= slack, "{found}, not {expected}");
    }
}

/// Two layouts of a Plan's fileset: the tree as a formula, and as tables.
fn both(plan: &Plan) -> (Layout, Layout) {
    let formula = Layout::without_tables(plan, FilesetId(0)).unwrap();
    let table = Layout::tabulated(plan, FilesetId(0)).unwrap();
    assert!(matches!(formula.tree, Tree::Formula(_)));
    assert!(matches!(table.tree, Tree::Table(_)));
    // With 0 files, random sizes are kept as an empty table even if the tree is a formula.
    let none = formula.files() == 0;
    assert!(none || matches!(formula.sizes, Sizes::Formula(_) | Sizes::Same(_)));
    assert!(matches!(table.sizes, Sizes::Table(_) | Sizes::Same(_)));
    (formula, table)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_formula_and_a_table_are_the_same_tree(
        entries in 0u64..3000,
        leaf_dirs in 0u64..300,
        width in prop_oneof![1.0f64..8.0, 1.0f64..400.0],
        depth in prop::option::of(0u64..12),
        percent in prop_oneof![Just(0u8), Just(50), Just(100), 0u8..=100],
        letters: bool,
        same_size: bool,
        seed: u64,
    ) {
        let p = plan(Fileset {
            depth: depth.map(Value::Const),
            prealloc_percent: percent,
            size: if same_size { Value::Const(4096) } else { Value::Draw(VariableId(0)) },
            letters: letters.then_some(Letters { before: [0, 3], after: [1, 4] }),
            ..fileset(entries, leaf_dirs, width, None)
        }, seed);
        let (formula, table) = both(&p);

        prop_assert_eq!(formula.files(), table.files());
        prop_assert_eq!(formula.dirs(), table.dirs());
        prop_assert_eq!(formula.leaf_dirs(), table.leaf_dirs());
        prop_assert_eq!(paths(&formula), paths(&table));
        for dir in (0..table.dirs()).map(DirId) {
            let path = |layout: &Layout| {
                let mut path = Vec::new();
                layout.push_dir(dir, &mut path);
                path
            };
            prop_assert_eq!(path(&formula), path(&table));
            prop_assert_eq!(formula.parent(dir), table.parent(dir));
            prop_assert_eq!(formula.level(dir), table.level(dir));
        }
        for file in (0..table.files()).map(FileId) {
            prop_assert_eq!(formula.dir_of(file), table.dir_of(file));
            prop_assert_eq!(formula.size(file), table.size(file));
            prop_assert_eq!(formula.starts_with(file), table.starts_with(file));
        }
        for initial in [false, true] {
            prop_assert_eq!(formula.size_summary(initial), table.size_summary(initial));
        }
        // A run uses the formula with a table of sizes, which has the same files and fingerprint.
        let layout = Layout::new(&p, FilesetId(0)).unwrap();
        prop_assert_eq!(layout.fingerprint(), formula.fingerprint());
        prop_assert!((0..layout.files()).all(|n| layout.size(FileId(n)) == table.size(FileId(n))));
    }

    /// A change of any number of a fileset's definition changes the layout's fingerprint.
    #[test]
    fn another_tree_has_another_fingerprint(
        entries in 1u64..2000, width in 2u64..50, seed: u64, change in 0..8,
    ) {
        let set = Fileset { depth: Some(Value::Const(3)), ..fileset(entries, 20, width as f64, None) };
        let mut other = plan(set, seed);
        let same = other.clone();
        let print = |p: &Plan| both(p).0.fingerprint();
        let set = &mut other.filesets[0];
        match change {
            0 => set.entries += 1,
            1 => set.leaf_dirs += 1,
            2 => set.width.mean += 1.0,
            3 => set.depth = Some(Value::Const(4)),
            4 => set.size = Value::Const(1),
            5 => set.initially = InitialData::Sparse,
            6 => other.options.content = Content::Zero,
            _ => other.variables[0].round = 512,
        }
        prop_assert_ne!(print(&same), print(&other));
    }
}
