//! Filebench's profiles: any text is a list of runs, or refused with a place. A configuration that is kept in its own
//! file has the same text.

use crate::refusals::check_refusal;
use plimsoll_plan::Parameter;
use plimsoll_workload::profile::{Library, MAX_CASES, NamedText, ProfileOverrides, Unavailable, parse};

/// A library whose workloads all have the same parameters.
struct FewParameters<'a> {
    configuration: &'a str,
}

impl Library for FewParameters<'_> {
    fn parameters(&self, personality: &str) -> Result<Vec<Parameter>, Unavailable> {
        if personality.contains("none") {
            return Err(Unavailable::Nowhere("there is none".into()));
        }
        let parameter = |name: &str| Parameter {
            name: name.into(),
            value: "1".into(),
            default: "1".into(),
            meaning: String::new(),
        };
        let names = ["dir", "nthreads", "nfiles", "filesize", "iosize", "workingset"];
        Ok(names.into_iter().map(parameter).collect())
    }

    fn parameters_of_all(&self) -> Vec<String> {
        vec!["nthreads".into(), "eventrate".into()]
    }

    fn configuration(&self, name: &str) -> Result<Option<NamedText>, String> {
        Ok(name.starts_with('c').then(|| NamedText {
            name: format!("{name}.conf"),
            text: self.configuration.into(),
        }))
    }
}

/// Parses a text and lists its runs. The text of configurations follows a form feed.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, configuration) = text.split_once('\u{c}').unwrap_or((text, "nthreads = 2;\n"));
    let profile = match parse(text, "fuzz.prof") {
        Ok(profile) => profile,
        Err(errors) => return check_refusal(&errors),
    };
    let library = FewParameters { configuration };
    match profile.cases(&library, &ProfileOverrides::default()) {
        Ok(list) => assert!(list.cases.len() <= MAX_CASES),
        Err(errors) => check_refusal(&errors),
    }
    let _ = std::hint::black_box((profile.clients(), profile.client_dir()));
}
