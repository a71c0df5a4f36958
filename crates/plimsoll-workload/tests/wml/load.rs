//! The statement `load`: loaded workloads and errors.

use super::common;

use common::context;
use plimsoll_plan::{Overrides, Plan, SourceKind};
use plimsoll_workload::NamedText;
use plimsoll_workload::wml::{Context, Diagnostics, lower, parse};

const DEFS: &str = "define process name=p { thread name=t { flowop hog name=h,value=1 } }\n";

fn lower_with_loader(
    text: &str,
    load: &dyn Fn(&str) -> Option<NamedText>,
) -> Result<Plan, Diagnostics> {
    let workload = parse(text, "main.f")?;
    let context = Context {
        load,
        ..context(SourceKind::File)
    };
    lower(&workload, &Overrides::default(), &context)
}

fn first_message(result: Result<Plan, Diagnostics>) -> (String, String) {
    let Err(e) = result else { panic!("accepted") };
    let f = e.findings().remove(0);
    (f.file, f.message)
}

fn loaded(name: &str, text: impl Into<String>) -> Option<NamedText> {
    Some(NamedText {
        name: name.into(),
        text: text.into(),
    })
}

#[test]
fn errors_in_a_loaded_file_point_into_it() {
    let load = |_: &str| loaded("other.f", "set $x=1\nset $y=$z\n");
    let result = lower_with_loader(&format!("{DEFS}load other\nrun 1"), &load);
    let Err(e) = result else { panic!("accepted") };
    let f = e.findings().remove(0);
    assert_eq!((f.file.as_str(), f.line, f.column), ("other.f", 2, 8));
    assert!(e.to_string().contains("other.f:2:8"), "{e}");
    let broken = |_: &str| loaded("other.f", "sett $x=1\n");
    let (file, message) = first_message(lower_with_loader("load other\n", &broken));
    assert_eq!(
        (file.as_str(), message.as_str()),
        ("other.f", "unknown statement `sett`")
    );
}

#[test]
fn workloads_do_not_load_themselves() {
    let load = |name: &str| {
        loaded(
            name,
            format!("load {}\n", if name == "a" { "b" } else { "a" }),
        )
    };
    let (file, message) = first_message(lower_with_loader("load a\n", &load));
    assert_eq!(
        (file.as_str(), message.as_str()),
        ("b", "the workload `a` loads itself")
    );
    let own = |_: &str| loaded("main.f", "");
    let (_, message) = first_message(lower_with_loader("load me\n", &own));
    assert_eq!(message, "the workload `me` loads itself");
}

#[test]
fn a_quit_in_a_loaded_file_ends_the_script() {
    let load = |_: &str| loaded("other.f", "run 1\nquit\n");
    let plan = lower_with_loader(&format!("{DEFS}load other\nrun 2"), &load).unwrap();
    let waits = plan
        .script
        .iter()
        .filter(|p| matches!(p, plimsoll_plan::Phase::Wait { .. }));
    assert_eq!(waits.count(), 1);
}

/// The deepest nesting that is allowed must fit on the stack of a thread.
#[test]
fn the_deepest_nesting_fits_on_the_stack() {
    let deep = |inner: &str| {
        let open: String = (0..32)
            .map(|i| format!("foreach $v{i} in 1 {{\n"))
            .collect();
        format!("{open}{inner}\n{}", "}\n".repeat(32))
    };
    let load = |name: &str| {
        let n: u32 = name.trim_start_matches('l').parse().unwrap();
        loaded(name, deep(&format!("load l{}", n + 1)))
    };
    let (_, message) = first_message(lower_with_loader(&deep("load l0"), &load));
    assert_eq!(message, "too many workloads are loaded");
    let composites: String = (1..32)
        .map(|i| format!("define flowop name=c{i} {{ flowop c{} name=x }}\n", i - 1))
        .collect();
    let text = format!(
        "define flowop name=c0 {{ flowop hog name=h,value=1 }}\n{composites}\
         define process {{ thread {{ flowop c31 name=top }} }}\n"
    );
    let plan = lower_with_loader(&text, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.operations.len(), 1);
}
