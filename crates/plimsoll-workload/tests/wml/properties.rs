//! The front end neither panics nor hangs on any text, and returns well-formed results.

use super::common;

use common::lower_with;
use plimsoll_plan::Overrides;
use plimsoll_workload::wml::{BUILTINS, Diagnostics, parameters, parse, title, usage};
use proptest::prelude::*;

/// Words of the language and values, so that random sequences of the words parse in part.
const WORDS: &str = "\
    set define create run psrun sleep warmup echo usage system stats load foreach shutdown quit \
    eventgen enable mode file fileset process thread flowop randvar cvar clear snap in processes \
    name path entries dirwidth size prealloc instances memsize iosize filesetname fd iters random \
    target value type gamma mean min randtable parameters rate read write openfile closefile \
    createfile deletefile statfile semblock sempost block wakeup finishoncount opslimit makedir \
    uniform tabular cvar-gamma mean:4096;gamma:1.5 work f x /tmp true false firstdone $x $y ${x} \
    $(date) $ 0 1 5 10 4k 1m 9g 99999999999999999999 1.5 { { { } } } ( ) = = = , , , + - * / # ; ä \
    {{100,1,2}}";

/// Further words for random workloads: words with blanks, quotes and control characters, and beginnings of statements.
const OTHERS: &[&str] = &[
    "\"a $x b\"",
    "\"",
    "\"x\"",
    "\n",
    "\n",
    "\n",
    "\n",
    "\u{0}",
    "define fileset name=f,path=/tmp,entries=3,dirwidth=3\n",
    "define process name=p { thread name=t {\n",
    "flowop read name=r,filesetname=f,iosize=4k\n",
    "define flowop name=work,$x {\n",
    "foreach $x in 1,2,3 {\n",
    "run 1\n",
    "set $x=",
];

fn words() -> impl Strategy<Value = &'static str> {
    let words = WORDS.split_whitespace().chain(OTHERS.iter().copied());
    prop::sample::select(words.collect::<Vec<_>>())
}

/// Parses and lowers a text; results and errors must be well-formed.
fn survives(text: &str) {
    let checked = |e: &Diagnostics| {
        let findings = e.findings();
        assert!((1..=10).contains(&findings.len()));
        for f in findings {
            assert!(f.line >= 1 && f.column >= 1 && !f.message.is_empty());
        }
        assert!(!e.render(true, 60).is_empty() && !e.to_string().is_empty());
    };
    match parse(text, "soup.f") {
        Err(e) => checked(&e),
        Ok(workload) => {
            assert!(parameters(&workload).iter().all(|p| !p.name.is_empty()));
            assert!(title(&workload).len() <= text.len());
            assert!(usage(&workload).len() <= text.len());
            match lower_with(text, &Overrides::default()) {
                Err(e) => checked(&e),
                Ok(plan) => plan.check().unwrap(),
            }
        }
    }
}

/// Index of a character boundary in the text, at or before `at` modulo the length.
fn cut(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at % (text.len() + 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn soups_of_words_survive(words in prop::collection::vec(words(), 0..120)) {
        survives(&words.join(" "));
    }

    #[test]
    fn any_text_survives(text in ".{0,200}") {
        survives(&text);
    }

    #[test]
    fn damaged_workloads_survive(
        which in any::<prop::sample::Index>(),
        from in any::<usize>(),
        length in 0_usize..80,
        insert in words(),
    ) {
        let text = which.get(BUILTINS.all()).text;
        let start = cut(text, from);
        let end = text.floor_char_boundary((start + length).min(text.len()));
        survives(&format!("{}{insert}{}", &text[..start], &text[end..]));
    }

    #[test]
    fn numbers_read_as_they_are_printed(n in 0_u64..(1 << 52), shift in 0_usize..5) {
        let suffix = ["", "k", "m", "g", "t"][shift];
        let whole = (n >> (10 * shift)) << (10 * shift);
        let size = whole >> (10 * shift);
        for shown in [size.to_string(), format!("00{size}")] {
            let text = format!(
                "define file name=f,path=/d,size={shown}{suffix}\n\
                 define process {{ thread {{ flowop hog value=1 }} }}"
            );
            let plan = lower_with(&text, &Overrides::default()).unwrap();
            prop_assert_eq!(plan.filesets[0].size.constant(), Some(whole));
        }
    }

    #[test]
    fn a_plan_is_the_same_for_the_same_seed(which in any::<prop::sample::Index>(), seed in any::<u64>()) {
        let text = which.get(BUILTINS.all()).text;
        let overrides = Overrides { seed: Some(seed), ..Overrides::default() };
        let plan = |_| lower_with(text, &overrides).unwrap();
        prop_assert_eq!(plan(1), plan(2));
    }
}
