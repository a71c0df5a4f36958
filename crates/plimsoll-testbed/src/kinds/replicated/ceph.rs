//! CephFS: a monitor with the map of the cluster, a manager, a metadata server, and object storage daemons (OSDs) with
//! the data; mounted by ceph-fuse.

use super::{ClusterSize, Software, client_dir, server, size_of};
use crate::BedError;
use crate::bed::{Bed, SETUP_TIMEOUT, random_uuid};
use crate::daemon::{CommandLine, Ready};
use crate::kinds::{IP, KindStatus, Rights};
use crate::needs::Need;
use crate::options::BedOptions;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const SOFTWARE: Software = Software {
    name: "ceph",
    needs,
    rights: Rights::Fuse,
    up,
    status,
};

const NEEDS: [Need; 8] = [
    IP,
    Need::debian("ceph", "ceph-common"),
    Need::debian("monmaptool", "ceph-common"),
    Need::debian("ceph-mon", "ceph-mon"),
    Need::debian("ceph-mgr", "ceph-mgr"),
    Need::debian("ceph-mds", "ceph-mds"),
    Need::debian("ceph-osd", "ceph-osd"),
    Need::debian("ceph-fuse", "ceph-fuse"),
];

/// Port of the monitor (version 2 of the protocol).
const MONITOR_PORT: u16 = 3300;

/// Number of the address of the monitor, the manager and the metadata server; OSDs follow.
const MONITOR: u8 = 1;

/// Default of `--size`: size of each OSD's disk, a sparse file, in bytes.
const DEFAULT_SIZE: u64 = 3 << 30;

/// Minimum size of an OSD's disk in bytes: on a smaller disk, journal and metadata leave no room for data.
const MIN_SIZE: u64 = 1 << 30;

/// Bytes on the machine's disk that each OSD needs before any data is stored, with a margin.
const MIN_ROOM: u64 = 256 << 20;

/// Number of placement groups of each pool. A small number becomes clean sooner.
const PLACEMENT_GROUPS: u32 = 8;

/// Maximum duration of an inquiry of the cluster. Without a limit, inquiries about placement groups wait for a manager
/// for ever, and all inquiries wait for a monitor.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// Modules of Ceph's manager that the bed disables: they take memory and time, and some report a cluster on one machine
/// as unhealthy.
const DISABLED_MODULES: &str = "alerts,diskprediction_local,influx,insights,iostat,localpool,\
    mirroring,nfs,osd_perf_query,osd_support,prometheus,restful,selftest,snap_schedule,stats,telegraf,\
    test_orchestrator,zabbix";

fn needs(options: &BedOptions) -> Result<Vec<Need>, BedError> {
    match options.size {
        Some(size) if size < MIN_SIZE => Err(BedError::Usage(format!(
            "--size {size}: the disk of a Ceph OSD needs at least {MIN_SIZE} bytes (1g)"
        ))),
        _ => Ok(NEEDS.to_vec()),
    }
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let ClusterSize { servers, copies } = size_of(&bed.options)?;
    bed.software(
        "Ceph",
        "file system",
        &CommandLine::new("ceph").arg("--version"),
    );
    let monitor = bed.address(MONITOR)?;
    let mut cluster = Cluster {
        config: PathBuf::new(),
        id: random_uuid()?,
        monitor,
    };
    cluster.config = cluster.write_config(bed, servers, copies)?;
    cluster.start_monitor(bed)?;
    let osds: Vec<Osd> = (1..=servers).map(Osd::new).collect::<Result<_, _>>()?;
    bed.progress("making the disks of the servers");
    check_room(bed, servers)?;
    make_disks(bed, &cluster, &osds)?;
    let answers = cluster.ceph(&["mon", "stat"]);
    bed.wait_until("waiting for the monitor", &answers, |_| true)?;
    // Files used as disks have no health data.
    let key = "mgr/devicehealth/enable_monitoring";
    cluster.run(bed, &["config", "set", "--force", "mgr", key, "false"])?;
    for osd in &osds {
        cluster.run(bed, &["osd", "new", &osd.uuid, &osd.id()])?;
        osd.start(bed, &cluster)?;
    }
    bed.node("manager", "manager", Some(monitor));
    bed.start(
        "manager",
        cluster.daemon("ceph-mgr", "a"),
        Ready::Logged("Activating!"),
    )?;
    bed.node("metadata", "metadata server", Some(monitor));
    bed.start(
        "metadata",
        cluster.daemon("ceph-mds", "a"),
        Ready::Logged("--> up:active"),
    )?;
    for pool in ["metadata", "data"] {
        cluster.run(
            bed,
            &["osd", "pool", "create", pool, &PLACEMENT_GROUPS.to_string()],
        )?;
    }
    cluster.run(bed, &["fs", "new", "plimsoll", "metadata", "data"])?;
    for node in (1..=servers)
        .map(server)
        .chain(["manager".into(), "metadata".into()])
    {
        bed.wait(&node)?;
    }
    let mnt = client_dir(bed)?;
    bed.node("client", "FUSE client", None);
    let client = cluster.client("ceph-fuse").arg("-f").arg(&mnt);
    bed.start_and_wait("client", client, Ready::Mounted(mnt.clone()))?;
    bed.progress("waiting for all copies");
    let clean = cluster.ceph(&["status", "--format", "json"]);
    bed.wait_until("waiting for all copies", &clean, |text| {
        read_status(text).is_ok_and(|status| status.is_clean())
    })?;
    bed.note(format!(
        "one monitor, one manager, one metadata server, {servers} OSDs with BlueStore in files, {copies} \
         copies of each object, mounted by ceph-fuse"
    ));
    bed.note(format!(
        "for `ceph` in the bed: --conf {}",
        cluster.config.display()
    ));
    bed.add_directory("files", mnt);
    Ok(())
}

/// Checks that the bed's directory has [`MIN_ROOM`] bytes for each OSD: without room, OSDs abort and log little about
/// the cause.
fn check_room(bed: &Bed, servers: u32) -> Result<(), BedError> {
    let dir = bed.data("run")?;
    let system = rustix::fs::statvfs(&dir).map_err(|e| BedError::at(&dir)(e.into()))?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let needed = u64::from(servers) * MIN_ROOM;
    match free < needed {
        true => Err(BedError::failed(
            dir.display().to_string(),
            format!("{servers} Ceph OSDs need at least {needed} bytes, and {free} are free"),
        )),
        false => Ok(()),
    }
}

/// Makes the disks of all OSDs concurrently: most of the time is spent waiting for the machine's disk.
fn make_disks(bed: &Bed, cluster: &Cluster, osds: &[Osd]) -> Result<(), BedError> {
    let lines = osds.iter().map(|osd| osd.make(bed, cluster));
    let lines: Vec<CommandLine> = lines.collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let all: Vec<_> = lines
            .iter()
            .map(|l| scope.spawn(|| l.run(SETUP_TIMEOUT)))
            .collect();
        let mut results = all
            .into_iter()
            .map(|t| t.join().expect("running a command does not panic"));
        results.try_for_each(|result| result.map(drop))
    })
}

/// An object storage daemon.
struct Osd {
    number: u32,
    uuid: String,
}

impl Osd {
    /// The OSD of a server, counted from 1.
    fn new(number: u32) -> Result<Self, BedError> {
        Ok(Self {
            number,
            uuid: random_uuid()?,
        })
    }

    /// Id of the OSD in the cluster, from 0.
    fn id(&self) -> String {
        (self.number - 1).to_string()
    }

    /// The command that makes the OSD's disk.
    fn make(&self, bed: &Bed, cluster: &Cluster) -> Result<CommandLine, BedError> {
        bed.data(&format!("osd.{}", self.id()))?;
        let words = [
            "--mkfs",
            "-i",
            &self.id(),
            "--osd-uuid",
            &self.uuid,
            "--no-mon-config",
        ];
        Ok(cluster.client("ceph-osd").args(words))
    }

    fn start(&self, bed: &mut Bed, cluster: &Cluster) -> Result<(), BedError> {
        let address = bed.address(own_address(self.number))?;
        let name = server(self.number);
        bed.node(&name, "OSD", Some(address));
        let daemon = cluster.daemon("ceph-osd", &self.id());
        bed.start(&name, daemon, Ready::Logged("state: booting -> active"))
    }
}

/// Number of the address of a server; servers count from 1.
fn own_address(server: u32) -> u8 {
    u8::try_from(server).expect("there are few servers") + MONITOR
}

/// Configuration of a cluster that is being started.
struct Cluster {
    config: PathBuf,
    id: String,
    monitor: IpAddr,
}

impl Cluster {
    /// A program of Ceph with the configuration of this cluster only.
    fn client(&self, program: &str) -> CommandLine {
        program_of(program, &self.config)
    }

    /// A daemon in the foreground.
    fn daemon(&self, program: &str, id: &str) -> CommandLine {
        self.client(program).args(["-f", "-i", id])
    }

    /// A command of the administrator's program `ceph`.
    fn ceph(&self, words: &[&str]) -> CommandLine {
        self.client("ceph").args(words)
    }

    fn run(&self, bed: &Bed, words: &[&str]) -> Result<(), BedError> {
        bed.run(&self.ceph(words)).map(drop)
    }

    fn start_monitor(&self, bed: &mut Bed) -> Result<(), BedError> {
        bed.data("mon.a")?;
        let map = bed.data("map")?.join("monmap");
        let at = SocketAddr::new(self.monitor, MONITOR_PORT);
        let make = CommandLine::new("monmaptool")
            .args(["--create", "--fsid", &self.id, "--addv", "a"])
            .arg(format!("[v2:{at}]"))
            .arg(&map);
        bed.run(&make)?;
        let make =
            self.client("ceph-mon")
                .args(["--mkfs", "-i", "a", "--no-mon-config", "--monmap"]);
        bed.run(&make.arg(&map))?;
        bed.node("monitor", "monitor", Some(self.monitor));
        bed.start_and_wait(
            "monitor",
            self.daemon("ceph-mon", "a"),
            Ready::Listening(vec![at]),
        )
    }

    /// Writes the configuration. Ceph does not look up groups of users: processes of other namespaces cannot be found,
    /// and each failure adds a line to the log. Time limits are short, so that faults are detected and repaired
    /// quickly, and memory is small.
    fn write_config(&self, bed: &Bed, servers: u32, copies: u32) -> Result<PathBuf, BedError> {
        let dir = bed.data("run")?;
        let dir = dir.parent().expect("it is in the bed's directory");
        let size = bed.options.size.unwrap_or(DEFAULT_SIZE);
        let keyring = bed.write("keyring", "")?;
        let mut text = format!(
            "[global]\nfsid = {id}\nmon host = v2:{monitor}:{MONITOR_PORT}\nms bind msgr1 = false\n\
             ms bind before connect = true\nauth cluster required = none\nauth service required = none\n\
             auth client required = none\nkeyring = {keyring}\npid file =\nadmin socket =\n\
             run dir = {dir}/run\ncrash dir = {dir}/run\nlog file =\nlog to stderr = true\n\
             err to stderr = true\nmon cluster log file =\nosd pool default size = {copies}\n\
             osd pool default min size = 1\nosd pool default pg autoscale mode = off\n\
             osd crush chooseleaf type = 0\nosd heartbeat interval = 1\nosd heartbeat grace = 5\n\
             mgr stats period = 1\n\
             [mon]\nmon data = {dir}/mon.$id\nmon initial members = a\npaxos propose interval = 0.1\n\
             paxos min wait = 0.02\nmon osd min down reporters = 1\n\
             mon osd reporter subtree level = osd\nmon osd adjust heartbeat grace = false\n\
             mon warn on insecure global id reclaim = false\n\
             mon warn on insecure global id reclaim allowed = false\n\
             mon warn on pool no redundancy = false\nmon allow pool size one = true\n\
             mon data avail warn = 1\nmon data avail crit = 1\n\
             [mon.a]\npublic addr = {monitor}\n\
             [mgr]\npublic addr = {monitor}\nmgr data = {dir}/mgr.$id\nmgr initial modules =\n\
             mgr disabled modules = {DISABLED_MODULES}\n\
             [mds]\npublic addr = {monitor}\nmds data = {dir}/mds.$id\n\
             mds cache memory limit = 67108864\n\
             [osd]\nosd data = {dir}/osd.$id\nbluestore block size = {size}\n\
             bluestore cache autotune = false\nbluestore cache size = 67108864\n\
             osd op num shards = 2\nosd op num threads per shard = 1\nosd recovery sleep hdd = 0\n\
             osd crush initial weight = 1\n\
             [client]\nclient oc size = 67108864\nfuse set user groups = false\n\
             objecter tick interval = 1\nobjecter timeout = 2\n",
            id = self.id,
            monitor = self.monitor,
            keyring = keyring.display(),
            dir = dir.display(),
        );
        for number in 1..=servers {
            let address = std::net::Ipv4Addr::new(198, 18, 0, own_address(number));
            let id = number - 1;
            _ = write!(
                text,
                "[osd.{id}]\npublic addr = {address}\ncluster addr = {address}\n"
            );
        }
        for daemon in ["mgr.a", "mds.a"] {
            bed.data(daemon)?;
        }
        bed.write(CONFIG, &text)
    }
}

/// File name of the configuration.
const CONFIG: &str = "ceph.conf";

/// A program of Ceph with this configuration only.
fn program_of(program: &str, config: &Path) -> CommandLine {
    let line = CommandLine::new(program)
        .without_env("CEPH_ARGS")
        .without_env("CEPH_CONF");
    line.without_env("CEPH_KEYRING").arg("--conf").arg(config)
}

/// Parts of the reply to `ceph status`.
#[derive(Debug, Deserialize)]
struct Status {
    health: Health,
    osdmap: OsdMap,
    pgmap: PgMap,
}

#[derive(Debug, Deserialize)]
struct Health {
    /// `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`.
    status: String,
    /// Failed health checks, by code.
    #[serde(default)]
    checks: BTreeMap<String, Check>,
}

#[derive(Debug, Deserialize)]
struct Check {
    summary: Summary,
}

#[derive(Debug, Deserialize)]
struct Summary {
    message: String,
}

#[derive(Debug, Deserialize)]
struct OsdMap {
    num_osds: u32,
    num_up_osds: u32,
}

#[derive(Debug, Deserialize)]
struct PgMap {
    #[serde(default)]
    pgs_by_state: Vec<PgState>,
    #[serde(default)]
    num_pgs: u32,
    /// Number of missing copies of objects.
    #[serde(default)]
    degraded_objects: u64,
    /// Number of copies of objects that should exist; absent if no copy is missing.
    #[serde(default)]
    degraded_total: u64,
}

#[derive(Debug, Deserialize)]
struct PgState {
    state_name: String,
    count: u32,
}

impl Status {
    /// Whether all copies of all files exist.
    fn is_clean(&self) -> bool {
        let groups = &self.pgmap.pgs_by_state;
        let clean = groups.iter().filter(|g| g.state_name == "active+clean");
        self.pgmap.num_pgs > 0 && clean.map(|g| g.count).sum::<u32>() == self.pgmap.num_pgs
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.health.status.clone()];
        for (code, check) in &self.health.checks {
            lines.push(format!("{code}: {}", check.summary.message));
        }
        lines.push(format!(
            "OSDs up: {} of {}",
            self.osdmap.num_up_osds, self.osdmap.num_osds
        ));
        let groups = self.pgmap.pgs_by_state.iter();
        let groups: Vec<String> = groups
            .map(|g| format!("{} {}", g.count, g.state_name))
            .collect();
        lines.push(format!(
            "placement groups: {}: {}",
            self.pgmap.num_pgs,
            groups.join(", ")
        ));
        if self.pgmap.degraded_objects > 0 {
            lines.push(format!(
                "missing copies of objects: {} of {}",
                self.pgmap.degraded_objects, self.pgmap.degraded_total
            ));
        }
        lines
    }
}

fn read_status(text: &str) -> Result<Status, BedError> {
    serde_json::from_str(text).map_err(|e| BedError::failed("ceph status", e))
}

/// The health of the cluster, and the degraded parts.
fn status(bed: &mut Bed) -> KindStatus {
    let config = bed.data("run").map(|run| run.with_file_name(CONFIG));
    let status = config.and_then(|config| {
        let line = program_of("ceph", &config).args(["status", "--format", "json"]);
        read_status(&line.run(ASK_TIMEOUT)?)
    });
    match status {
        Ok(status) => KindStatus {
            is_in_sync: Some(status.is_clean()),
            lines: status.lines(),
        },
        Err(e) => KindStatus::of_lines(vec![e.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reply of Ceph 16, shortened.
    const DEGRADED: &str = r#"{"fsid":"x","health":{"status":"HEALTH_WARN","checks":{
        "OSD_DOWN":{"severity":"HEALTH_WARN","summary":{"message":"1 osds down","count":1},"muted":false},
        "PG_DEGRADED":{"severity":"HEALTH_WARN","summary":{"message":"Degraded data","count":16}}},
        "mutes":[]},"osdmap":{"epoch":20,"num_osds":2,"num_up_osds":1,"num_in_osds":2},
        "pgmap":{"pgs_by_state":[{"state_name":"active+undersized+degraded","count":9},
        {"state_name":"active+clean","count":7}],"num_pgs":16,"num_pools":2,
        "degraded_objects":22,"degraded_total":44,"degraded_ratio":0.5}}"#;

    const CLEAN: &str = r#"{"health":{"status":"HEALTH_OK","checks":{},"mutes":[]},
        "osdmap":{"num_osds":2,"num_up_osds":2},
        "pgmap":{"pgs_by_state":[{"state_name":"active+clean","count":16}],"num_pgs":16}}"#;

    #[test]
    fn what_is_degraded_is_said() {
        let status = read_status(DEGRADED).unwrap();
        assert!(!status.is_clean());
        assert_eq!(
            status.lines(),
            [
                "HEALTH_WARN",
                "OSD_DOWN: 1 osds down",
                "PG_DEGRADED: Degraded data",
                "OSDs up: 1 of 2",
                "placement groups: 16: 9 active+undersized+degraded, 7 active+clean",
                "missing copies of objects: 22 of 44",
            ]
        );
    }

    #[test]
    fn all_copies_are_there_when_all_groups_are_clean() {
        assert!(read_status(CLEAN).unwrap().is_clean());
        let none = CLEAN
            .replace("\"count\":16", "\"count\":0")
            .replace("\"num_pgs\":16", "\"num_pgs\":0");
        assert!(!read_status(&none).unwrap().is_clean());
        assert!(read_status("{}").is_err());
    }

    #[test]
    fn a_disk_that_is_too_small_is_refused() {
        let options = BedOptions {
            size: Some(MIN_SIZE - 1),
            ..BedOptions::default()
        };
        let refused = super::super::software(&options).and_then(|s| (s.needs)(&options).map(drop));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("(1g)"), "{refused}");
    }
}
