use super::*;
use plimsoll_plan::{
    Arrivals, Distribution, Fileset, FilesetId, MILLION, MixFiles, MixFlags, OperationId, Pacing,
    Plan, SizeTable, Value, Variable, VariableId,
};
use proptest::prelude::*;
use std::time::Duration;

/// A mix whose working set is a part of `files` files of random sizes, and the tree of the files.
fn mix(files: u64, millionths: u32, seed: u64) -> (Mix, Arc<Layout>) {
    let plan = Plan {
        seed,
        filesets: vec![Fileset::new("data", files, Value::Draw(VariableId(0)))],
        variables: vec![Variable::new(
            "size",
            Distribution::Uniform {
                lower: 0.0,
                upper: 1e6,
            },
        )],
        ..Plan::empty("test")
    };
    let mix = Mix {
        table: vec![],
        prepare: OperationId(0),
        pacing: Some(Pacing {
            rate: 1.0,
            arrivals: Arrivals::Constant,
            start: OperationId(0),
        }),
        delay: Duration::ZERO,
        reads: SizeTable::fixed(1),
        writes: SizeTable::fixed(1),
        files: MixFiles {
            data: FilesetId(0),
            turnover: None,
            empty: None,
            shared: true,
            parts: 1,
        },
        working_set: WorkingSet {
            millionths,
            ..WorkingSet::default()
        },
        flags: MixFlags::default(),
    };
    let layout = Layout::new(&plan, FilesetId(0)).unwrap();
    (mix, Arc::new(layout))
}

proptest! {
    #[test]
    fn sizes_are_those_of_a_table(
        files in 1u64..2000,
        millionths in 200_000..=MILLION,
        seed: u64,
        changes in prop::collection::vec((any::<bool>(), any::<u64>(), 0u64..2_000_000), 0..60),
    ) {
        let (mix, layout) = mix(files, millionths, seed);
        let sizes = MixFileSizes::new(&mix, layout.clone());
        let members = mix.working_set.size(files);
        let planned = |n| layout.size(FileId(mix.working_set.file(n) as u32));
        let mut table: Vec<u64> = (0..members).map(planned).collect();
        prop_assume!(members > 0);
        for (grows, member, size) in changes {
            let member = member % members;
            let known = &mut table[member as usize];
            if grows {
                sizes.grow(member, size);
                *known = size.max(*known);
            } else {
                sizes.set(member, size);
                *known = size;
            }
            prop_assert_eq!(sizes.get(member), *known);
        }
        let found: Vec<u64> = (0..members).map(|n| sizes.get(n)).collect();
        prop_assert_eq!(found, table);
    }
}

#[test]
fn only_files_that_change_take_memory() {
    let (mix, layout) = mix(100_000_000, MILLION, 1);
    let sizes = MixFileSizes::new(&mix, layout);
    for member in (0..100_000_000).step_by(99_999) {
        let size = sizes.get(member);
        sizes.grow(member, size);
    }
    assert_eq!(
        sizes.allocated(),
        0,
        "a write within a file changes nothing"
    );
    sizes.set(CHUNK, 7);
    sizes.grow(CHUNK + 1, u64::MAX);
    assert_eq!(sizes.allocated(), 1);
    assert_eq!((sizes.get(CHUNK), sizes.get(CHUNK + 1)), (7, u64::MAX));
}
