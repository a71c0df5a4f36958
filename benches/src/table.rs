//! The table of the suite's figures and goals in Markdown, and the page `docs/performance.md`.

use crate::machine::Machine;
use crate::rounds::Figures;
use std::fmt::Write as _;

/// The expected range of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// The figure must be at most the given value.
    AtMost(f64),
    /// The figure must be at least the given value.
    AtLeast(f64),
    /// The figure must be more than the given value.
    Above(f64),
    /// The relative difference between the figure and the first number must be at most the second number, a fraction of
    /// 1.
    Within(f64, f64),
    /// No goal: the figure is only reported.
    None,
}

impl Goal {
    /// Whether a figure meets the goal; `None` without a goal.
    pub(crate) fn met(self, figure: f64) -> Option<bool> {
        match self {
            Self::AtMost(max) => Some(figure <= max),
            Self::AtLeast(min) => Some(figure >= min),
            Self::Above(bound) => Some(figure > bound),
            Self::Within(value, fraction) => Some((figure / value - 1.0).abs() <= fraction),
            Self::None => None,
        }
    }
}

/// The unit of a figure, and its format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    PerSecond,
    Bytes,
    Mebibytes,
    Ratio,
    /// Unit of fractions of 1, which are shown with four decimals.
    Fraction,
}

impl Unit {
    /// A figure with its unit.
    pub(crate) fn show(self, figure: f64) -> String {
        format!("{}{}", self.number(figure), self.name())
    }

    /// A figure without its unit.
    fn number(self, figure: f64) -> String {
        match self {
            Self::Nanoseconds if figure < 10.0 => format!("{figure:.1}"),
            Self::Nanoseconds | Self::Microseconds | Self::Bytes | Self::Mebibytes => {
                format!("{figure:.0}")
            }
            Self::Milliseconds | Self::Seconds | Self::Ratio => format!("{figure:.2}"),
            Self::Fraction => format!("{figure:.4}"),
            Self::PerSecond => format!("{:.1}", figure / 1e3),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => " ns",
            Self::Microseconds => " µs",
            Self::Milliseconds => " ms",
            Self::Seconds => " s",
            Self::PerSecond => " k/s",
            Self::Bytes => " B",
            Self::Mebibytes => " MiB",
            Self::Ratio | Self::Fraction => "",
        }
    }
}

/// A line of the table.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) figure: f64,
    /// Minimum and maximum of the figure over several rounds; `None` for a figure of one round and for a ratio.
    pub(crate) range: Option<(f64, f64)>,
    /// Name and figure of the reference, such as a minimal loop; `None` without a reference.
    pub(crate) compared: Option<(String, f64)>,
    /// Median, minimum and maximum of the ratio to the reference.
    pub(crate) ratio: Option<(f64, f64, f64)>,
    /// Goal for the ratio, or for the figure of a row without a ratio.
    pub(crate) goal: Goal,
}

impl Row {
    /// Row of the table with a figure of a single round.
    pub(crate) fn plain(what: impl Into<String>, unit: Unit, figure: f64, goal: Goal) -> Self {
        Self {
            what: what.into(),
            unit,
            figure,
            range: None,
            compared: None,
            ratio: None,
            goal,
        }
    }

    /// Row of the table with the median, the minimum and the maximum of a figure over several rounds.
    pub(crate) fn median(what: impl Into<String>, unit: Unit, of: &Figures, goal: Goal) -> Self {
        Self {
            range: Some(of.range()),
            ..Self::plain(what, unit, of.median(), goal)
        }
    }

    /// A row with a contender's figures and their ratio to a reference.
    pub(crate) fn with_reference(
        what: impl Into<String>,
        unit: Unit,
        ours: &Figures,
        name: &str,
        theirs: &Figures,
        goal: Goal,
    ) -> Self {
        let ratio = ours.ratio_to(theirs);
        let (min, max) = ratio.range();
        Self {
            compared: Some((name.into(), theirs.median())),
            ratio: Some((ratio.median(), min, max)),
            ..Self::plain(what, unit, ours.median(), goal)
        }
    }

    fn met(&self) -> Option<bool> {
        self.goal
            .met(self.ratio.map_or(self.figure, |(median, _, _)| median))
    }

    fn cells(&self) -> [String; 6] {
        let none = || "–".to_string();
        let unit = self.ratio.map_or(self.unit, |_| Unit::Ratio);
        [
            self.what.clone(),
            match self.range {
                Some((min, max)) => format!(
                    "{} ({}–{})",
                    self.unit.show(self.figure),
                    self.unit.number(min),
                    self.unit.number(max)
                ),
                None => self.unit.show(self.figure),
            },
            self.compared.as_ref().map_or_else(none, |(name, figure)| {
                format!("{name}: {}", self.unit.show(*figure))
            }),
            self.ratio.map_or_else(none, |(median, min, max)| {
                format!("{median:.2} ({min:.2}–{max:.2})")
            }),
            match self.goal {
                Goal::AtMost(max) => format!("≤ {}", unit.show(max)),
                Goal::AtLeast(min) => format!("≥ {}", unit.show(min)),
                Goal::Above(bound) => format!("> {}", unit.show(bound)),
                Goal::Within(value, fraction) => {
                    let percent = (fraction * 1e4).round() / 100.0;
                    format!("{} ± {percent} %", unit.show(value))
                }
                Goal::None => none(),
            },
            match self.met() {
                Some(true) => "yes".into(),
                Some(false) => "no".into(),
                None => none(),
            },
        ]
    }
}

const HEADINGS: [&str; 6] = ["what", "plimsoll", "compared with", "ratio", "goal", "met"];

/// The table in Markdown, with aligned columns.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(String::from)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| {
        let lengths = lines.iter().map(|l| l[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for (at, cells) in lines.iter().enumerate() {
        for (cell, width) in cells.iter().zip(widths) {
            // Writing to a string cannot fail.
            let _ = write!(out, "| {cell:width$} ");
        }
        out.push_str("|\n");
        if at == 0 {
            for width in widths {
                let _ = write!(out, "|{:-<1$}", "", width + 2);
            }
            out.push_str("|\n");
        }
    }
    out
}

/// The page `docs/performance.md`.
pub(crate) fn page(rows: &[Row], machine: &Machine, quick: bool) -> String {
    let quick = if quick {
        "\n**This was a quick run, which checks that everything runs: its figures are meaningless.**\n"
    } else {
        ""
    };
    format!(
        "# Performance\n\n\
         The overhead of Plimsoll itself, measured by `make bench`, which wrote this page. One run, \
         on one machine:\n\n{}{quick}\n\
         Contenders take turns, so that drifts of the machine affect all of them equally. A figure \
         is the median of the rounds, followed by minimum and maximum; a ratio is Plimsoll's figure \
         divided by the other's in the same round: median, minimum and maximum. A minimal loop \
         calls `pread`, or `fstatat`, `openat`, `pwrite`, `close` and `unlinkat`, on the same files \
         from a thread of its own, reads the system's clock before and after each call and adds up \
         the differences (Plimsoll reads the processor's counter, which is faster, so a ratio may be \
         above 1). Its paths are prepared, it opens files without the checks that keep Plimsoll \
         inside its directory, and it does nothing else. The metadata pattern is compared with the \
         system calls that MD-Workbench makes for it, on the same paths, with one process per rank. \
         *All included* means the length of the window divided by its operations: choosing the file \
         and the position, composing its path, two readings of the clock, recording.\n\n\
         {}",
        machine.markdown(),
        markdown(rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_met_or_not() {
        assert_eq!(Goal::AtMost(60.0).met(60.0), Some(true));
        assert_eq!(Goal::AtMost(60.0).met(60.1), Some(false));
        assert_eq!(Goal::AtLeast(0.9).met(0.89), Some(false));
        assert_eq!(Goal::Above(1.0).met(1.0), Some(false));
        assert_eq!(Goal::Within(500e3, 0.01).met(495_001.0), Some(true));
        assert_eq!(Goal::Within(500e3, 0.01).met(494_999.0), Some(false));
        assert_eq!(Goal::None.met(1.0), None);
    }

    #[test]
    fn a_goal_of_a_comparison_is_one_of_its_ratio() {
        let (ours, theirs) = (Figures::new(vec![95e3]), Figures::new(vec![100e3]));
        let goal = Goal::AtLeast(0.9);
        let row = Row::with_reference("stat", Unit::PerSecond, &ours, "loop", &theirs, goal);
        assert_eq!(
            row.cells(),
            [
                "stat",
                "95.0 k/s",
                "loop: 100.0 k/s",
                "0.95 (0.95–0.95)",
                "≥ 0.90",
                "yes"
            ]
        );
    }

    #[test]
    fn several_rounds_show_their_range() {
        let rounds = Figures::new(vec![58.0, 9.0, 61.0]);
        let row = Row::median("op", Unit::Nanoseconds, &rounds, Goal::AtMost(60.0));
        assert_eq!(row.cells()[1], "58 ns (9.0–61)");
        assert_eq!(row.cells()[5], "yes");
    }

    #[test]
    fn columns_are_aligned() {
        let row = Row::plain("a", Unit::Nanoseconds, 5.0, Goal::None);
        let text = markdown(&[row]);
        let lengths: Vec<_> = text.lines().map(|l| l.chars().count()).collect();
        assert_eq!(lengths.len(), 3);
        assert!(lengths.iter().all(|l| *l == lengths[0]), "{text}");
    }
}
