//! Sections on the system under test, in the order of the forms of 2014 and later.

use super::FormSection;
use super::page::{Part, line, paragraphs, stated};
use crate::disclosure::sut::{
    Diagram, LoadGeneration, LoadGenerator, Material, Memory, Processor, Product, Software,
    Storage, Sut, Switch, Transport, Tuning,
};

/// All sections on the system under test; empty sections that only the form of 2008 has are left out.
pub(super) fn sections(s: &Sut) -> Vec<FormSection> {
    let n = &s.notes;
    let (hardware, software_tuning) = (tuning(&s.hardware_tuning), tuning(&s.software_tuning));
    let mut all = vec![
        section("Product and Test Information", product(&s.product)),
        section(
            "Solution Under Test Bill of Materials",
            materials(&s.materials),
        ),
        section("Configuration Diagrams", diagrams(&s.diagrams)),
        section("Component Software", software(&s.software)),
        section("Hardware Configuration and Tuning - Physical", hardware),
        notes(
            "Hardware Configuration and Tuning Notes",
            &n.hardware_tuning,
        ),
        section(
            "Software Configuration and Tuning - Physical",
            software_tuning,
        ),
        notes(
            "Software Configuration and Tuning Notes",
            &n.software_tuning,
        ),
        notes("Service SLA Notes", &n.service_sla),
        section("Storage and Filesystems", storage(s)),
        notes("Filesystem Creation Notes", &n.filesystem_creation),
        notes("Storage and Filesystem Notes", &n.storage),
        section(
            "Transport Configuration - Physical",
            transport(&s.transport),
        ),
        notes("Transport Configuration Notes", &n.transport),
        section("Switches - Physical", switches(&s.switches)),
        section("Processing Elements - Physical", processors(&s.processors)),
        notes("Processing Element Notes", &n.processors),
        section("Memory - Physical", memory(&s.memory)),
        notes("Memory Notes", &n.memory),
        notes("Stable Storage", &n.stable_storage),
        notes("Solution Under Test Configuration Notes", &n.solution),
        notes("Other Solution Notes", &n.other_solution),
        notes("Dataflow", &n.dataflow),
    ];
    let load_generators = load_generators(&s.load_generators);
    let of_2008 = [
        notes("Benchmark Network", &n.benchmark_network),
        section(
            "Test Environment Bill of Materials",
            materials(&s.test_materials),
        ),
        section("Load Generators", load_generators),
        section(
            "Load Generator Configuration",
            load_generation(&s.load_generation),
        ),
        notes("Load Generator Configuration Notes", &n.load_generators),
        notes("Uniform Access Rule Compliance", &n.uniform_access),
    ];
    all.extend(of_2008.into_iter().filter(|s| !s.parts.is_empty()));
    all
}

pub(super) fn section(name: &'static str, parts: Vec<Part>) -> FormSection {
    FormSection { name, parts }
}

pub(super) fn notes(name: &'static str, text: &str) -> FormSection {
    section(name, paragraphs(text))
}

/// A numbered table of the items that are not empty; `|` separates the columns in `head`.
fn items<T: Default + PartialEq>(
    head: &'static str,
    list: &[T],
    cells: impl Fn(&T) -> Vec<String>,
) -> Vec<Part> {
    let filled = list.iter().filter(|item| **item != T::default());
    let row = |(number, item): (u64, &T)| [vec![number.to_string()], cells(item)].concat();
    let rows: Vec<Vec<String>> = (1..).zip(filled).map(row).collect();
    let head = std::iter::once("No").chain(head.split('|')).collect();
    match rows.is_empty() {
        true => vec![],
        false => vec![Part::Table(head, rows)],
    }
}

fn lines<const N: usize>(texts: [&String; N]) -> Vec<String> {
    texts.map(|t| line(t)).into()
}

fn product(p: &Product) -> Vec<Part> {
    let mut parts = vec![
        Part::Title(stated(&p.name)),
        Part::Fields(vec![
            ("Tested by", stated(&p.tested_by)),
            ("Hardware Available", stated(&p.hardware_available)),
            ("Software Available", stated(&p.software_available)),
            ("Date Tested", stated(&p.date_tested)),
            ("License Number", stated(&p.license_number)),
            ("Licensee Locations", stated(&p.locations)),
        ]),
    ];
    parts.extend(paragraphs(&p.description));
    parts
}

fn materials(list: &[Material]) -> Vec<Part> {
    items("Qty|Type|Vendor|Model/Name|Description", list, |m| {
        let texts = lines([&m.kind, &m.vendor, &m.model, &m.description]);
        [vec![m.quantity.to_string()], texts].concat()
    })
}

fn diagrams(list: &[Diagram]) -> Vec<Part> {
    items("Diagram|File", list, |d| lines([&d.name, &d.file]))
}

fn software(list: &[Software]) -> Vec<Part> {
    let head = "Component|Type|Name and Version|Description";
    items(head, list, |s| {
        lines([&s.component, &s.kind, &s.version, &s.description])
    })
}

fn tuning(groups: &[Tuning]) -> Vec<Part> {
    let blank = |g: &&Tuning| {
        let empty = g.parameters.iter().all(|p| *p == Default::default());
        !(empty && line(&g.group).is_empty())
    };
    let group = |g: &Tuning| {
        let head = vec!["Parameter Name", "Value", "Description"];
        let filled = g.parameters.iter().filter(|p| **p != Default::default());
        let rows: Vec<Vec<String>> = filled
            .map(|p| lines([&p.name, &p.value, &p.description]))
            .collect();
        let rows = match rows.is_empty() {
            true => Part::Prose("None".into()),
            false => Part::Table(head, rows),
        };
        [Part::Title(stated(&g.group)), rows]
    };
    groups.iter().filter(blank).flat_map(group).collect()
}

fn storage(sut: &Sut) -> Vec<Part> {
    let head = "Description|Data Protection|Stable Storage|Usable|Qty";
    let mut parts = items(head, &sut.storage, |s: &Storage| {
        vec![
            line(&s.description),
            stated(&s.protection),
            yes_or_no(s.stable),
            line(&s.usable),
            s.quantity.to_string(),
        ]
    });
    let f = &sut.filesystems;
    parts.push(Part::Fields(vec![
        ("Number of Filesystems", f.count.to_string()),
        ("Total Capacity", stated(&f.capacity)),
        ("Filesystem Type", stated(&f.kind)),
        ("Filesystem Creation Options", stated(&f.creation_options)),
        ("Filesystem Configuration", stated(&f.configuration)),
        ("Fileset Size", stated(&f.fileset_size)),
    ]));
    parts
}

fn transport(list: &[Transport]) -> Vec<Part> {
    items("Transport Type|Ports Used|Notes", list, |t| {
        vec![line(&t.kind), t.ports.to_string(), line(&t.notes)]
    })
}

fn switches(list: &[Switch]) -> Vec<Part> {
    let head = "Switch Name|Switch Type|Total Ports|Used Ports|Notes";
    items(head, list, |s| {
        vec![
            line(&s.name),
            line(&s.kind),
            s.ports.to_string(),
            s.ports_used.to_string(),
            line(&s.notes),
        ]
    })
}

fn processors(list: &[Processor]) -> Vec<Part> {
    let head = "Qty|Type|Location|Description|Processing Function";
    items(head, list, |p| {
        let texts = lines([&p.kind, &p.location, &p.description, &p.function]);
        [vec![p.quantity.to_string()], texts].concat()
    })
}

fn memory(list: &[Memory]) -> Vec<Part> {
    let head = "Description|Size in GiB|Qty|Nonvolatile|Total GiB";
    let total = |m: &Memory| m.size_gib * m.quantity as f64;
    let mut parts = items(head, list, |m| {
        vec![
            line(&m.description),
            m.size_gib.to_string(),
            m.quantity.to_string(),
            yes_or_no(m.nonvolatile),
            hundredths(total(m)),
        ]
    });
    let all = hundredths(list.iter().map(total).sum());
    if !parts.is_empty() {
        parts.push(Part::Fields(vec![("Grand Total Memory Gibibytes", all)]));
    }
    parts
}

fn load_generators(list: &[LoadGenerator]) -> Vec<Part> {
    let filled = list.iter().filter(|g| **g != LoadGenerator::default());
    let each = filled.map(|g| {
        Part::Fields(vec![
            ("LG Type Name", stated(&g.name)),
            ("Number of these", g.quantity.to_string()),
            ("Processor Name", stated(&g.processor)),
            ("Number of Processors", g.processors.to_string()),
            ("Memory Size", format!("{} GiB", g.memory_gib)),
            ("Operating System", stated(&g.operating_system)),
            ("Network", stated(&g.network)),
        ])
    });
    each.collect()
}

fn load_generation(g: &LoadGeneration) -> Vec<Part> {
    if *g == LoadGeneration::default() {
        return vec![];
    }
    let size = match g.block_size {
        0 => "chosen by the workload".into(),
        bytes => format!("{bytes} bytes"),
    };
    vec![Part::Fields(vec![
        ("Storage Protocol", stated(&g.protocol)),
        ("Processes per LG", g.processes.to_string()),
        ("Reads Ahead per Process", g.read_ahead.to_string()),
        ("Writes Behind per Process", g.write_behind.to_string()),
        ("Largest Transfer", size),
        ("Testbed", stated(&g.testbed)),
    ])]
}

fn yes_or_no(answer: bool) -> String {
    if answer { "Yes" } else { "No" }.into()
}

fn hundredths(v: f64) -> String {
    ((v * 100.0).round() / 100.0).to_string()
}
