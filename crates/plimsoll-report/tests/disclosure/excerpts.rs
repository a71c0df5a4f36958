//! Pieces of reports, as people paste them and as downloads that broke leave them.

use super::*;

/// Names of the sections of a text, apart from the load points.
fn names(text: &str) -> Vec<String> {
    let sections = read(text).disclosure.sections;
    sections.into_iter().map(|s| s.name).collect()
}

/// What must be there is the head, the claim and all load points.
#[test]
fn a_report_that_is_cut_before_the_end_of_its_table_is_refused() {
    for text in [NFS, NFS_FLAT, VDA, VDA_FLAT] {
        // The last cell of the table.
        let at = text.find("5.8").or(text.find("7821")).unwrap();
        for cut in (0..at).step_by(7).chain([at - 1]) {
            let (_, _, message) = refused(&text[..cut]);
            let known = [
                "cut",
                "missing",
                "is empty",
                "not a disclosure report",
                "not a number",
                "no load",
                "2 or 4 columns",
            ];
            assert!(
                known.iter().any(|k| message.contains(k)),
                "cut at {cut}: {message}"
            );
        }
        // Cut within the last cell nobody can tell; it is said.
        let Imported { warnings, .. } = read(&text[..=at]);
        let cell = &text[at..=at];
        assert!(
            warnings.iter().any(|w| w.contains(&format!(
                "the text ends with a figure of its table, `{cell}`, which may have been cut"
            ))),
            "{warnings:?}"
        );
    }
}

/// A report that was cut behind its load points is an excerpt: it is said what is missing.
#[test]
fn what_an_excerpt_lacks_is_noted() {
    for text in [NFS, NFS_FLAT, VDA, VDA_FLAT, SWBUILD] {
        let whole = read(text);
        assert_eq!(whole.notes, [] as [&str; 0]);
        let all = names(text);
        let last = all.last().unwrap();
        let table = text.find("Product and Test").unwrap();
        let end = text.rfind(&**last).unwrap();
        for cut in (table..end).step_by(41) {
            let Some(text) = text.get(..cut) else {
                continue;
            };
            let Imported {
                disclosure: d,
                notes,
                ..
            } = read(text);
            assert_eq!((d.peak, d.points.len()), (whole.disclosure.peak, 10));
            assert_eq!(d.ort_ms, whole.disclosure.ort_ms);
            let there = names(text);
            assert!(notes[0].starts_with("this is an excerpt: "), "{notes:?}");
            let missing = notes[0].split_once('(').unwrap().1;
            let missing: Vec<&str> = missing.split_once(')').unwrap().0.split(", ").collect();
            for name in &all {
                assert_eq!(
                    missing.contains(&name.as_str()),
                    !there.contains(name),
                    "cut at {cut}: {name}: {notes:?}"
                );
            }
        }
        // Of the last lines alone, the loss is a warning.
        let end = text.rfind("Generated on").unwrap();
        let Imported {
            disclosure: d,
            warnings,
            notes,
        } = read(&text[..end]);
        assert!(
            warnings.len() == 1 && warnings[0].contains("are missing"),
            "{warnings:?}"
        );
        assert_eq!((d.generated.as_str(), notes.len()), ("", 0));
    }
}

/// Title, claim and load points, as they are copied from a report.
#[test]
fn an_excerpt_is_title_metric_and_table() {
    for (text, sections) in [(NFS, 22), (VDA, 25), (SWBUILD, 25)] {
        let whole = read(text).disclosure;
        let table = text.find("Product and Test").unwrap();
        let rule = text[..table].rfind("=====").unwrap();
        let rule = text[..rule].trim_end_matches('=').len();
        let excerpt = text[..rule].trim_end();
        let pasted = [
            // As it is, and with a part of the line behind it.
            format!("{excerpt}\n"),
            format!("{excerpt}\n\n==========\n"),
            // Without the heading.
            format!("{}\n", excerpt.replace("Performance\n===========\n", "")),
            // With what people write below.
            format!("{excerpt}\n\nfrom the web site of the publisher\n"),
            format!("{excerpt}\n{}\nProduct and\n", "=".repeat(79)),
        ];
        for lines in pasted {
            for text in [lines.clone(), collapsed(&lines) + "\n"] {
                let Imported {
                    disclosure: d,
                    warnings,
                    notes,
                } = read(&text);
                assert_eq!(warnings, [] as [&str; 0], "{text}");
                let missing =
                    format!("this is an excerpt: {sections} sections are missing (Product");
                assert!(notes[0].starts_with(&missing), "{notes:?}");
                assert_eq!(d.points, whole.points);
                assert_eq!(
                    (&d.title, &d.vendor, &d.product, &d.metric, d.peak, d.ort_ms),
                    (
                        &whole.title,
                        &whole.vendor,
                        &whole.product,
                        &whole.metric,
                        whole.peak,
                        whole.ort_ms
                    )
                );
                assert_eq!((d.remark.as_str(), d.sections.len()), ("", 0));
                let prose = ["from the web site", "Product and\n"];
                let ignored = prose.iter().any(|p| lines.contains(p));
                assert_eq!(notes.len(), 1 + usize::from(ignored), "{notes:?}");
                // What was read can be written, and that is a report.
                let again = read(&d.to_text());
                assert_eq!(again.disclosure.points, whole.points);
                assert!(summary(&d).contains(&whole.product));
            }
        }
        let ignored = read(&format!("{excerpt}\nsource: a web site\n"));
        assert_eq!(
            ignored.notes[1],
            "text after the load points is not part of them and was ignored: `source: a web site`"
        );
        // Nobody need be named.
        let who = format!("{} : {}\n", whole.vendor, whole.product);
        let who = text.lines().find(|l| collapsed(l) == who.trim()).unwrap();
        let Imported {
            disclosure: d,
            notes,
            ..
        } = read(&format!("{}\n", excerpt.replace(who, "")));
        assert_eq!((d.vendor.as_str(), d.product.as_str()), ("", ""));
        assert_eq!(notes[0], "the vendor and the product are missing");
        assert!(!summary(&d).contains(" : "), "{}", summary(&d));
    }
}

/// A metric without its table, and a table without its last row, cannot be trusted.
#[test]
fn an_excerpt_without_all_its_load_points_is_refused() {
    for text in [NFS, VDA] {
        let table = text.find("Product and Test").unwrap();
        let excerpt = &text[..table];
        let peak = text.find("1592334             5.8");
        let row = peak.or(text.find("1700         30.0")).unwrap();
        for cut in [excerpt[..row].to_owned(), collapsed(&excerpt[..row])] {
            let (_, _, message) = refused(&cut);
            assert!(message.contains("load points are missing"), "{message}");
        }
        let claim = &text[..text.find("msec)").unwrap() + 5];
        let underlined = text.find("Performance").unwrap() + 23;
        for cut in [claim, &text[..underlined]] {
            for cut in [cut.to_owned(), collapsed(cut)] {
                let (_, _, message) = refused(&cut);
                let known = [
                    "the report was cut before its load points",
                    "the report has no load points: it was cut before them",
                ];
                assert!(known.contains(&&*message), "{message}");
            }
        }
    }
}
