//! Describes a test bed, which is on the machine that also runs the load.

use super::model::{
    Filesystems, LoadGeneration, Notes, Parameter, Software, Sut, Transport, Tuning,
};
use plimsoll_results::{Environment, TestBed};
use std::path::Path;

/// Why the figures say nothing of the software's performance.
fn demonstration(cpus: u32) -> String {
    let processors = if cpus == 1 { "processor" } else { "processors" };
    format!(
        "All nodes and the load generator are on one machine with {cpus} {processors}: this is a \
         demonstration, not a performance of that software."
    )
}

impl Sut {
    /// Describes a test bed on a machine, where a run has looked at `environment`.
    #[must_use]
    pub fn of_test_bed(bed: &TestBed, environment: &Environment) -> Self {
        let dir = environment.work_dir.as_ref().map(|d| d.path.clone());
        let machine = Self::of_this_machine(dir.as_deref().unwrap_or(Path::new("/")));
        let demonstration = demonstration(environment.cpus);
        let names: Vec<String> = bed.software.iter().map(|s| s.name.clone()).collect();
        let mut sut = machine;
        sut.product.name = format!("{} test bed ({})", bed.kind, names.join(", "));
        sut.product.vendor = "assembled from existing software".into();
        sut.product.description = format!("{} {demonstration}", sentences(&bed.notes));
        sut.software.extend(bed.software.iter().map(|s| Software {
            component: s.role.clone(),
            kind: "storage software".into(),
            version: format!("{} {}", s.name, s.version),
            description: s.role.clone(),
        }));
        sut.software_tuning.push(Tuning {
            group: "nodes of the test bed".into(),
            parameters: bed
                .nodes
                .iter()
                .map(|n| Parameter {
                    name: n.name.clone(),
                    value: n.address.clone().unwrap_or_default(),
                    description: format!("{}: {}", n.role, n.state),
                })
                .collect(),
        });
        sut.filesystems = Filesystems {
            kind: names.join(", "),
            configuration: sentences(&bed.notes),
            count: 1,
            ..sut.filesystems
        };
        sut.transport = vec![Transport {
            kind: "loopback of a network namespace".into(),
            ports: 0,
            notes: "no packet leaves the machine".into(),
        }];
        for processor in &mut sut.processors {
            processor.location = "clients and all nodes".into();
            processor.function = "load generation and all nodes of the test bed".into();
        }
        sut.load_generation = LoadGeneration {
            protocol: protocol(bed),
            testbed: format!(
                "The load generator is in the network of the test bed. {demonstration}"
            ),
            ..sut.load_generation
        };
        sut.notes = Notes {
            solution: demonstration.clone(),
            other_solution: sentences(&bed.notes),
            benchmark_network: "All nodes have addresses of one network namespace.".into(),
            stable_storage: "Nothing is promised: all nodes lose power together.".into(),
            ..sut.notes
        };
        sut
    }
}

/// How the load reaches the bed.
fn protocol(bed: &TestBed) -> String {
    match bed.place.split_once(':') {
        Some(("nfs3", _)) => "NFSv3".into(),
        Some(("nfs4", rest)) if rest.contains("minorversion=0") => "NFSv4.0".into(),
        Some(("nfs4", _)) => "NFSv4.1".into(),
        _ => "system calls on a mounted file system".into(),
    }
}

/// Texts as sentences.
fn sentences(texts: &[String]) -> String {
    let one = |text: &String| {
        let mut letters = text.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string());
        format!("{}{}.", first.unwrap_or_default(), letters.as_str())
    };
    texts.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_results::{TestBedNode, TestBedSoftware};

    #[test]
    fn a_bed_says_what_it_is_and_that_it_is_a_demonstration() {
        let bed = TestBed {
            kind: "replicated".into(),
            place: "/tmp/mnt".into(),
            software: vec![TestBedSoftware {
                name: "MooseFS".into(),
                version: "3.0.117".into(),
                role: "file system".into(),
            }],
            nodes: vec![TestBedNode {
                name: "server.1".into(),
                role: "chunk server".into(),
                address: Some("198.18.0.2".into()),
                state: "running".into(),
            }],
            notes: vec!["2 copies of each chunk".into()],
        };
        let environment = Environment {
            cpus: 2,
            ..Environment::look(None)
        };
        let sut = Sut::of_test_bed(&bed, &environment);
        let again = Sut::parse(&super::super::template(&sut), "sut.toml").unwrap();
        assert_eq!(again.product.name, "replicated test bed (MooseFS)");
        assert_eq!(
            again.notes.solution,
            "All nodes and the load generator are on one machine with 2 processors: this is a \
             demonstration, not a performance of that software."
        );
        assert!(
            again
                .software
                .iter()
                .any(|s| s.version == "MooseFS 3.0.117")
        );
        assert!(
            again
                .product
                .description
                .starts_with("2 copies of each chunk. All nodes")
        );
        assert_eq!(
            again.load_generation.protocol,
            "system calls on a mounted file system"
        );
        let nfs = |place: &str| {
            protocol(&TestBed {
                place: place.into(),
                ..bed.clone()
            })
        };
        assert_eq!(nfs("nfs3://h/x"), "NFSv3");
        assert_eq!(nfs("nfs4://h/x?minorversion=0"), "NFSv4.0");
        assert_eq!(nfs("nfs4://h/x?minorversion=1"), "NFSv4.1");
    }
}
