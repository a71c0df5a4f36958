//! What is said of a text that is no profile, as a person reads it; and that any text is read
//! without harm.

use plimsoll_profile::{Changes, Library, parse};
use proptest::prelude::*;

/// Knows one workload.
struct One;

impl Library for One {
    fn parameters(&self, personality: &str) -> Result<Vec<String>, String> {
        match personality {
            "randomread" => Ok(vec!["nthreads".into(), "iosize".into()]),
            _ => Err(format!("there is no workload `{personality}`")),
        }
    }

    fn parameters_of_all(&self) -> Vec<String> {
        vec![]
    }
}

fn said(text: &str) -> String {
    let cases = parse(text, "study.prof").and_then(|p| p.cases(&One, &Changes::default()));
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
            "DEFAULTS {\n  runtime = 60\n  dir = ;\n  stats /tmp;\n  = 3;\n  description = \"no end;\n}\n\
         CONFG read {\n}\nCONFIG {\n}\nCONFIG a {\n  nthreads = 1;\n  nthreads = 2;\n}\nCONFIG a { }\n\
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
            "DEFAULTS { runtime = soon; }\nCONFIG read {\n  personality = randomread;\n  nthread = 16;\n  \
         colour = red;\n}\nCONFIG write {\n  personality = randomwrite;\n}\n"
        )
    );
    insta::assert_snapshot!("empty", said("# nothing but a comment\n"));
}

/// A text made of what profiles are made of, in any order.
fn jumbled() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "DEFAULTS",
        "CONFIG",
        "{",
        "}",
        "=",
        ";",
        ",",
        "\"",
        "#",
        "\n",
        " ",
        "$",
        "${",
        "(",
        ")",
        "personality",
        "randomread",
        "nthreads",
        "$nthreads",
        "filesystem",
        "dir",
        "runtime",
        "60",
        "\\",
        "ä",
        "a",
        "b",
    ]);
    prop::collection::vec(words, 0..60).prop_map(|w| w.join(" "))
}

/// A value that needs no quotes, and one that does.
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
        let cases = parse(&text, "x").and_then(|p| p.cases(&One, &Changes::default()));
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
        // In front of a comment stands white space, or the sign would be of the value.
        let list = written.join(&format!("{spaces},{spaces}"));
        let text = format!(
            "CONFIG c {{{spaces}personality = randomread;{spaces}iosize ={spaces} {list} {spaces};}}"
        );
        let listed = parse(&text, "x").and_then(|p| p.cases(&One, &Changes::default()));
        let listed = listed.map_err(|d| TestCaseError::fail(format!("{d}\n{text}")))?;
        let read: Vec<String> = listed.cases.iter().map(|c| c.sets[0].1.clone()).collect();
        let expected: Vec<String> = values.into_iter().map(|(_, v)| v).collect();
        prop_assert_eq!(read, expected);
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
        let listed = parse(&text, "x").and_then(|p| p.cases(&One, &Changes::default())).unwrap();
        prop_assert_eq!(listed.cases.len(), lengths[0] * lengths[1] * systems);
        let mut seen: Vec<_> = listed.cases.iter().map(|c| (&c.name, &c.place.label)).collect();
        seen.sort();
        seen.dedup();
        prop_assert_eq!(seen.len(), listed.cases.len());
    }
}
