//! Sections of the published forms.

use std::borrow::Cow;

/// Name of the section with the load points.
pub(crate) const PERFORMANCE: &str = "Performance";

/// Sections of the form of 2008, in their order.
const FORM_2008: [&str; 22] = [
    "Product and Test Information",
    "Configuration Bill of Materials",
    "Server Software",
    "Server Tuning",
    "Server Tuning Notes",
    "Disks and Filesystems",
    "Network Configuration",
    "Network Configuration Notes",
    "Benchmark Network",
    "Processing Elements",
    "Processing Element Notes",
    "Memory",
    "Memory Notes",
    "Stable Storage",
    "System Under Test Configuration Notes",
    "Other System Notes",
    "Test Environment Bill of Materials",
    "Load Generators",
    "Load Generator Configuration",
    "Load Generator Configuration Notes",
    "Uniform Access Rule Compliance",
    "Other Notes",
];

/// Sections of the later forms.
const FORM_2014: [&str; 25] = [
    "Product and Test Information",
    "Solution Under Test Bill of Materials",
    "Configuration Diagrams",
    "Component Software",
    "Hardware Configuration and Tuning - Physical",
    "Hardware Configuration and Tuning Notes",
    "Software Configuration and Tuning - Physical",
    "Software Configuration and Tuning Notes",
    "Service SLA Notes",
    "Storage and Filesystems",
    "Filesystem Creation Notes",
    "Storage and Filesystem Notes",
    "Transport Configuration - Physical",
    "Transport Configuration Notes",
    "Switches - Physical",
    "Processing Elements - Physical",
    "Processing Element Notes",
    "Memory - Physical",
    "Memory Notes",
    "Stable Storage",
    "Solution Under Test Configuration Notes",
    "Other Solution Notes",
    "Dataflow",
    "Other Notes",
    "Other Report Notes",
];

/// Section names of the report form to which `metric` belongs, in order: the form of SPECsfs2008, or the form since SFS
/// 2014.
pub(super) fn form(metric: &str) -> &'static [&'static str] {
    match metric.starts_with("SPECsfs2008") {
        true => &FORM_2008,
        false => &FORM_2014,
    }
}

/// Headings that are found even if the underline has another width: the headings of all forms except `Notes` of another
/// section.
pub(super) fn known_headings() -> impl Iterator<Item = Cow<'static, str>> {
    let plain = FORM_2008.iter().chain(&FORM_2014).copied();
    let plain = plain.filter(|name| !name.ends_with("Notes"));
    let virtual_name = |name: &str| name.replace("- Physical", "- Virtual").into();
    let virtual_names = FORM_2014.iter().filter(|name| name.ends_with("- Physical"));
    let virtual_names = virtual_names.map(move |name| virtual_name(name));
    plain
        .chain([PERFORMANCE])
        .map(Cow::from)
        .chain(virtual_names)
}
