//! The description of a bed as a system under test that shares the machine of the load generator.

use plimsoll_report::compare::distinct;
use plimsoll_report::disclosure::Sut;
use plimsoll_report::disclosure::sut::{
    Filesystems, LoadGeneration, Notes, Parameter, Software, Transport, Tuning, template,
};
use plimsoll_testbed::{BedError, BedState, BedTarget, NodeStatus, TestBed};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes the description of a bed that is loaded through `targets` to a new file in the directory of the bed's state;
/// returns the path. The calling process is in the bed's network.
///
/// # Errors
/// If the bed does not reply, or if the file cannot be written.
pub fn write(bed: &TestBed, targets: &[&BedTarget]) -> Result<PathBuf, BedError> {
    let dir = targets.iter().find_map(|t| t.directory.as_deref());
    let machine = Sut::of_this_machine(dir.unwrap_or(Path::new("/")));
    let sut = describe(machine, bed.state(), &bed.nodes()?, targets);
    let file = tempfile::Builder::new()
        .prefix("sut-")
        .suffix(".toml")
        .tempfile_in(bed.dir());
    let written = file.and_then(|mut file| {
        file.write_all(template(&sut).as_bytes())?;
        // The end of the bed removes the file.
        Ok(file.keep()?.1)
    });
    written.map_err(|e| BedError::failed("cannot write the description of the test bed", e))
}

/// A sentence that says why the figures do not show the performance of the software.
fn demonstration(cpus: usize) -> String {
    let processors = if cpus == 1 { "processor" } else { "processors" };
    format!(
        "All nodes and the load generator are on one machine with {cpus} {processors}: this is a \
         demonstration, not a performance of the software."
    )
}

/// Adds a bed to the description of its machine.
fn describe(machine: Sut, bed: &BedState, nodes: &[NodeStatus], targets: &[&BedTarget]) -> Sut {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let demonstration = demonstration(cpus);
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
        parameters: nodes.iter().map(parameter).collect(),
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
        protocol: protocols(targets),
        testbed: format!("The load generator is in the network of the test bed. {demonstration}"),
        ..sut.load_generation
    };
    sut.notes = Notes {
        solution: demonstration.clone(),
        other_solution: sentences(&bed.notes),
        benchmark_network: "All nodes have addresses of one network namespace.".into(),
        stable_storage: "No data is promised to survive: all nodes lose power together.".into(),
        ..sut.notes
    };
    sut
}

/// A node as a tuning parameter: name, address, and role with state.
fn parameter(node: &NodeStatus) -> Parameter {
    Parameter {
        name: node.name.clone(),
        value: node.address.map(|a| a.to_string()).unwrap_or_default(),
        description: format!("{}: {}", node.role, node.state),
    }
}

/// The protocols of the targets, each protocol once, separated by commas.
fn protocols(targets: &[&BedTarget]) -> String {
    let of = |target: &&BedTarget| match target.url.split_once(':') {
        Some(("nfs3", _)) => "NFSv3",
        Some(("nfs4", rest)) if rest.contains("minorversion=0") => "NFSv4.0",
        Some(("nfs4", _)) => "NFSv4.1",
        _ => "system calls on a mounted file system",
    };
    distinct(targets.iter().map(of)).join(", ")
}

/// Texts as sentences: each with a capital letter and a full stop.
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
    use serde_json::json;

    fn target(url: &str) -> BedTarget {
        BedTarget {
            name: "t".into(),
            url: url.into(),
            directory: None,
        }
    }

    #[test]
    fn a_bed_says_what_it_is_and_that_it_is_a_demonstration() {
        let node = NodeStatus {
            name: "server.1".into(),
            role: "chunk server".into(),
            address: Some("198.18.0.2".parse().unwrap()),
            state: "running".into(),
            pid: None,
        };
        let software = json!({"name": "MooseFS", "version": "3.0.117", "role": "file system"});
        let bed = json!({
            "schema_version": 1, "name": "r1", "kind": "replicated", "options": {}, "created": 0, "boot_id": "",
            "phase": "up", "owner": {"pid": 1, "start_ticks": 1}, "data_dir": "/data",
            "software": [software], "notes": ["2 copies of each chunk"],
        });
        let bed: BedState = serde_json::from_value(bed).unwrap();
        let files = target("posix");
        let sut = describe(Sut::default(), &bed, &[node], &[&files]);
        let again = Sut::parse(&template(&sut), "sut.toml").unwrap();
        assert_eq!(again.product.name, "replicated test bed (MooseFS)");
        let solution = &again.notes.solution;
        assert!(
            solution.starts_with("All nodes and the load generator are on one machine with "),
            "{solution}"
        );
        assert!(
            solution.ends_with(": this is a demonstration, not a performance of the software.")
        );
        let mut versions = again.software.iter().map(|s| s.version.as_str());
        assert!(versions.any(|v| v == "MooseFS 3.0.117"));
        let description = &again.product.description;
        assert!(
            description.starts_with("2 copies of each chunk. All nodes"),
            "{description}"
        );
        let node = &again.software_tuning[0].parameters[0];
        assert_eq!(
            (
                node.name.as_str(),
                node.value.as_str(),
                node.description.as_str()
            ),
            ("server.1", "198.18.0.2", "chunk server: running")
        );
        let protocol = &again.load_generation.protocol;
        assert_eq!(protocol, "system calls on a mounted file system");
    }

    #[test]
    fn each_protocol_is_named_once() {
        let urls = [
            "nfs3://h/x",
            "nfs4://h/x?minorversion=0",
            "nfs3://h/y",
            "nfs4://h/x?minorversion=1",
        ];
        let targets = urls.map(target);
        let targets: Vec<&BedTarget> = targets.iter().collect();
        assert_eq!(protocols(&targets), "NFSv3, NFSv4.0, NFSv4.1");
    }
}
