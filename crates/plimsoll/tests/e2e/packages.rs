//! The packages: what is in them, that two are the same bytes, and that each is installed where nothing else is
//! and runs. They are made of the program that the tests have, by what `make dist` makes them with.

mod crates;
mod making;

use crate::common::python::{printed, python, source_tree, tool};
use crate::common::{Bench, Ended};
use crate::install::compiled;
use making::{are_of_dist, making, package, packages};
use plimsoll_testkit::needs_root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the Python package; that of the program belongs to another project in Python's index.
const DISTRIBUTION: &str = "plimsoll-benchmark";

/// The program of the packages, from the tarball, which is unpacked in a directory.
fn packaged_program(dir: &Path) -> PathBuf {
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(package(".tar.gz")).arg("-C");
    unpack.arg(dir).arg("--strip-components=1");
    printed(unpack);
    dir.join("bin/plimsoll")
}

/// A command of a Debian package.
#[track_caller]
fn debian(name: &str, package: &str) -> Command {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .output();
    let is_there = found.unwrap().status.success();
    assert!(
        is_there,
        "`{name}` is missing: install the package `{package}`"
    );
    Command::new(name)
}

/// The main job: a run whose result is valid, and a report on it.
fn run_script(program: &str, dir: &str) -> String {
    format!(
        "set -e\n\
         {program} --version\n\
         {program} run varmail --dir {dir}/mail --set nfiles=50 --time 300ms --results {dir}/results\n\
         {program} report {dir}/results/* --format parquet --output {dir}/tables\n\
         test -s {dir}/tables/operations.parquet\n\
         {program} testbed --version\n"
    )
}

#[test]
fn two_makings_of_the_packages_are_the_same_bytes() {
    // Neither the directory of temporary files and its file system, the mask of modes, the language nor the time
    // zone makes a difference.
    let again = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir_in("/dev/shm").unwrap();
    let making = making(again.path());
    let mut other = Command::new("sh");
    other.args(["-c", "umask 077; exec \"$@\"", "sh"]);
    other.arg(making.get_program()).args(making.get_args());
    for (name, value) in making.get_envs() {
        other.env(name, value.expect("the making sets variables only"));
    }
    other.envs([("LC_ALL", "C.UTF-8"), ("TZ", "Asia/Kolkata")]);
    other.env("TMPDIR", temporary.path()).current_dir("/");
    printed(other);
    let mut names = 0;
    for entry in std::fs::read_dir(again.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        let one = std::fs::read(&path).unwrap();
        let other = std::fs::read(packages().join(name)).unwrap();
        assert!(one == other, "{name:?}");
        names += 1;
    }
    // The files are tarball, checksum, Debian package, RPM package, wheel, image and bill of materials.
    assert_eq!(names, 7);
}

#[test]
fn the_tarball_is_what_its_checksum_says_and_runs_where_it_is_unpacked() {
    let bench = Bench::on_disk();
    let mut check = Command::new("sha256sum");
    check.current_dir(packages());
    check.arg("--check").arg(package(".tar.gz.sha256"));
    printed(check);
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(package(".tar.gz"));
    unpack.current_dir(bench.root());
    printed(unpack);
    let name = package(".tar.gz").file_name().unwrap().to_owned();
    let name = name.to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    assert_eq!(bench.left_but(&[name]), [""; 0]);
    let root = bench.path(name);
    for path in [
        "share/man/man1/plimsoll.1",
        "share/man/man1/plimsoll-run.1",
        "share/man/man1/plimsoll-testbed-up.1",
        "share/bash-completion/completions/plimsoll",
        "share/bash-completion/completions/plimsoll-testbed",
        "share/zsh/site-functions/_plimsoll",
        "share/zsh/site-functions/_plimsoll-testbed",
        "share/fish/vendor_completions.d/plimsoll.fish",
        "share/fish/vendor_completions.d/plimsoll-testbed.fish",
        "share/doc/plimsoll/README.md",
        "share/doc/plimsoll/docs/reports.md",
        "share/doc/plimsoll/THIRD-PARTY-LICENSES.txt",
        "share/doc/plimsoll/plimsoll.cdx.json",
        "share/plimsoll/workloads/varmail.f",
        "share/plimsoll/profiles/fileio.prof",
        "share/plimsoll/kubernetes/job.yaml",
        "share/plimsoll/grafana/plimsoll.json",
    ] {
        let size = std::fs::metadata(root.join(path)).map_or(0, |m| m.len());
        assert!(size > 0, "{path}");
    }
    // `env -i` clears the environment, so no variable names the source tree.
    let mut shell = Command::new("env");
    let program = root.join("bin/plimsoll");
    let script = run_script(program.to_str().unwrap(), bench.root().to_str().unwrap());
    shell.args(["-i", "PATH=/usr/bin:/bin", "sh", "-c", &script]);
    shell.current_dir("/");
    assert!(printed(shell).starts_with("plimsoll "));
}

#[test]
fn the_bill_of_materials_lists_what_cargo_links() {
    let text = std::fs::read_to_string(package(".cdx.json")).unwrap();
    let bill: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["name"], "plimsoll");
    let time = match are_of_dist() {
        // Of the last commit.
        true => {
            let mut time = Command::new("git");
            time.args(["log", "-1", "--format=%cd", "--date=format-local:%FT%TZ"]);
            time.current_dir(source_tree()).env("TZ", "UTC");
            printed(time).trim().to_owned()
        }
        false => "2026-01-01T00:00:00Z".to_owned(),
    };
    assert_eq!(bill["metadata"]["timestamp"], time);
    let components = bill["components"].as_array().unwrap();
    let refs = components.iter().map(|c| c["purl"].as_str().unwrap());
    let refs: BTreeSet<&str> = refs.collect();
    assert_eq!(refs.len(), components.len());
    let program = format!("plimsoll@{}", env!("CARGO_PKG_VERSION"));
    let programs = ["plimsoll", "plimsoll-testbed"];
    let linked = programs.map(|name| compiled("shipping", name).into_keys());
    let linked = linked.into_iter().flatten().filter(|id| *id != program);
    let linked: BTreeSet<String> = linked.map(|id| format!("pkg:cargo/{id}")).collect();
    assert!(linked.len() > 100, "{linked:?}");
    for one in &linked {
        assert!(refs.contains(one.as_str()), "{one} is not in the bill");
    }
    let others = refs.iter().filter(|r| !linked.contains(**r));
    let others: Vec<&str> = others.map(|r| r.split('@').next().unwrap()).collect();
    assert_eq!(others, ["pkg:generic/musl", "pkg:generic/rust-std"]);
    for component in components {
        let licences = component["licenses"].as_array().unwrap();
        assert_eq!(licences.len(), 1, "{component}");
        let ours = component["name"].as_str().unwrap().starts_with("plimsoll");
        let hashed = component["hashes"][0]["content"].is_string();
        let purl = component["purl"].as_str().unwrap();
        let is_crate = purl.starts_with("pkg:cargo/");
        assert_eq!(hashed, is_crate && !ours, "{component}");
    }
    let dependencies = bill["dependencies"].as_array().unwrap().iter();
    let known: BTreeSet<&str> = dependencies.map(|d| d["ref"].as_str().unwrap()).collect();
    assert_eq!(known.len(), components.len() + 1);
}

#[test]
fn the_bill_of_materials_is_valid_by_the_schema_of_its_format() {
    let mut check = python();
    check.arg(source_tree().join("crates/plimsoll/tests/e2e/packages/check_bill.py"));
    check.arg(package(".cdx.json"));
    printed(check);
}

#[test]
fn the_notices_have_the_licences_of_what_is_in_the_packages() {
    let mut unpack = Command::new("tar");
    let path = "share/doc/plimsoll/THIRD-PARTY-LICENSES.txt";
    unpack.arg("-xzOf").arg(package(".tar.gz"));
    unpack.arg("--wildcards").arg(format!("*/{path}"));
    let notices = printed(unpack);
    // The notices include the licence of the Unicode tables inside crates, and the notices of the Rust standard
    // library.
    for words in [
        "UNICODE LICENSE V3",
        "Copyright notices for The Rust Standard Library",
    ] {
        assert!(notices.contains(words), "{words}");
    }
    // Each section of the notices has names between two rules, followed by the licence text of the named components.
    let rule = format!("\n{}\n", "=".repeat(78));
    let parts: Vec<&str> = notices.split(&rule).skip(1).collect();
    assert!(parts.len() > 50, "{}", parts.len());
    for section in parts.chunks(2) {
        let [names, text] = section else {
            panic!("{section:?}");
        };
        assert!(text.trim().len() > 200, "{names}: {text}");
    }
}

#[test]
fn lintian_has_nothing_to_say_of_the_debian_package() {
    let mut lintian = debian("lintian", "lintian");
    lintian.args([
        "--fail-on=error,warning",
        "--allow-root",
        "--no-tag-display-limit",
    ]);
    lintian.arg(package(".deb"));
    lintian.env("TMPDIR", packages().parent().unwrap());
    let said = printed(lintian);
    assert_eq!(said, "");
}

#[test]
fn the_debian_package_and_the_tarball_run_in_a_bare_debian() {
    needs_root!();
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(tool("debian-12.tar"));
    // A user namespace cannot create device nodes, so `/dev` is not unpacked, and files replace the required devices.
    unpack.args(["--exclude=./dev/*", "-C"]).arg(root.path());
    printed(unpack);
    std::fs::copy(package(".deb"), root.path().join("plimsoll.deb")).unwrap();
    for end in [".tar.gz", ".tar.gz.sha256"] {
        let (package, files) = (package(end), root.path().join("opt"));
        std::fs::copy(&package, files.join(package.file_name().unwrap())).unwrap();
    }
    let script = format!(
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n\
         dpkg --install /plimsoll.deb\n\
         dpkg --verify plimsoll\n\
         {}\
         dpkg --purge plimsoll\n\
         test ! -e /usr/bin/plimsoll\n\
         test ! -e /usr/bin/plimsoll-testbed\n\
         test ! -e /usr/share/plimsoll\n\
         cd /opt\n\
         sha256sum --check --quiet *.sha256\n\
         tar -xzf *.tar.gz\n\
         mkdir /tmp/unpacked\n\
         {}",
        run_script("plimsoll", "/tmp"),
        run_script("/opt/plimsoll-*/bin/plimsoll", "/tmp/unpacked")
    );
    let devices = root.path().join("dev");
    for device in ["null", "zero", "urandom"] {
        std::fs::write(devices.join(device), "").unwrap();
    }
    let enter = "for d in null zero urandom; do mount --bind /dev/$d \"$1/dev/$d\"; done\n\
                 mount -t proc proc \"$1/proc\"\n\
                 exec chroot \"$1\" /bin/sh -ec \"$2\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-ec", enter, "sh"]);
    command.arg(root.path()).arg(script);
    let said = printed(command);
    assert_eq!(said.matches("\nplimsoll ").count(), 2, "{said}");
}

#[test]
fn the_wheel_is_installed_in_an_empty_environment_and_runs() {
    let bench = Bench::on_disk();
    let mut venv = python();
    venv.args(["-m", "venv"]).arg(bench.path("venv"));
    printed(venv);
    let inside = |program: &str| {
        let mut command = Command::new(bench.path("venv/bin").join(program));
        command
            .env_remove("PYTHONPATH")
            .env("PATH", "/usr/bin:/bin");
        command.current_dir(bench.root());
        command
    };
    let mut install = inside("python");
    install.args(["-m", "pip", "install", "--quiet", "--no-index"]);
    install
        .arg("--disable-pip-version-check")
        .arg(package(".whl"));
    printed(install);
    // Nothing is called as the other project, which an upgrade of this name would install.
    let mut list = inside("python");
    list.args(["-m", "pip", "list", "--format=freeze"]);
    list.arg("--disable-pip-version-check");
    let list = printed(list);
    let ours = list.lines().filter(|l| l.contains("plimsoll"));
    let is_ours = format!("{DISTRIBUTION}=={}", env!("CARGO_PKG_VERSION"));
    assert_eq!(ours.collect::<Vec<_>>(), [is_ours]);
    let program = bench.path("venv/bin/plimsoll");
    let script = run_script(program.to_str().unwrap(), bench.root().to_str().unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    printed(shell);
    let mut import = inside("python");
    import.args(["-c", "import plimsoll; print(plimsoll.program())"]);
    assert_eq!(printed(import).trim(), program.to_str().unwrap());
    let mut load = inside("python");
    load.args(["-c", "import plimsoll; plimsoll.load('results')"]);
    let said = Ended::of(load).stderr;
    let expected = "ImportError: pandas and pyarrow are missing: pip install pandas pyarrow\n";
    assert!(said.contains(expected), "{said}");
    let mut remove = inside("python");
    remove.args(["-m", "pip", "uninstall", "--quiet", "--yes", DISTRIBUTION]);
    printed(remove);
    assert!(!program.exists());
}

/// Programs of `make dist` are static; the program of the tests needs the C library of this machine.
#[test]
fn packages_say_what_they_need() {
    let depends = |command: &str, package_of: &str, arguments: &[&str]| {
        let mut query = debian(command, package_of);
        query.args(arguments);
        printed(query)
    };
    let (deb, rpm) = (package(".deb"), package(".rpm"));
    let deb = depends(
        "dpkg-deb",
        "dpkg",
        &["--field", deb.to_str().unwrap(), "Depends"],
    );
    let rpm = depends(
        "rpm",
        "rpm",
        &["--query", "--requires", "--package", rpm.to_str().unwrap()],
    );
    let wheel = package(".whl");
    let (_, platforms) = wheel.to_str().unwrap().rsplit_once("-py3-none-").unwrap();
    match are_of_dist() {
        true => {
            assert_eq!(deb.trim_end(), "");
            assert!(rpm.lines().all(|l| l.starts_with("rpmlib(")), "{rpm}");
            let of_static = "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl";
            assert_eq!(platforms, of_static);
        }
        false => {
            assert!(deb.contains("libc6 (>= 2."), "{deb}");
            assert!(rpm.contains("libc.so.6(GLIBC_2."), "{rpm}");
            assert_eq!(platforms, "linux_x86_64.whl");
        }
    }
}

#[test]
fn the_rpm_package_has_the_files_of_the_debian_package() {
    let mut deb = Command::new("sh");
    deb.args(["-ec", "dpkg-deb --fsys-tarfile \"$1\" | tar -tf -", "sh"]);
    deb.arg(package(".deb"));
    let mut rpm = debian("rpm", "rpm");
    rpm.args([
        "--query",
        "--queryformat",
        "[%{FILEMODES:perms} .%{FILENAMES}\\n]",
    ]);
    rpm.arg("--package").arg(package(".rpm"));
    let (deb, rpm) = (printed(deb), printed(rpm));
    let deb = deb.lines().filter(|path| !path.ends_with('/'));
    let rpm = rpm.lines().filter(|file| file.starts_with('-'));
    let rpm = rpm.map(|file| file.split_once(' ').unwrap().1);
    // Debian and RPM packages differ in the place of zsh's completions and in the form of documents.
    let is_common = |path: &&str| {
        let own = ["/zsh/", "/lintian/", "/doc/plimsoll/"];
        own.iter().all(|part| !path.contains(part))
    };
    let deb: BTreeSet<&str> = deb.filter(is_common).collect();
    let rpm: BTreeSet<&str> = rpm.filter(is_common).collect();
    assert_eq!(deb, rpm);
    assert!(deb.len() > 100, "{deb:?}");
}

/// Unpacks the image as a container runtime does, and checks the digests of all its parts.
#[test]
fn the_image_has_the_program_of_the_tarball() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = debian("skopeo", "skopeo");
    copy.args(["copy", "--quiet", "--override-arch=amd64"]);
    copy.arg(format!("oci-archive:{}", package(".oci.tar").display()));
    copy.arg(format!("dir:{}", dir.path().join("image").display()));
    printed(copy);
    let manifest = std::fs::read(dir.path().join("image/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let layer = layers[0]["digest"].as_str().unwrap();
    let layer = layer.strip_prefix("sha256:").unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(dir.path().join("image").join(layer));
    unpack.arg("-C").arg(&root);
    printed(unpack);
    let tarball = packaged_program(dir.path());
    let (one, other) = (root.join("usr/bin/plimsoll"), tarball);
    assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap());
    let config = manifest["config"]["digest"].as_str().unwrap();
    let config = config.strip_prefix("sha256:").unwrap();
    let config = std::fs::read(dir.path().join("image").join(config)).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(
        config["config"]["Entrypoint"],
        serde_json::json!(["/usr/bin/plimsoll"])
    );
}

/// The program needs nothing but a kernel: no C library, no shell, no file of the system.
#[test]
#[ignore = "for packages of `make dist`, whose programs are static: make dist-check"]
fn programs_of_dist_run_in_an_empty_root_and_on_arm64() {
    needs_root!();
    for (machine, emulator) in [("x86_64", None), ("aarch64", Some("qemu-aarch64-static"))] {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["proc", "tmp"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let name = format!("plimsoll-{}-{machine}-linux", env!("CARGO_PKG_VERSION"));
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf");
        unpack.arg(packages().join(format!("{name}.tar.gz")));
        unpack.arg("-C").arg(root.path());
        unpack.args(["--strip-components=2", &format!("{name}/bin")]);
        printed(unpack);
        if let Some(emulator) = emulator {
            let mut copy = Command::new("sh");
            copy.args(["-ec", "cp \"$(command -v \"$1\")\" \"$2\"", "sh", emulator]);
            printed({
                copy.arg(at("emulator"));
                copy
            });
        }
        let inside = |arguments: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--pid", "--fork", "sh", "-ec"]);
            command.arg(
                "mount -t proc proc \"$1/proc\"; root=$1; shift; exec chroot \"$root\" \"$@\"",
            );
            command.arg("sh").arg(root.path());
            command.args(emulator.map(|_| "/emulator")).arg("/plimsoll");
            command.args(arguments);
            printed(command)
        };
        assert!(inside(&["--version"]).starts_with("plimsoll "));
        // QEMU 7.2 does not emulate openat2(2), by which Plimsoll opens all files below the work directory.
        let place = match emulator {
            None => "--dir=/tmp/mail",
            Some(_) => "--target=null:?latency=1ms",
        };
        let run = ["run", "varmail", place, "--set=nfiles=50", "--time=300ms"];
        let said = inside(&[&run[..], &["--results=/tmp/results"]].concat());
        assert!(said.contains("ops/s"), "{said}");
        let sim = [
            "find",
            "vda",
            "--max-load=16",
            "--time=20s",
            "--warmup=2s",
            "--results=/tmp/results",
        ];
        let target = "--target=null:?latency=10ms&servers=1&clock=virtual";
        let said = inside(&[&sim[..], &[target]].concat());
        assert!(said.contains("load line"), "{said}");
    }
}
