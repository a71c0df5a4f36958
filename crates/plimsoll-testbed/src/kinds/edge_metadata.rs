//! `edge-metadata`: an edge that caches attributes and names but no data (nfs-ganesha's PROXY_V4), before its core
//! filer (nfs-ganesha) behind a long line.

use super::nfs::{self, Ganesha, LINE_PORT, NFS_PORT, PSEUDO, quoted};
use super::{Kind, Rights, edge, no_status};
use crate::BedError;
use crate::bed::Bed;
use crate::needs::Need;
use std::net::SocketAddr;

pub(super) const KIND: Kind = Kind {
    name: "edge-metadata",
    summary: "an edge that caches attributes and names only (nfs-ganesha, NFSv4.1), its core filer behind a line",
    options: &["--rtt", "--size"],
    choice: None,
    needs: |_| Ok(nfs::NEEDS.into_iter().chain([PROXY]).collect()),
    rights: |_| Rights::UserNamespace,
    up,
    status: no_status,
};

/// nfs-ganesha's module that is a client of another server.
const PROXY: Need = Need::debian(
    match cfg!(target_arch = "aarch64") {
        true => "/usr/lib/aarch64-linux-gnu/ganesha/libfsalproxy_v4.so",
        false => "/usr/lib/x86_64-linux-gnu/ganesha/libfsalproxy_v4.so",
    },
    "nfs-ganesha-proxy-v4",
);

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let rtt = bed.options.rtt.unwrap_or(edge::DEFAULT_RTT);
    let address = bed.address(1)?;
    let export = bed.limited_data("export")?;
    let core = Ganesha::new(bed, "core", address)?;
    bed.node("core", "core filer", Some(address))
        .note_file_system(&export);
    let fsal = format!("FSAL {{ Name = VFS; }} Path = {};", quoted(&export));
    core.start_v4(bed, "core", NFS_PORT, &fsal)?;
    let line = SocketAddr::new(bed.address(2)?, LINE_PORT);
    bed.add_line("line", line, SocketAddr::new(address, NFS_PORT), rtt)?;
    let address = bed.address(3)?;
    let proxy = format!(
        "FSAL {{ Name = PROXY_V4; Srv_Addr = {}; NFS_Port = {}; Use_Privileged_Client_Port = false; }} \
         Path = {PSEUDO};",
        line.ip(),
        line.port(),
    );
    let edge = Ganesha::new(bed, "edge", address)?;
    bed.node("edge", "edge that caches metadata", Some(address));
    edge.start_v4(bed, "edge", EDGE_PORT, &proxy)?;
    bed.add_url(
        "edge",
        format!(
            "nfs4://{}{PSEUDO}?minorversion=1",
            SocketAddr::new(address, EDGE_PORT)
        ),
    );
    bed.note(
        "edge: attributes and names are cached; data are read and written at the core each time",
    );
    Ok(())
}

/// Port of the edge: the core occupies the usual port at all addresses.
const EDGE_PORT: u16 = 22049;
