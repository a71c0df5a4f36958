//! Diagnostics of invalid profiles, as users read them; every text is parsed or refused without a panic.

use plimsoll_plan::Parameter;
use plimsoll_workload::NamedText;
use plimsoll_workload::profile::{Library, ProfileOverrides, Unavailable, parse};
use proptest::prelude::*;

/// A library with one workload.
struct One;

fn named(name: &str) -> Parameter {
    Parameter {
        name: name.into(),
        value: String::new(),
        default: String::new(),
        meaning: String::new(),
    }
}

impl Library for One {
    fn parameters(&self, personality: &str) -> Result<Vec<Parameter>, Unavailable> {
        match personality {
            "randomread" => Ok(vec![named("nthreads"), named("iosize")]),
            _ => Err(Unavailable::Nowhere(format!(
                "`{personality}` is not a workload"
            ))),
        }
    }

    fn parameters_of_all(&self) -> Vec<String> {
        vec![]
    }

    fn configuration(&self, name: &str) -> Result<Option<NamedText>, String> {
        Ok((name == "own").then(|| NamedText {
            name: "own.conf".into(),
            text: "function = generic;\npersonality randomread;\n".into(),
        }))
    }
}

fn said(text: &str) -> String {
    let cases = parse(text, "study.prof").and_then(|p| p.cases(&One, &ProfileOverrides::default()));
    match cases {
        Ok(_) => panic!("nothing is wrong with it"),
        Err(d) => d.to_string(),
    }
}

#[test]
fn wrong_texts_are_shown_with_their_places() {
    insta::assert_snapshot!(
        "grammar",
        said(
            "DEFAULTS {\n  runtime = \"60\" s;\n  dir = ;\n  stats /tmp;\n  = 3;\n  description = \"no \
             end;\n}\nCONFG read {\n}\nCONFIG {\n}\nCONFIG a {\n  nthreads = 1;\n  nthreads = 2;\n}\nCONFIG a { }\n\
             CONFIG b {\n  nthreads = 1;\n"
        )
    );
    insta::assert_snapshot!(
        "keys",
        said(
            "DEFAULTS {\n  runtime = soon;\n  filesystem = a, b;\n  dir = /x;\n}\n\
         CONFIG read {\n  personality = randomread;\n  function = generic;\n}\n"
        )
    );
    insta::assert_snapshot!(
        "names",
        said(
            "DEFAULTS { runtime = soon; }\nCONFIG read {\n  personality = randomread;\n  eventrate = fast;\n  \
         warmuptime = long;\n}\nCONFIG write {\n  personality = randomwrite;\n}\n"
        )
    );
    insta::assert_snapshot!("empty", said("# nothing but a comment\n"));
}

#[test]
fn what_profiles_of_older_versions_hold_is_shown_with_its_place() {
    insta::assert_snapshot!(
        "lists",
        said("CONFIG {\n  randomread;\n  randomread\n  function = generic;\n}\nCONFIG {\n  own\n")
    );
    insta::assert_snapshot!("own_keys", said("CONFIG { own }\n"));
    insta::assert_snapshot!(
        "machines",
        said(
            "MULTICLIENT {\n  targetpath = /server, /other;\n  client = one, two, three;\n}\n\
             CONFIG read {\n  personality = randomread;\n}\n"
        )
    );
    insta::assert_snapshot!(
        "functions",
        said(
            "CONFIG rates {\n  function = rateloop;\n  personality = randomread;\n}\n\
             CONFIG sizes {\n  function = memsizeloop;\n  personality = randomread;\n}\n\
             CONFIG two {\n  function = generic, rateloop;\n  personality = randomread;\n}\n"
        )
    );
    insta::assert_snapshot!(
        "none_left",
        said(
            "CONFIG kernel {\n  function = segkpm;\n  filesize = 1g;\n}\n\
             CONFIG other {\n  function = caching;\n  personality = randomread;\n}\n"
        )
    );
}

/// A text of words from profiles, in any order.
fn jumbled() -> impl Strategy<Value = String> {
    let words = "DEFAULTS CONFIG MULTICLIENT own function rateloop memsizeloop maxrate warmuptime { } \
        = ; , # $ ${ ( ) personality randomread nthreads $nthreads filesystem dir runtime 60 \
        ä a b";
    let words = words.split_whitespace().chain(["\"", "\n", " ", "\\"]);
    let words = prop::sample::select(words.collect::<Vec<_>>());
    prop::collection::vec(words, 0..60).prop_map(|w| w.join(" "))
}

/// A value as written and as parsed: without quotes, or with quotes and escapes.
fn value() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        "[a-z0-9/._-]{1,12}".prop_map(|v| (v.clone(), v)),
        "[ -~]{0,12}"
            .prop_filter("a variable means something else", |v| !v.contains('$'))
            .prop_map(|v| {
                let escaped = v.replace('\\', "\\\\").replace('"', "\\\"");
                (format!("\"{escaped}\""), v)
            }),
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in prop_oneof![jumbled(), any::<String>()]) {
        let cases = parse(&text, "x").and_then(|p| p.cases(&One, &ProfileOverrides::default()));
        if let Err(d) = cases {
            prop_assert!(!d.findings().is_empty() && !d.to_string().is_empty());
        }
    }

    #[test]
    fn what_is_written_is_what_is_read(
        values in prop::collection::vec(value(), 1..5),
        spaces in prop::sample::select(vec!["", " ", "\n\t", " # a comment\n"]),
    ) {
        let written: Vec<String> = values.iter().map(|(w, _)| w.clone()).collect();
        // White space precedes a comment; otherwise `#` would belong to the value.
        let list = written.join(&format!("{spaces},{spaces}"));
        let text = format!(
            "CONFIG c {{{spaces}personality = randomread;{spaces}iosize ={spaces} {list} {spaces};}}"
        );
        let listed = parse(&text, "x").and_then(|p| p.cases(&One, &ProfileOverrides::default()));
        let listed = listed.map_err(|d| TestCaseError::fail(format!("{d}\n{text}")))?;
        let read: Vec<String> = listed.cases.iter().map(|c| c.sets[0].1.clone()).collect();
        let expected: Vec<String> = values.into_iter().map(|(_, v)| v).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn semicolons_at_the_ends_of_lines_are_not_needed(
        values in prop::collection::vec("[a-z0-9/._-]{1,12}", 1..5),
        omitted in prop::collection::vec(any::<bool>(), 5),
    ) {
        let entry = |(i, (value, omitted)): (usize, (&String, &bool))| {
            format!("key{i} = {value}{}\n", if *omitted { "" } else { ";" })
        };
        let entries: String = values.iter().zip(&omitted).enumerate().map(entry).collect();
        let text = format!("CONFIG c {{ personality = randomread;\n{entries}}}");
        let strict = text.replace(";\n", "\n").replace('\n', ";\n").replace("};", "}");
        let read = |text: &str| {
            parse(text, "x").and_then(|p| p.cases(&One, &ProfileOverrides::default())).unwrap()
        };
        let (some, all) = (read(&text), read(&strict));
        prop_assert_eq!(&some.cases, &all.cases);
        let without = omitted[..values.len()].iter().filter(|o| **o).count();
        let noted = some.notes.iter().filter(|n| n.contains("no semicolon")).count();
        prop_assert_eq!(noted, without);
    }

    #[test]
    fn a_list_without_names_is_as_many_configurations(
        names in prop::collection::btree_set("[a-z0-9._/-]{1,8}", 1..6),
        separator in prop::sample::select(vec!["\n", " ", ", ", ";\n", " # a comment\n"]),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).filter(|n| *n != "own").collect();
        let text = format!("CONFIG {{ randomread {separator} {} \n}}", names.join(separator));
        let profile = parse(&text, "x").map_err(|d| TestCaseError::fail(d.to_string()))?;
        let expected: Vec<&str> = ["randomread"].into_iter().chain(names.iter().copied()).collect();
        prop_assert_eq!(profile.configs().collect::<Vec<_>>(), expected);
        let listed = profile.cases(&One, &ProfileOverrides::default()).unwrap();
        prop_assert_eq!((listed.cases.len(), listed.not_run.len()), (1, names.len()));
    }

    #[test]
    fn runs_are_as_many_as_the_product_of_the_lists(
        lengths in prop::collection::vec(1_usize..5, 2),
        systems in 1_usize..4,
    ) {
        let list = |n: usize| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
        let names: Vec<String> = (0..systems).map(|i| format!("fs{i}")).collect();
        let text = format!(
            "DEFAULTS {{ filesystem = {}; dir = /m/$filesystem; }}\n\
             CONFIG c {{ personality = randomread; nthreads = {}; iosize = {}; }}",
            names.join(","), list(lengths[0]), list(lengths[1])
        );
        let listed = parse(&text, "x").and_then(|p| p.cases(&One, &ProfileOverrides::default())).unwrap();
        prop_assert_eq!(listed.cases.len(), lengths[0] * lengths[1] * systems);
        let mut seen: Vec<_> = listed.cases.iter().map(|c| (&c.name, &c.place.label)).collect();
        seen.sort();
        seen.dedup();
        prop_assert_eq!(seen.len(), listed.cases.len());
    }
}
