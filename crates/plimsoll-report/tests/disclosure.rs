//! Published reports are read, in both layouts and with or without line breaks, and excerpts of them;
//! everything else is refused with a place.

mod excerpts;

use plimsoll_measure::curve::{PointVerdict, Rule};
use plimsoll_report::disclosure::{Disclosure, Imported, LoadPoint, import};
use plimsoll_report::terminal::{Layout, render};
use proptest::prelude::*;

const NFS: &str = include_str!("published/nfs2008.txt");
const NFS_FLAT: &str = include_str!("published/nfs2008-collapsed.txt");
const VDA: &str = include_str!("published/vda2014.txt");
const VDA_FLAT: &str = include_str!("published/vda2014-collapsed.txt");
const SWBUILD: &str = include_str!("published/swbuild2020.txt");

#[track_caller]
fn read(text: &str) -> Imported {
    import(text.as_bytes(), "report.txt").unwrap_or_else(|e| panic!("{e}"))
}

fn summary(d: &Disclosure) -> String {
    let (width, color) = (80, false);
    render(&d.document(), Layout { width, color })
}

/// One finding's place and message.
#[track_caller]
fn refused(text: &str) -> (u32, u32, String) {
    let e = import(text.as_bytes(), "report.txt").expect_err("the text is no report");
    let findings = e.findings();
    assert_eq!(findings.len(), 1, "one clear message: {findings:?}");
    let f = &findings[0];
    assert_eq!(f.file, "report.txt");
    (f.line, f.column, f.message.clone())
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Section names and texts with all white space collapsed.
fn flat(mut d: Disclosure) -> Disclosure {
    for s in &mut d.sections {
        s.text = collapsed(&s.text);
    }
    d
}

fn points(d: &Disclosure) -> Vec<(f64, f64)> {
    let latency = |p: &LoadPoint| p.latency_ms.expect("a point with a latency");
    d.points.iter().map(|p| (p.load, latency(p))).collect()
}

#[test]
fn the_layout_of_2008() {
    let Imported {
        disclosure: d,
        warnings,
        ..
    } = read(NFS);
    assert_eq!(warnings, [] as [&str; 0]);
    assert_eq!(d.title, "SPECsfs2008_nfs.v3 Result");
    assert_eq!(d.vendor, "Avere Systems, Inc.");
    assert_eq!(
        d.product,
        "FXT 3800 (32 Node Cluster, Cloud Storage Config)"
    );
    assert_eq!(d.metric, "SPECsfs2008_nfs.v3");
    assert_eq!((d.peak, d.unit.as_str()), (1_592_334.0, "Ops/Sec"));
    assert_eq!(d.ort_published_ms, Some(1.24));
    assert_eq!(d.rule, Rule::Sfs2008);
    assert!((d.ort_ms.unwrap() - 1.2399).abs() < 5e-5);
    let expected = [
        (165_131.0, 0.3),
        (330_450.0, 0.4),
        (495_831.0, 0.5),
        (661_422.0, 0.7),
        (828_151.0, 0.8),
        (993_323.0, 1.1),
        (1_160_562.0, 1.3),
        (1_328_345.0, 2.0),
        (1_476_954.0, 3.6),
        (1_592_334.0, 5.8),
    ];
    assert_eq!(points(&d), expected);
    assert!(
        d.points
            .iter()
            .all(|p| p.ops_per_s.is_none() && p.mb_per_s.is_none())
    );
    let names: Vec<&str> = d.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names[0], "Product and Test Information");
    assert_eq!(names[names.len() - 2], "Uniform Access Rule Compliance");
    assert_eq!(names.len(), 22, "{names:?}");
    let filesystems = d.section("Disks and Filesystems").unwrap();
    assert!(
        filesystems.contains("\nTotal Exported Capacity      193375 GB\n"),
        "{filesystems}"
    );
    assert_eq!(d.section("Server Tuning Notes"), Some("None"));
    assert!(
        d.section("Product and Test Information")
            .unwrap()
            .contains("load = 16 clients")
    );
    assert!(
        d.generated.starts_with("Generated on Mon May 06"),
        "{}",
        d.generated
    );
}

#[test]
fn the_layout_of_2014() {
    let Imported {
        disclosure: d,
        warnings,
        ..
    } = read(VDA);
    assert_eq!(warnings, [] as [&str; 0]);
    assert_eq!(d.title, "SPEC SFS(R)2014_vda Result");
    assert_eq!(d.vendor, "IBM Corporation");
    assert_eq!(d.product, "IBM DeepFlash 150 with Spectrum Scale 4.2.1");
    assert_eq!(d.metric, "SPEC SFS2014_vda");
    assert_eq!((d.peak, d.unit.as_str()), (1700.0, "Streams"));
    assert_eq!((d.ort_published_ms, d.rule), (Some(4.12), Rule::Sfs2014));
    assert!((d.ort_ms.unwrap() - 4.1222).abs() < 5e-5);
    assert_eq!(d.points.len(), 10);
    let last = &d.points[9];
    assert_eq!((last.load, last.latency_ms), (1700.0, Some(30.0)));
    assert_eq!(
        (last.ops_per_s, last.mb_per_s),
        (Some(16_980.0), Some(7821.0))
    );
    assert_eq!(last.verdict, PointVerdict::Valid);
    // The last point achieved 99.9 % of its rate.
    assert_eq!(d.curve().unwrap().points()[9].achieved, 16_980.0);
    let tuning = d
        .section("Hardware Configuration and Tuning - Physical")
        .unwrap();
    assert!(
        tuning.starts_with("+-----") && tuning.contains("deadline"),
        "{tuning}"
    );
    assert_eq!(d.sections.len(), 25);
    assert!(
        d.generated.ends_with("Copyright of the sample: none"),
        "{}",
        d.generated
    );
}

#[test]
fn the_layout_of_2020_with_trademark_signs() {
    let Imported {
        disclosure: d,
        warnings,
        ..
    } = read(SWBUILD);
    assert_eq!(warnings, [] as [&str; 0]);
    assert_eq!(d.title, "SPECstorage(TM) Solution 2020_swbuild Result");
    assert_eq!(d.metric, "SPECstorage Solution 2020_swbuild");
    assert_eq!(
        (d.vendor.as_str(), d.product.as_str()),
        ("Sample Company", "A Box : the second")
    );
    assert_eq!(
        (d.peak, d.unit.as_str(), d.rule),
        (100.0, "Builds", Rule::Sfs2014)
    );
    // 79/90 by hand.
    assert!((d.ort_ms.unwrap() - 79.0 / 90.0).abs() < 1e-12);
}

#[test]
fn line_breaks_make_no_difference() {
    for (lines, flat_text) in [(NFS, NFS_FLAT), (VDA, VDA_FLAT)] {
        assert_eq!(
            flat_text.trim_end(),
            collapsed(lines),
            "the sample is the other, collapsed"
        );
        assert_eq!(read(flat_text).disclosure, flat(read(lines).disclosure));
    }
    let other = read(&collapsed(SWBUILD)).disclosure;
    assert_eq!(other, flat(read(SWBUILD).disclosure));
    // Line ends of other systems, indents, a byte order mark.
    let crlf = format!("\u{feff}{}", VDA.replace('\n', "\r\n"));
    assert_eq!(read(&crlf).disclosure, read(VDA).disclosure);
}

/// The rule below the table may be as short as the rule below a heading.
#[test]
fn the_last_load_point_is_no_heading() {
    let invalid = NFS.replace(
        "5.8\n",
        "5.8\n           1600000             9.9    INVALID_RUN\n",
    );
    for text in [NFS, VDA, SWBUILD, &invalid] {
        let whole = flat(read(text).disclosure);
        let table = text.find("Product and Test").unwrap();
        let head = text[..table].trim_end().trim_end_matches('=').trim_end();
        let rest = &text[table..];
        for width in [3, 4, 16, 40, 74] {
            let rule = "=".repeat(width);
            let lines = format!("{head}\n{rule}\n{rest}");
            for text in [lines.clone(), collapsed(&lines)] {
                let Imported {
                    disclosure,
                    warnings,
                    ..
                } = read(&text);
                assert_eq!(warnings, [] as [&str; 0]);
                assert_eq!(flat(disclosure), whole, "{width}");
            }
        }
    }
}

#[test]
fn other_encodings_are_read() {
    let text = VDA.replace("SFS(R)2014", "SFS\u{ae}2014");
    let latin1: Vec<u8> = text.chars().map(|c| c as u8).collect();
    assert!(std::str::from_utf8(&latin1).is_err());
    let d = import(&latin1, "report.txt").unwrap().disclosure;
    assert_eq!(
        (d.title.as_str(), d.metric.as_str()),
        ("SPEC SFS®2014_vda Result", "SPEC SFS2014_vda")
    );
    assert_eq!(read(&text).disclosure, d);
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    let text = VDA.replace("IBM Corporation :", "IBM \u{1b}[2J\u{9b}31m :");
    let d = read(&text).disclosure;
    assert_eq!(d.vendor, "IBM \u{fffd}[2J\u{fffd}31m");
    let error = import(text.replace("170 ", "\u{1b}70 ").as_bytes(), "x").unwrap_err();
    assert!(!error.to_string().contains('\u{1b}') && !summary(&d).contains('\u{1b}'));
}

#[test]
fn a_model_survives_json() {
    let d = read(VDA).disclosure;
    let json = serde_json::to_string(&d).unwrap();
    assert_eq!(serde_json::from_str::<Disclosure>(&json).unwrap(), d);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["points"][0]["ops_per_s"], 1700.0);
    let nfs = serde_json::to_value(read(NFS).disclosure).unwrap();
    assert!(nfs["points"][0].get("ops_per_s").is_none());
    let schema: serde_json::Value =
        serde_json::from_str(&plimsoll_report::disclosure::disclosure_schema()).unwrap();
    let known = schema["properties"].as_object().unwrap();
    assert!(
        value
            .as_object()
            .unwrap()
            .keys()
            .all(|k| known.contains_key(k))
    );
}

#[test]
fn an_overall_response_time_that_does_not_follow_is_a_warning() {
    for (from, to, both) in [
        ("4.12", "4.20", ["4.2 ms", "4.1222 ms"]),
        ("4.12", "3.79", ["3.79 ms", "4.1222 ms"]),
    ] {
        let Imported {
            disclosure: d,
            warnings,
            ..
        } = read(&VDA.replace(from, to));
        assert_eq!(warnings.len(), 1);
        assert!(
            both.iter().all(|n| warnings[0].contains(n)),
            "{}",
            warnings[0]
        );
        assert!((d.ort_ms.unwrap() - 4.1222).abs() < 5e-5);
    }
    // Latencies have one digit behind the point: 0.05 and half of 0.01 are explained by rounding.
    assert!(read(&VDA.replace("4.12", "4.17")).warnings.is_empty());
    assert!(read(&VDA.replace("4.12", "4.07")).warnings.is_empty());
    assert_eq!(read(&VDA.replace("4.12", "4.18")).warnings.len(), 1);
}

#[test]
fn invalid_points_are_kept_and_do_not_count() {
    for text in [VDA.to_owned(), VDA_FLAT.to_owned()] {
        let text = text
            .replace("= 1700 Streams", "= 1530 Streams")
            .replace("7821", "7821 INVALID_RUN")
            .replace("4.12", "2.52");
        let Imported {
            disclosure: d,
            warnings,
            ..
        } = read(&text);
        assert_eq!(d.points.len(), 10);
        assert_eq!(d.points[9].verdict, PointVerdict::Invalid);
        // Of the nine valid points: (1.6/2 + 1.8 + … + 3.2 + 3.9/2) × 170 / 1360.
        assert!((d.ort_ms.unwrap() - 2.51875).abs() < 1e-9, "{:?}", d.ort_ms);
        assert_eq!(warnings, [] as [&str; 0]);
    }
}

#[test]
fn what_is_no_report_is_refused_as_a_whole() {
    for text in [
        "Once upon a time\n",
        "Result\n",
        "SPEC\n====\n",
        "\0\u{1}\u{2}",
    ] {
        let (_, _, message) = refused(text);
        let expected = ["is not a disclosure report", "was cut before"];
        assert!(
            expected.iter().any(|e| message.contains(e)),
            "{text:?}: {message}"
        );
    }
    for text in ["", " \n\n "] {
        assert_eq!(refused(text).2, "the file is empty");
    }
    let (_, _, message) = refused(&"x".repeat((16 << 20) + 1));
    assert!(
        message.contains("at most 16777216 bytes are read"),
        "{message}"
    );
}

#[test]
fn a_cell_that_is_no_number_is_shown() {
    let (line, column, message) = refused(&VDA.replace(" 2.7         8503", " fast        8503"));
    assert_eq!(
        (line, message.as_str()),
        (19, "the latency of load point 5 is not a number: `fast`")
    );
    assert_eq!(
        VDA.lines().nth(18).unwrap().find("2.7").unwrap() + 1,
        column as usize
    );
    let (line, _, message) = refused(&VDA_FLAT.replace(" 2.7 8503", " fast 8503"));
    assert_eq!(
        (line, message.as_str()),
        (1, "the latency of load point 5 is not a number: `fast`")
    );
    let (line, _, message) = refused(&NFS.replace("828151 ", "8,8151 "));
    assert_eq!(
        (line, message.as_str()),
        (17, "the load of load point 5 is not a number: `8,8151`")
    );
}

#[test]
fn a_missing_cell_does_not_borrow_from_the_next_line() {
    let (line, _, message) = refused(&VDA.replace("8503         3917", "8503"));
    assert_eq!(
        (line, message.as_str()),
        (19, "load point 5 has 3 of 4 cells")
    );
    let (line, _, message) = refused(&VDA.replace("3917", "3917 3918"));
    assert_eq!(
        (line, message.as_str()),
        (19, "load point 5 has more than 4 cells")
    );
    // Without line breaks the rest moves up, and nobody knows where the gap is but that it is not
    // behind the row that does not fit.
    let (_, _, message) = refused(&VDA_FLAT.replace("8503 3917", "8503"));
    assert_eq!(message, "a cell is missing at or before load point 6");
    let (_, _, message) = refused(&VDA_FLAT.replace("16980 7821", "16980"));
    assert_eq!(message, "a cell is missing at or before load point 10");
    let (_, _, message) = refused(&NFS_FLAT.replace("495831 0.5", "495831"));
    assert_eq!(message, "a cell is missing at or before load point 4");
    // A wrong order of whole rows is no missing cell.
    let swapped = VDA_FLAT.replace("850 2.7 8503", "650 2.7 8503");
    let (_, _, message) = refused(&swapped);
    assert!(
        message.contains("increasing order, but 650 follows 680"),
        "{message}"
    );
}

#[test]
fn a_claimed_point_that_is_invalid_is_not_missing() {
    for text in [VDA, VDA_FLAT] {
        let (_, _, message) = refused(&text.replace("7821", "7821 INVALID_RUN"));
        assert_eq!(
            message,
            "the report claims 1700 Streams, but its load point at 1700 is invalid \
             (`INVALID_RUN`); the highest valid load point is at 1530"
        );
    }
}

#[test]
fn a_point_at_which_nothing_was_done_has_no_latency_and_counts_nowhere() {
    for text in [VDA, VDA_FLAT] {
        let gone = text
            .replace("= 1700 Streams", "= 1530 Streams")
            .replace("4.12", "2.52")
            .replace("30.0", "n/a");
        let invalid = gone.replace("7821", "7821 INVALID_RUN");
        let Imported {
            disclosure: d,
            warnings,
            ..
        } = read(&invalid);
        assert_eq!(warnings, [] as [&str; 0]);
        assert_eq!((d.points.len(), d.points[9].latency_ms), (10, None));
        assert_eq!(d.points[9].verdict, PointVerdict::Invalid);
        assert!((d.ort_ms.unwrap() - 2.51875).abs() < 1e-9, "{:?}", d.ort_ms);
        let curve = d.curve().unwrap();
        assert_eq!(curve.points().len(), 9);
        assert_eq!(curve.peak().unwrap().load, 1530.0);
        assert!(
            summary(&d).contains("1700                       n/a"),
            "{}",
            summary(&d)
        );
        let json = serde_json::to_string(&d).unwrap();
        assert_eq!(serde_json::from_str::<Disclosure>(&json).unwrap(), d);
        // It is never a valid point, and nothing but the latency may be missing.
        assert_eq!(
            refused(&gone).2,
            "load point 10 has no latency, and is not marked as invalid"
        );
        let rate = text
            .replace("16980", "n/a")
            .replace("7821", "7821 INVALID_RUN");
        assert_eq!(
            refused(&rate).2,
            "only the latency of a load point may be `n/a`"
        );
    }
}

#[test]
fn missing_points_are_noticed() {
    let line = |text: &str, n: usize| format!("{}\n", text.lines().nth(n).unwrap());
    let (_, _, message) = refused(&VDA.replace(&line(VDA, 23), ""));
    assert_eq!(
        message,
        "the report claims 1700 Streams, but its highest valid load point is at 1530: load points \
         are missing"
    );
    for n in [14, 18, 22] {
        let (_, _, message) = refused(&VDA.replace(&line(VDA, n), ""));
        assert!(
            message.contains("at least 10, this one has 9"),
            "{n}: {message}"
        );
    }
    let (_, _, message) = refused(&NFS.replace(&line(NFS, 15), ""));
    assert!(message.contains("at least 10, this one has 9"), "{message}");
    let (head, rest) = VDA.split_once("         170").unwrap();
    let (_, rest) = rest.split_once("7821\n").unwrap();
    assert_eq!(
        refused(&format!("{head}{rest}")).2,
        "the report has no load points"
    );
    let (_, _, message) = refused(&VDA.replace("1190          2.8", "1020          2.8"));
    assert!(
        message.contains("increasing order, but 1020 follows 1020"),
        "{message}"
    );
}

#[test]
fn prose_does_not_end_a_report() {
    for (text, at) in [
        (NFS, "Uniform Access"),
        (VDA, "Dataflow"),
        (SWBUILD, "Dataflow"),
    ] {
        for text in [text.to_owned(), collapsed(text)] {
            let cut = &text[..text.rfind(at).unwrap()];
            for prose in [
                "The load was generated on 16 clients",
                "The data were\nGenerated on 16 clients",
                "Generated on 2013 clients which may run",
                "a copy.Generated on Mon May 06 12:00:00 2013",
            ] {
                let Imported {
                    disclosure: d,
                    notes,
                    ..
                } = read(&format!("{cut}{prose}\n"));
                assert_eq!(d.generated, "");
                assert!(notes[0].ends_with(" may have been cut"), "{notes:?}");
            }
        }
        // In lines of their own they begin one; and even then the last section is missing.
        let cut = &text[..text.rfind(at).unwrap()];
        let dated = "Generated on Mon May 06 12:00:00 2013";
        let prose = read(&format!("{cut}as was said, {dated}\n"));
        assert_eq!(prose.disclosure.generated, "");
        assert!(prose.notes[0].ends_with(" may have been cut"));
        let last = if text == NFS {
            "Other Notes"
        } else {
            "Other Report Notes"
        };
        let closed = read(&format!("{cut}{dated}\n"));
        assert_eq!(closed.disclosure.generated, dated);
        assert!(
            closed.notes[0].ends_with(&format!("{last})")),
            "{:?}",
            closed.notes
        );
        // Far from the end it is no closing line either.
        let far = format!("{text}{}", "more of something else\n".repeat(50));
        assert_eq!(read(&far).disclosure.generated, "");
    }
}

#[test]
fn errors_look_like_this() {
    let picture = |text: &str| {
        let e = import(text.as_bytes(), "report.txt").unwrap_err();
        e.render(false, 80)
    };
    let cell = picture(&VDA.replace(" 2.7         8503", " fast        8503"));
    let flat_cell = picture(&VDA_FLAT.replace(" 2.7 8503", " fast 8503"));
    let cut = picture(&VDA[..900]);
    let gone = picture(&VDA.replace("        1700         30.0        16980         7821\n", ""));
    let other = picture("#!/bin/sh\necho hello\n");
    insta::assert_snapshot!([cell, flat_cell, cut, gone, other].join("\n"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Err(e) = import(&bytes, "x") {
            prop_assert_eq!(e.findings().len(), 1);
            prop_assert!(!e.to_string().is_empty());
        }
    }

    #[test]
    fn no_change_of_a_report_makes_it_panic(
        which in 0usize..4,
        at in any::<prop::sample::Index>(),
        length in 0usize..60,
        put in "[ \\na-z0-9=.()+:-]{0,40}",
    ) {
        let text = [NFS, NFS_FLAT, VDA, VDA_FLAT][which];
        let at = at.index(text.len());
        let end = (at + length).min(text.len());
        let changed = format!("{}{put}{}", &text[..at], &text[end..]);
        match import(changed.as_bytes(), "x") {
            Ok(read) => {
                prop_assert!(read.disclosure.curve().is_ok());
                prop_assert!(read.disclosure.points.len() >= 10);
            }
            Err(e) => {
                prop_assert_eq!(e.findings().len(), 1);
                prop_assert!(!e.to_string().is_empty());
            }
        }
    }

    #[test]
    fn pieces_of_reports_in_any_order_are_read_or_refused(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "SPEC SFS2014_vda", "Result", "A : B", "=", "1700", "Streams", "\n",
                "(Overall Response Time = 4.12 msec)", "===========", "Performance",
                "---- ---- ---- ----", "1 2 3 4", "2 3 4 5", "Generated on", "INVALID_RUN",
                "Overall", "ä", "0",
            ]),
            0..60,
        ),
        space in prop::sample::select(vec![" ", "\n", "  "]),
    ) {
        if let Err(e) = import(pieces.join(space).as_bytes(), "x") {
            prop_assert_eq!(e.findings().len(), 1);
        }
    }
}

/// A megabyte of what looks like headings takes no longer than a moment.
#[test]
fn time_grows_with_size_alone() {
    for piece in [
        "=== ",
        "a ===\n",
        "ab\n==\n===\n",
        "Result ",
        "Generated on ",
        "--- ",
        "1 ",
    ] {
        let text = format!("{VDA}{}", piece.repeat((1 << 20) / piece.len()));
        let flat = collapsed(&text);
        for text in [text, flat] {
            // What comes out does not matter here; quadratic work would take minutes.
            let _ = import(text.as_bytes(), "x");
        }
    }
}
