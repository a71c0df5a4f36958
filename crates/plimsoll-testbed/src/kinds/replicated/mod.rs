//! `replicated`: a cluster file system that keeps copies of every file on several servers, mounted by FUSE. Each
//! software is a module with a [`Software`].

mod ceph;
mod gluster;
mod moosefs;

use super::{Kind, KindChoice, KindStatus, Rights};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::CommandLine;
use crate::needs::Need;
use crate::options::BedOptions;
use std::path::PathBuf;

pub(super) const KIND: Kind = Kind {
    name: "replicated",
    summary: "a cluster file system with copies on several servers: CephFS, GlusterFS or MooseFS",
    options: &["--software", "--servers", "--copies", "--size"],
    choice: Some(KindChoice {
        option: "--software",
        values: &["ceph", "gluster", "moosefs"],
        set: |options, value| options.software = Some(value),
    }),
    needs: |options| {
        size_of(options)?;
        (software(options)?.needs)(options)
    },
    rights: |options| software(options).map_or(Rights::UserNamespace, |s| s.rights),
    up: |bed| (software(&bed.options)?.up)(bed),
    status: |bed| match software(&bed.options) {
        Ok(software) => (software.status)(bed),
        Err(e) => KindStatus::of_lines(vec![e.to_string()]),
    },
};

/// The software, the default one first.
const ALL: [&Software; 3] = [&ceph::SOFTWARE, &gluster::SOFTWARE, &moosefs::SOFTWARE];

/// Maximum number of servers.
const MAX_SERVERS: u32 = 16;

/// A cluster file system.
struct Software {
    name: &'static str,
    needs: fn(&BedOptions) -> Result<Vec<Need>, BedError>,
    rights: Rights,
    up: fn(&mut Bed) -> Result<(), BedError>,
    status: fn(&mut Bed) -> KindStatus,
}

fn software(options: &BedOptions) -> Result<&'static Software, BedError> {
    let names = ALL.map(|s| s.name);
    let name = BedOptions::choice("--software", options.software.as_deref(), &names)?;
    let found = ALL.iter().find(|s| s.name == name);
    Ok(found.expect("it is one of their names"))
}

/// Number of servers that store data, and number of copies.
#[derive(Debug, Clone, Copy)]
struct ClusterSize {
    servers: u32,
    copies: u32,
}

fn size_of(options: &BedOptions) -> Result<ClusterSize, BedError> {
    let copies = options.copies.unwrap_or(2);
    let servers = options.servers.unwrap_or(copies.max(2));
    if servers == 0 || servers > MAX_SERVERS {
        return Err(BedError::Usage(format!(
            "--servers {servers}: expected 1 to {MAX_SERVERS}"
        )));
    }
    if copies == 0 || copies > servers {
        return Err(BedError::Usage(format!(
            "--copies {copies}: expected 1 to the number of servers, {servers}"
        )));
    }
    Ok(ClusterSize { servers, copies })
}

/// Name of the node of a server, counted from 1.
fn server(number: u32) -> String {
    format!("server.{number}")
}

/// Creates the mount point of the client. Without a mounted client, nothing can be written to the directory: files
/// would be on a disk of this machine instead.
fn client_dir(bed: &Bed) -> Result<PathBuf, BedError> {
    let parent = bed.mount_dir()?;
    let mount = CommandLine::new("mount");
    let tmpfs = mount
        .clone()
        .args(["-t", "tmpfs", "-o", "mode=755,size=64k", "plimsoll-testbed"]);
    bed.run(&tmpfs.arg(&parent))?;
    let dir = parent.join("files");
    std::fs::create_dir(&dir).map_err(BedError::at(&dir))?;
    bed.run(&mount.args(["-o", "remount,ro"]).arg(&parent))?;
    Ok(dir)
}
