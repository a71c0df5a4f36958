use super::*;
use crate::fileset::{EntriesPerDir, RelPath};
use crate::ids::VariableId;
use crate::variable::{Distribution, Variable};
use proptest::prelude::*;
use rand_distr::{Distribution as _, Gamma};
use std::collections::{BTreeMap, BTreeSet};

fn fileset(entries: u64, leaf_dirs: u64, mean: f64, gamma_shape: Option<f64>) -> Fileset {
    Fileset {
        name: "set".into(),
        path: RelPath::new("below").unwrap(),
        entries,
        leaf_dirs,
        width: EntriesPerDir { mean, gamma_shape },
        depth: None,
        size: Value::Draw(VariableId(0)),
        prealloc_percent: 80,
        parallel_prealloc: false,
        reuse: false,
        trust_tree: false,
        grows: false,
        letters: None,
        access: crate::Access::ReadWrite,
        cached: None,
        location: None,
    }
}

fn plan(fileset: Fileset, seed: u64) -> Plan {
    let size = Variable {
        name: "size".into(),
        distribution: Distribution::Gamma {
            offset: 0.0,
            shape: 1.5,
            scale: 10_000.0,
        },
        min: None,
        max: None,
        round: 0,
        seed: None,
    };
    Plan {
        seed,
        filesets: vec![fileset],
        variables: vec![size],
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
    // ln 1000 / ln 10 = 3: root, then two levels of directories, the second of which holds files.
    let layout = Layout::new(&plan(fileset(1000, 0, 10.0, None), 1), FilesetId(0)).unwrap();
    let all = paths(&layout);
    assert_eq!(all[0], "below/set/00000001/00000001/00000001");
    assert_eq!(all[999], "below/set/00000010/00000010/00000010");
    assert_eq!(layout.dirs(), 1 + 10 + 100);
}

#[test]
fn a_wide_directory_holds_everything() {
    let layout = Layout::new(&plan(fileset(1000, 0, 1e6, None), 1), FilesetId(0)).unwrap();
    assert_eq!(layout.dirs(), 2);
}

#[test]
fn prealloc_makes_its_share() {
    let layout = Layout::new(&plan(fileset(50_000, 0, 20.0, Some(1.5)), 3), FilesetId(0)).unwrap();
    let made = (0..layout.files())
        .filter(|i| layout.starts_with(FileId(*i)))
        .count();
    assert!((39_500..40_500).contains(&made), "{made}");
}

#[test]
fn mean_width_is_near_what_was_asked() {
    let layout = Layout::new(&plan(fileset(200_000, 0, 20.0, Some(1.5)), 3), FilesetId(0)).unwrap();
    let mut per_dir = BTreeMap::new();
    for i in 0..layout.files() {
        *per_dir.entry(layout.dir_of(FileId(i))).or_insert(0u32) += 1;
    }
    let mean = f64::from(layout.files()) / per_dir.len() as f64;
    assert!((17.0..23.0).contains(&mean), "{mean}");
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
        prop_assert_eq!(summary.total, total);
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

/// Files of each directory that holds files, in the order the directories were made.
fn files_by_dir(layout: &Layout) -> BTreeMap<u32, u64> {
    let mut files = BTreeMap::new();
    for i in 0..layout.files() {
        *files.entry(layout.dir_of(FileId(i)).0).or_insert(0) += 1;
    }
    files
}

/// Draws of a gamma distribution of this mean, cut to whole numbers of at least 1.
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
        // Levels of a tree of that width that has so many entries; the root holds no files.
        let levels = (1..).take_while(|l| width.pow(*l) <= entries).count().max(2);
        let mut files = files_by_dir(&layout);
        for dir in files.keys() {
            prop_assert_eq!(layout.level(DirId(*dir)), levels);
        }
        let (_, last) = files.pop_last().unwrap();
        prop_assert!((1..=width).contains(&last));
        prop_assert!(files.values().all(|n| *n == width), "{files:?}");
    }

    /// The width of a directory, and the depth at which a path ends in files, are drawn anew at
    /// every directory: a directory of level L holds files if a draw of the depth is at most L.
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
        // Six deviations of chance, and a hundredth for the chances being sampled themselves.
        let slack = 6.0 * f64::sqrt(variance) + 0.01 * f64::from(layout.dirs()) + 1.0;
        prop_assert!(f64::abs(found - expected) <= slack, "{found}, not {expected}");

        // The last directory is cut short by the number of entries.
        files.pop_last();
        let widths = whole_draws(shape, width);
        let expected = widths.iter().sum::<f64>() / widths.len() as f64;
        let found = files.values().sum::<u64>() as f64 / files.len() as f64;
        let chance = expected / (shape * files.len() as f64).sqrt();
        let slack = 6.0 * chance + 0.05 * expected;
        prop_assert!((found - expected).abs() <= slack, "{found}, not {expected}");
    }
}

/// The formula and the table of a Plan's fileset.
fn both(plan: &Plan) -> (Layout, Layout) {
    let formula = Layout::without_tables(plan, FilesetId(0)).unwrap();
    let table = Layout::tabulated(plan, FilesetId(0)).unwrap();
    assert!(matches!(formula.tree, Tree::Formula(_)));
    assert!(matches!(table.tree, Tree::Table(_)));
    // Sizes of no files at all are a table of none.
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
        // A run has the formula with a table of sizes, and the same files and fingerprint.
        let layout = Layout::new(&p, FilesetId(0)).unwrap();
        prop_assert_eq!(layout.fingerprint(), formula.fingerprint());
        prop_assert!((0..layout.files()).all(|n| layout.size(FileId(n)) == table.size(FileId(n))));
    }

    /// What the tree is made of must not be taken for another.
    #[test]
    fn another_tree_has_another_fingerprint(
        entries in 1u64..2000, width in 2u64..50, seed: u64, change in 0..6,
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
            _ => other.variables[0].round = 512,
        }
        prop_assert_ne!(print(&same), print(&other));
    }
}

/// A file far behind has the place that the widths give it; no table could be made for comparison.
#[test]
fn a_tree_of_a_billion_files_is_a_formula() {
    let files = 1_082_764_000;
    let p = plan(fileset(files, 0, 34.0, None), 1);
    let layout = Layout::new(&p, FilesetId(0)).unwrap();
    assert!(matches!(layout.sizes, Sizes::Formula(_)));
    // ⌊ln 1 082 764 000 / ln 34⌋ is 5: files are in directories of level 5, each below three others.
    let mut path = Vec::new();
    let last = files - 1;
    layout.push_file(FileId(last as u32), &mut path);
    let (in_dir, dir) = (last % 34, last / 34);
    let (low, middle, high) = (dir % 34, dir / 34 % 34, dir / (34 * 34) % 34);
    let first = dir / (34 * 34 * 34);
    let expected = [first, high, middle, low, in_dir].map(|n| format!("/{:08}", n + 1));
    assert_eq!(
        String::from_utf8(path).unwrap(),
        format!("below/set{}", expected.concat())
    );
    let holders = files.div_ceil(34);
    let above = holders.div_ceil(34) + holders.div_ceil(34 * 34) + holders.div_ceil(34 * 34 * 34);
    assert_eq!(u64::from(layout.dirs()), 1 + holders + above);
    assert_eq!(layout.dir_of(FileId(last as u32)).0, layout.dirs() - 1);
    assert_eq!(layout.level(DirId(layout.dirs() - 1)), 5);
}

#[test]
fn too_many_directories_are_refused() {
    // Each file has 62 directories of its own.
    let set = Fileset {
        depth: Some(Value::Const(63)),
        ..fileset(100_000_000, 0, 1.0, None)
    };
    let error = Layout::new(&plan(set, 1), FilesetId(0)).unwrap_err();
    assert_eq!(error, LayoutError::TooManyDirs("set".into()));
    assert!(error.to_string().contains("directories"), "{error}");
}

/// The sample of a summary is one of the files: its figures are within their errors of the exact ones.
#[test]
fn an_estimated_summary_is_near_the_exact_one() {
    const DRAWN: u32 = 1 << 14;
    for percent in [100, 80] {
        let set = Fileset {
            prealloc_percent: percent,
            ..fileset(1_000_000, 0, 20.0, None)
        };
        let (formula, _) = both(&plan(set, 5));
        let initial = Some(&formula.initial_files);
        let part = 1000..1_000_000;
        let exact = formula.size_summary_of(1000..1_000_000, true);
        let estimate = formula.sizes.estimate(part, initial, DRAWN);
        assert!(!exact.estimated && estimate.estimated);
        assert_eq!(estimate.files, exact.files, "the number is exact");
        // A gamma variate of shape 1.5 varies by √(1 / 1.5) of its mean; five standard errors.
        let slack = 5.0 * (1.0 / 1.5f64).sqrt() / f64::from(DRAWN).sqrt() * exact.mean;
        assert!((estimate.mean - exact.mean).abs() < slack, "{percent} %");
        let total = estimate.mean * estimate.files as f64;
        assert!((estimate.total as f64 - total).abs() <= 1.0);
        assert!(exact.min <= estimate.min && estimate.max <= exact.max);
        let share = |s: &SizeSummary, bound| {
            let found = s.buckets.iter().find(|(b, _)| *b == bound);
            found.map_or(0.0, |(_, n)| *n as f64 / s.files as f64)
        };
        for (bound, _) in &exact.buckets {
            let difference = share(&exact, *bound) - share(&estimate, *bound);
            assert!(difference.abs() < 5.0 * 0.5 / f64::from(DRAWN).sqrt());
        }
    }
}

/// Sizes are a function of the seed and the number: neighbours have nothing to do with each other.
#[test]
fn sizes_of_neighbours_are_independent_draws() {
    const FILES: u64 = 200_000;
    let (layout, _) = both(&plan(fileset(FILES, 0, 20.0, None), 9));
    let size = |n: u64| layout.size(FileId(n as u32)) as f64;
    let (mean, deviation) = (15_000.0, 10_000.0 * 1.5f64.sqrt());
    let n = FILES as f64;
    let found = (0..FILES).map(size).sum::<f64>() / n;
    assert!((found - mean).abs() < 5.0 * deviation / n.sqrt(), "{found}");
    for distance in [1, 2, 20, 64, 256, 4096] {
        let products =
            (0..FILES - distance).map(|i| (size(i) - mean) * (size(i + distance) - mean));
        let correlation = products.sum::<f64>() / (n - distance as f64) / deviation.powi(2);
        assert!(
            correlation.abs() < 5.0 / n.sqrt(),
            "{correlation} at a distance of {distance}"
        );
    }
}

/// Bits and counts of initial entries are those of the single entries.
#[test]
fn initial_entries_are_bits_of_words() {
    let set = fileset(150, 70, 10.0, Some(1.5));
    let layout = Layout::new(&plan(set, 4), FilesetId(0)).unwrap();
    let bits = |word: &dyn Fn(u32) -> u64, len: u32| -> Vec<bool> {
        let bit = |n: u32| word(n / 64) >> (n % 64) & 1 == 1;
        let words = len.div_ceil(64);
        let beyond = (len..words * 64).chain(words * 64..words * 64 + 64);
        assert!(beyond.into_iter().all(|n| !bit(n)));
        (0..len).map(bit).collect()
    };
    let files = bits(&|at| layout.initial_files(at), 150);
    let expected: Vec<bool> = (0..150).map(|n| layout.starts_with(FileId(n))).collect();
    assert_eq!(files, expected);
    let ids: Vec<u32> = layout.initial_file_ids().map(|id| id.0).collect();
    let numbers = (0..150).filter(|n| files[*n as usize]);
    assert_eq!(ids, numbers.collect::<Vec<u32>>());
    assert!((100..140).contains(&ids.len()), "{} of 150", ids.len());

    let leaves = bits(&|at| layout.initial_leaf_dirs(at), 70);
    let expected: Vec<bool> = (0..70).map(|n| layout.starts_with_leaf_dir(n)).collect();
    assert_eq!(leaves, expected);
    assert!(leaves.contains(&true) && leaves.contains(&false));
    assert!(!layout.starts_with_leaf_dir(70));
    for (from, to) in [(0, 70), (0, 1 << 40), (3, 68), (10, 10), (80, 90)] {
        let part = leaves.iter().take(to).skip(from);
        let expected = part.filter(|exists| **exists).count() as u64;
        let found = layout.count_initial_leaf_dirs(from as u64..to as u64);
        assert_eq!(found, expected, "{from} to {to}");
    }
}

#[test]
fn summaries_ignore_numbers_beyond_the_last_file() {
    let layout = Layout::new(&plan(fileset(150, 0, 10.0, None), 4), FilesetId(0)).unwrap();
    let sum = |files: std::ops::Range<u32>, initial: bool| {
        let files = files.map(FileId);
        let those = files.filter(|f| !initial || layout.starts_with(*f));
        let sizes: Vec<u64> = those.map(|f| layout.size(f)).collect();
        (sizes.len() as u64, sizes.iter().sum::<u64>())
    };
    let found = |part, initial| {
        let summary = layout.size_summary_of(part, initial);
        (summary.files, summary.total)
    };
    for initial in [false, true] {
        assert_eq!(found(0..1 << 40, initial), sum(0..150, initial));
        assert_eq!(found(100..u64::MAX, initial), sum(100..150, initial));
        assert_eq!(found(20..30, initial), sum(20..30, initial));
        assert_eq!(found(150..160, initial), (0, 0));
        assert_eq!(found(1 << 40..1 << 41, initial), (0, 0));
    }
    assert!(found(0..150, true) < found(0..150, false));
}

#[test]
fn filesets_that_cannot_be_laid_out_are_named() {
    let error = |set: Fileset, change: fn(&mut Plan)| {
        let mut plan = plan(set, 1);
        change(&mut plan);
        Layout::new(&plan, FilesetId(0)).unwrap_err().to_string()
    };
    let max = u64::from(u32::MAX) - 1;
    let too_many = "fileset `set` has more than 4294967294 entries";
    assert_eq!(error(fileset(max + 1, 0, 10.0, None), |_| ()), too_many);
    assert_eq!(error(fileset(0, max + 1, 10.0, None), |_| ()), too_many);
    // So many entries are possible, but not their directories beside them.
    let too_many_dirs = "fileset `set` has more than 4294967294 directories: more entries per \
                         directory or less depth make them fewer";
    assert_eq!(error(fileset(max, max, 2.0, None), |_| ()), too_many_dirs);
    assert_eq!(
        error(fileset(1, 0, 10.0, None), |p| p.variables[0].max =
            Some(-1.0)),
        "fileset `set`: min (0) must not exceed max (-1)"
    );
    let depth = |p: &mut Plan| {
        p.filesets[0].depth = Some(Value::Draw(VariableId(0)));
        p.filesets[0].size = Value::Const(0);
        p.variables[0].max = Some(-1.0);
    };
    assert_eq!(
        error(fileset(1, 0, 10.0, None), depth),
        "fileset `set`: min (0) must not exceed max (-1)"
    );
    assert_eq!(
        error(fileset(1, 0, 10.0, None), |p| p.filesets[0].name =
            "a/..".into()),
        "`a/..` would leave the work directory: `..` and `.` are not allowed in names"
    );
}

/// Every part of a layout is in the fingerprint, of both kinds of trees.
#[test]
fn every_part_of_a_layout_is_in_its_fingerprint() {
    let changes: [fn(&mut Fileset); 9] = [
        |_| (),
        |f| f.name = "other".into(),
        |f| f.path = RelPath::new("elsewhere").unwrap(),
        |f| f.leaf_dirs = 21,
        |f| f.prealloc_percent = 79,
        |f| f.size = Value::Const(7),
        |f| f.size = Value::Const(8),
        |f| {
            f.letters = Some(Letters {
                before: [0, 3],
                after: [1, 4],
            });
        },
        |f| {
            f.letters = Some(Letters {
                before: [1, 4],
                after: [0, 3],
            });
        },
    ];
    for gamma_shape in [None, Some(1.5)] {
        let print = |change: &fn(&mut Fileset)| {
            let mut set = fileset(300, 20, 7.0, gamma_shape);
            change(&mut set);
            let plan = plan(set, 6);
            let layout = Layout::new(&plan, FilesetId(0)).unwrap();
            assert_eq!(layout.fingerprint(), layout.clone().fingerprint());
            layout.fingerprint()
        };
        let prints: BTreeSet<u64> = changes.iter().map(print).collect();
        assert_eq!(prints.len(), changes.len());
    }
}

/// A depth that is drawn is that of the directories that hold files, within what a tree may have.
#[test]
fn depths_may_be_drawn() {
    let levels = |lower: f64, upper: f64| -> BTreeSet<usize> {
        let set = Fileset {
            depth: Some(Value::Draw(VariableId(1))),
            size: Value::Const(0),
            ..fileset(2000, 0, 4.0, None)
        };
        let mut plan = plan(set, 8);
        let distribution = Distribution::Uniform { lower, upper };
        plan.variables.push(Variable::new("depth", distribution));
        let layout = Layout::new(&plan, FilesetId(0)).unwrap();
        assert!(matches!(layout.tree, Tree::Table(_)));
        let level = |n| layout.level(layout.dir_of(FileId(n)));
        (0..layout.files()).map(level).collect()
    };
    assert_eq!(levels(5.0, 5.0), [5].into());
    // The root holds no files.
    assert_eq!(levels(0.0, 0.0), [2].into());
    assert_eq!(levels(100.0, 100.0), [MAX_LEVELS].into());
    // Each directory draws its own: one of level 3 holds files if its draw is at most 3.
    assert_eq!(levels(3.0, 5.0), [3, 4, 5].into());
}

#[test]
fn the_depth_of_a_table_may_be_a_number() {
    let set = Fileset {
        depth: Some(Value::Const(6)),
        ..fileset(500, 0, 5.0, Some(2.0))
    };
    let layout = Layout::new(&plan(set, 8), FilesetId(0)).unwrap();
    assert!(matches!(layout.tree, Tree::Table(_)));
    let holders = files_by_dir(&layout);
    assert!(holders.keys().all(|dir| layout.level(DirId(*dir)) == 6));
    assert_eq!(layout.parent(DirId(0)), None);
    assert_eq!(layout.level(DirId(0)), 1);
}

/// Positions alone do not tell a tree from another: the second of two directories may be beside the
/// first one's parent or below it.
#[test]
fn every_number_of_a_table_is_in_its_fingerprint() {
    let set = fileset(300, 20, 5.0, Some(1.5));
    let layout = Layout::new(&plan(set, 6), FilesetId(0)).unwrap();
    let changed = |change: fn(&mut TableTree)| {
        let mut layout = layout.clone();
        match &mut layout.tree {
            Tree::Table(tree) => change(tree),
            Tree::Formula(_) => unreachable!("widths are random"),
        }
        layout.hash()
    };
    let changes: [fn(&mut TableTree); 6] = [
        |_| (),
        |tree| tree.dirs[5].parent += 1,
        |tree| tree.dirs[5].position += 1,
        |tree| tree.dirs[5].first_file += 1,
        |tree| tree.leaf_dirs[5].0 += 1,
        |tree| tree.leaf_dirs[5].1 += 1,
    ];
    let prints: BTreeSet<u64> = changes.into_iter().map(changed).collect();
    assert_eq!(prints.len(), 6);
    assert!(prints.contains(&layout.fingerprint()));
}
