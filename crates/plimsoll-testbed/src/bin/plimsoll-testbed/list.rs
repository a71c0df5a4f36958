//! `list`: the kinds of beds, the software that each kind needs and lacks, and the beds that are up.

use crate::beds::{store, summary};
use crate::cli::Format;
use crate::exit::Exit;
use crate::print;
use plimsoll_testbed::needs::{Need, Package};
use plimsoll_testbed::{BedError, BedOptions, BedState, KINDS, Kind, Rights};
use std::fmt::Write;

/// Prints the list.
pub fn run(format: Format) -> Result<Exit, BedError> {
    let beds = store()?.beds()?;
    print(&match format {
        Format::Text => text(&beds),
        Format::Json => json(&beds),
    })
}

/// Entry of `list`: a kind of test bed, with one value of the option that determines the programs of the kind, if the
/// kind has such an option.
struct Variant {
    /// Option and value, such as `--machine` and `qemu`; `None` if the programs of the kind depend on no option.
    choice: Option<(&'static str, &'static str)>,
    rights: &'static str,
    packages: Vec<&'static str>,
    missing: Vec<Need>,
    /// Reason why this machine cannot run the variant, even with all programs installed; `None` if the machine can.
    unavailable: Option<String>,
}

impl Variant {
    fn all(kind: &Kind) -> Vec<Self> {
        let Some(choice) = &kind.choice else {
            return vec![Self::of(kind, None, &BedOptions::default())];
        };
        let of = |value: &&'static str| {
            Self::of(kind, Some((choice.option, *value)), &choice.options(value))
        };
        choice.values.iter().map(of).collect()
    }

    fn of(kind: &Kind, choice: Option<(&'static str, &'static str)>, options: &BedOptions) -> Self {
        let needs = (kind.needs)(options);
        let unavailable = needs.as_ref().err().map(ToString::to_string);
        let needs = needs.unwrap_or_default();
        let mut packages = Vec::new();
        for need in &needs {
            let (Package::Debian(name) | Package::Python(name)) = need.package;
            if !packages.contains(&name) {
                packages.push(name);
            }
        }
        Self {
            choice,
            rights: match (kind.rights)(options) {
                Rights::UserNamespace | Rights::Fuse => "any user",
                Rights::Root(_) => "root",
            },
            packages,
            missing: needs.into_iter().filter(|n| n.find().is_none()).collect(),
            unavailable,
        }
    }

    /// Line of `list` on the variant: the needed packages, whether all programs of the packages are installed, and the
    /// commands that install missing programs.
    fn line(&self) -> String {
        let mut line = String::new();
        if let Some((option, value)) = self.choice {
            _ = write!(line, "{option} {value} ({}): ", self.rights);
        }
        if let Some(why) = &self.unavailable {
            return line + why;
        }
        _ = write!(line, "needs {}: ", self.packages.join(", "));
        match self.missing.is_empty() {
            true => line + "installed",
            false => {
                let commands = Need::install_commands(&self.missing).join(" && ");
                line + "not installed: " + &commands
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        let programs: Vec<&str> = self.missing.iter().map(|n| n.program).collect();
        serde_json::json!({
            "option": self.choice.map(|(option, _)| option),
            "value": self.choice.map(|(_, value)| value),
            "rights": self.rights,
            "packages": self.packages,
            "unavailable": self.unavailable,
            "missing": programs,
            "install": Need::install_commands(&self.missing),
        })
    }
}

fn text(beds: &[BedState]) -> String {
    let longest = KINDS.iter().map(|k| k.name.len()).max().unwrap_or(0);
    let mut out = format!("{:longest$}  {:8}  what it is\n", "kind", "rights");
    for kind in KINDS {
        let variants = Variant::all(kind);
        let rights = variants[0].rights;
        _ = writeln!(out, "{:longest$}  {rights:8}  {}", kind.name, kind.summary);
        for variant in variants {
            _ = writeln!(out, "{:longest$}            {}", "", variant.line());
        }
    }
    if beds.is_empty() {
        out.push_str("\nno test bed is up; `plimsoll testbed up KIND` starts one\n");
    } else {
        out.push_str("\nup:\n");
        for bed in beds {
            _ = writeln!(out, "{}", summary(bed));
        }
    }
    out
}

fn json(beds: &[BedState]) -> String {
    let of = |kind: &Kind| {
        let variants = Variant::all(kind);
        let mut value = variants[0].json();
        let members = value.as_object_mut().expect("a variant is an object");
        members.insert("name".into(), kind.name.into());
        members.insert("summary".into(), kind.summary.into());
        members.insert("options".into(), kind.options.into());
        let variants: Vec<serde_json::Value> = variants.iter().map(Variant::json).collect();
        members.insert("variants".into(), variants.into());
        value
    };
    let kinds: Vec<serde_json::Value> = KINDS.iter().map(of).collect();
    format!(
        "{:#}\n",
        serde_json::json!({ "kinds": kinds, "beds": beds })
    )
}
