//! Layouts of very many files, limits of layouts, sampled summaries of sizes, and fingerprints.

use super::*;

/// The path of a file follows from the file's number and the tree's width; tables of a billion files would not fit the
/// memory.
#[test]
fn a_tree_of_a_billion_files_is_a_formula() {
    let files = 1_082_764_000;
    let p = plan(fileset(files, 0, 34.0, None), 1);
    let layout = Layout::new(&p, FilesetId(0)).unwrap();
    assert!(matches!(layout.sizes, Sizes::Formula(_)));
    // ⌊ln 1 082 764 000 / ln 34⌋ is 5: files are in directories of level 5, below three directories and the root.
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
    // Each file has a chain of 62 directories.
    let set = Fileset {
        depth: Some(Value::Const(63)),
        ..fileset(100_000_000, 0, 1.0, None)
    };
    let error = Layout::new(&plan(set, 1), FilesetId(0)).unwrap_err();
    assert_eq!(error, LayoutError::TooManyDirs("set".into()));
    assert!(error.to_string().contains("directories"), "{error}");
}

/// The figures of a sampled summary are within their statistical errors of the exact figures.
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
        // A gamma variate of shape 1.5 has a relative deviation of √(1 / 1.5); the slack is five standard errors.
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

/// Sizes are a function of the seed and the file number, and sizes of neighbours are independent.
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

/// Bit masks and counts of the entries that exist when a run starts agree with the single entries.
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
        let sizes: Vec<u128> = those.map(|f| layout.size(f).into()).collect();
        (sizes.len() as u64, sizes.iter().sum())
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
    // The number of entries is possible, but the number of their directories is not.
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

/// The fingerprint of both kinds of trees covers every part of a layout.
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

/// A drawn depth is the level of the directories that hold files, cut to the possible levels.
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
    // Each directory draws a depth: a directory of level 3 holds files if its draw is at most 3.
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

/// Positions alone do not identify a tree: the second of two directories may be beside or below the parent of the
/// first.
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
