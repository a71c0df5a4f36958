use super::machine::Machine;
use super::*;
use plimsoll_results::{Environment, WorkDir};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

#[track_caller]
fn finding(text: &str) -> (u32, u32, String, Option<String>) {
    let e = Sut::parse(text, "sut.toml").unwrap_err();
    let findings = e.findings();
    assert_eq!(findings.len(), 1, "one clear message: {e}");
    let f = &findings[0];
    (f.line, f.column, f.message.clone(), f.help.clone())
}

#[test]
fn what_is_written_is_read() {
    let text = "\
[product]
vendor = \"Some Company\"
description = \"\"\"
A box.
\"\"\"

[[materials]]
quantity = 2
kind = \"Server\"

[[hardware_tuning]]
group = \"server\"
parameters = [{ name = \"turbo\", value = \"off\" }]

[[memory]]
size_gib = 64
quantity = 8

[notes]
stable_storage = \"battery\"
";
    let sut = Sut::parse(text, "sut.toml").unwrap();
    assert_eq!(sut.product.vendor, "Some Company");
    assert_eq!(sut.product.description, "A box.\n");
    assert_eq!(
        (sut.materials[0].quantity, sut.materials[0].kind.as_str()),
        (2, "Server")
    );
    let parameter = &sut.hardware_tuning[0].parameters[0];
    assert_eq!(
        (parameter.name.as_str(), parameter.value.as_str()),
        ("turbo", "off")
    );
    assert_eq!((sut.memory[0].size_gib, sut.memory[0].quantity), (64.0, 8));
    assert_eq!(sut.notes.stable_storage, "battery");
    assert_eq!(Sut::parse("", "sut.toml"), Ok(Sut::default()));
}

#[test]
fn unknown_keys_are_named_with_what_was_meant() {
    let (line, column, message, help) = finding("[product]\nname = \"x\"\nvendro = \"y\"\n");
    assert_eq!((line, column), (3, 1));
    assert_eq!(message, "unknown key `vendro`");
    assert_eq!(help.as_deref(), Some("did you mean `vendor`?"));
    let (line, _, message, help) = finding("\n[[memroy]]\n");
    assert_eq!((line, message.as_str()), (2, "unknown key `memroy`"));
    assert_eq!(help.as_deref(), Some("did you mean `memory`?"));
    let (line, _, message, _) = finding("[[software_tuning]]\nparameters = [{ nmae = \"x\" }]\n");
    assert_eq!((line, message.as_str()), (2, "unknown key `nmae`"));
}

#[test]
fn values_of_another_type_are_shown() {
    for (text, line, say) in [
        (
            "[product]\nvendor = 3\n",
            2,
            "expected a text in quotes, found integer `3`",
        ),
        (
            "[[memory]]\nquantity = -1\n",
            2,
            "expected a whole number, at least 0, found integer `-1`",
        ),
        (
            "[[memory]]\nquantity = 1.5\n",
            2,
            "expected a whole number, at least 0, found floating point `1.5`",
        ),
        (
            "[[memory]]\nsize_gib = -2\n",
            2,
            "a size is 0 to 1e15 GiB, this is -2",
        ),
        (
            "[[load_generators]]\nmemory_gib = nan\n",
            2,
            "a size is 0 to 1e15 GiB, this is NaN",
        ),
        (
            "[[storage]]\nstable = \"yes\"\n",
            2,
            "expected true or false, found string \"yes\"",
        ),
        (
            "[materials]\nkind = \"x\"\n",
            1,
            "expected an array of tables, such as [[materials]], found map",
        ),
        (
            "notes = 1\n",
            1,
            "expected a table, such as [product], found integer `1`",
        ),
    ] {
        let (at, _, message, _) = finding(text);
        assert_eq!((at, message.as_str()), (line, say), "{text}");
    }
}

#[test]
fn all_errors_are_shown_at_once() {
    let text = "[product]\nvendro = \"y\"\nname = 3\n\n[[memory]]\nsize_gib = -2\n";
    let e = Sut::parse(text, "sut.toml").unwrap_err();
    let found: Vec<u32> = e.findings().iter().map(|f| f.line).collect();
    assert_eq!(found, [2, 3, 6], "{e}");
}

#[test]
fn what_is_no_toml_has_a_place() {
    for (text, line) in [
        ("[product\nname = 1\n", 1),
        ("[product]\nname = \"x\n", 2),
        ("[product]\nname = \"x\"\nname = \"y\"\n", 3),
        ("= 3\n", 1),
    ] {
        let (at, _, message, _) = finding(text);
        assert_eq!(at, line, "{text}: {message}");
        assert!(
            !message.is_empty() && !message.contains("struct"),
            "{message}"
        );
    }
}

#[test]
fn errors_look_like_this() {
    let picture = |text: &str| Sut::parse(text, "sut.toml").unwrap_err().to_string();
    let texts = [
        "[product]\nname = \"x\"\nvendro = \"y\"\n",
        "[[memory]]\nsize_gib = \"64\"\n",
        "[product]\nname = \"x\nvendor = \"y\"\n",
    ];
    insta::assert_snapshot!(texts.map(picture).join("\n"));
}

/// A machine with two sockets, two disks and a network, in a directory.
fn sample_machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let mut cpus = String::new();
    for (i, (socket, core)) in [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    .iter()
    .enumerate()
    {
        cpus.push_str(&format!(
            "processor\t: {i}\nmodel name\t: Fast One\nphysical id\t: {socket}\ncore id\t\t: {core}\n\n"
        ));
    }
    write("proc/cpuinfo", &cpus);
    write("proc/sys/vm/dirty_ratio", "20\n");
    write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Sample Linux 7\"\n");
    for (disk, sectors, rotational) in [("sda", "7814037168", "1"), ("nvme0n1", "2048", "0")] {
        write(&format!("sys/block/{disk}/size"), sectors);
        write(
            &format!("sys/block/{disk}/device/model"),
            &format!("Model of {disk}  \n"),
        );
        write(&format!("sys/block/{disk}/queue/rotational"), rotational);
        write(
            &format!("sys/block/{disk}/queue/scheduler"),
            "none [mq-deadline] kyber\n",
        );
    }
    write("sys/block/loop0/size", "100");
    write("sys/class/net/eth0/device/vendor", "0x8086");
    write("sys/class/net/eth0/speed", "25000");
    write("sys/class/net/eth0/mtu", "9000");
    write("sys/class/net/eth0/operstate", "up");
    write("sys/class/net/lo/mtu", "65536");
    root
}

fn sample_environment(fs_type: &str) -> Environment {
    Environment {
        host: "sample".into(),
        kernel: "Linux 6.1".into(),
        cpu_model: Some("Fast One".into()),
        cpus: 3,
        memory_bytes: Some(64 << 30),
        work_dir: Some(WorkDir {
            path: "/mnt/test/dir".into(),
            fs_type: Some(fs_type.into()),
            device: Some("/dev/sda1".into()),
            mount_point: Some("/mnt/test".into()),
            mount_options: vec!["noatime".into(), "logbsize=64k".into()],
            ..WorkDir::default()
        }),
        ..Environment::default()
    }
}

#[test]
fn a_machine_with_a_local_file_system_is_described() {
    let root = sample_machine();
    let environment = sample_environment("xfs");
    let sut = Machine::at(root.path()).describe(&environment, Some(3 << 40));
    insta::assert_snapshot!(template(&sut));
    assert_eq!(sut.processors[0].quantity, 2);
    assert_eq!(
        sut.load_generators[0].processors, 8,
        "all, not the 3 this process may use"
    );
    assert_eq!(sut.storage.len(), 2, "a loop device holds nothing");
    assert_eq!(sut.storage[1].usable, "3.64 TiB");
}

#[test]
fn the_disks_of_a_client_are_not_the_system_under_test() {
    let root = sample_machine();
    let environment = sample_environment("nfs4");
    let sut = Machine::at(root.path()).describe(&environment, None);
    assert_eq!(sut.storage, []);
    assert_eq!(sut.processors[0].location, "client");
    assert_eq!(sut.filesystems.capacity, "");
}

#[test]
fn a_machine_that_tells_nothing_is_described_all_the_same() {
    let root = tempfile::tempdir().unwrap();
    let sut = Machine::at(root.path()).describe(&Environment::default(), None);
    assert_eq!((sut.storage.len(), sut.transport.len()), (0, 0));
    assert_eq!(sut.processors[0].quantity, 1);
    assert!(Sut::parse(&template(&sut), "sut.toml").is_ok());
}

#[test]
fn this_machine_can_be_described() {
    let sut = Sut::of_this_machine(Path::new("/"));
    assert!(sut.memory[0].size_gib > 0.0 && sut.load_generators[0].processors > 0);
    assert!(!sut.filesystems.kind.is_empty() && !sut.filesystems.capacity.is_empty());
    assert!(sut.software_tuning.iter().any(|g| g.group == "mount of /"));
}

#[test]
fn what_is_not_stated_is_listed() {
    let (stated, missing) = Sut::default().stated();
    assert_eq!(stated, 0);
    assert!(
        missing.contains(&"product.vendor".to_owned()),
        "{missing:?}"
    );
    let mut sut = Sut::default();
    sut.product.vendor = "x".into();
    sut.storage = vec![Storage::default(), Storage::default()];
    sut.storage[1].quantity = 3;
    let (stated, missing) = sut.stated();
    assert_eq!(stated, 1);
    assert!(!missing.contains(&"product.vendor".to_owned()));
    assert!(
        missing.contains(&"storage[1].protection".to_owned()),
        "{missing:?}"
    );
    assert!(
        !missing.iter().any(|m| m.starts_with("storage[0]")),
        "nothing filled in"
    );
}

fn text() -> impl Strategy<Value = String> {
    "[ a-z\"'\\\\\n\t#=\\[\\]äß€\u{0}\u{7f}]{0,12}"
}

proptest! {
    #[test]
    fn a_template_gives_back_what_was_filled_in(
        texts in prop::collection::vec(text(), 8),
        numbers in prop::collection::vec(0u64..1 << 53, 4),
        size in 0.0f64..1e9,
    ) {
        let mut sut = Sut::default();
        sut.product.vendor = texts[0].clone();
        sut.product.description = texts[1].clone();
        sut.materials = vec![Material { quantity: numbers[0], kind: texts[2].clone(), ..Material::default() }];
        sut.hardware_tuning = vec![
            Tuning { group: texts[3].clone(), parameters: vec![
                Parameter { name: texts[4].clone(), ..Parameter::default() },
                Parameter { value: texts[5].clone(), ..Parameter::default() },
            ]},
            Tuning { group: texts[6].clone(), parameters: vec![Parameter::default()] },
        ];
        sut.memory = vec![Memory { size_gib: size, quantity: numbers[1], nonvolatile: true, ..Memory::default() }];
        sut.notes.report = texts[7].clone();
        let read = Sut::parse(&template(&sut), "sut.toml");
        prop_assert!(read.is_ok(), "{}", template(&sut));
        let read = read.unwrap();
        prop_assert_eq!(&read.product, &sut.product);
        prop_assert_eq!(&read.materials, &sut.materials);
        prop_assert_eq!(&read.hardware_tuning, &sut.hardware_tuning);
        prop_assert_eq!(&read.memory, &sut.memory);
        prop_assert_eq!(&read.notes, &sut.notes);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z\\[\\]\"={},.0-9\n #ä-]{0,120}") {
        if let Err(e) = Sut::parse(&text, "sut.toml") {
            prop_assert_eq!(e.findings().len(), 1);
            prop_assert!(!e.to_string().is_empty());
        }
    }
}
