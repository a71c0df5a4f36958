//! Target for profiles of Filebench: any text is a list of runs, or refused with a place. A configuration in a separate
//! file may have any text, too.

use crate::refusals::check_refusal;
use plimsoll_plan::Parameter;
use plimsoll_workload::NamedText;
use plimsoll_workload::profile::{Library, MAX_CASES, ProfileOverrides, Unavailable, parse};

/// A library in which every personality is a workload with the same six parameters, except names that contain `none`.
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
        let names = [
            "dir",
            "nthreads",
            "nfiles",
            "filesize",
            "iosize",
            "workingset",
        ];
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

/// Parses the input as a profile and lists the runs of the profile. After a form feed, the input is the text of every
/// configuration in a separate file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, configuration) = text
        .split_once('\u{c}')
        .unwrap_or((text, "nthreads = 2;\n"));
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
