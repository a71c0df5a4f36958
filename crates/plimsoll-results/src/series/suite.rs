//! Suite: the phases of an IO500-style benchmark, one run each, and the scores that follow from the runs.

use crate::series::{NextRun, Series, SeriesOf, SeriesRun, SeriesState, Step, Strategy};
use crate::{Run, Stage, per_second};
use plimsoll_plan::hash::PairHash;
use plimsoll_plan::{Pattern, ScoreGroup, StageWork};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const GIB: f64 = (1u64 << 30) as f64;

/// An IO500-style suite as a series: a run for each phase, on files that the phases share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suite {
    /// Name of the configuration file, as given on the command line.
    pub file: String,
    /// Text of the configuration file when the series began.
    pub text: String,
    /// Complete configuration, with the defaults of all keys that the file does not set.
    pub complete: String,
    /// IO500's checksum over the complete configuration, in hexadecimal digits.
    pub config_hash: String,
    /// Version in the result file, which is part of the checksum over the scores.
    pub version: String,
    /// Data directory, in which the phases make their files.
    pub data_dir: String,
    /// URL of the target as given on the command line.
    pub target: String,
    /// Number of ranks: processes, or in virtual time workers of one process.
    pub pattern_ranks: u32,
    /// Number of ranks on the machine of rank 0: the distance from the writer of a file of IOR to its reader.
    pub ranks_per_host: u32,
    /// Seed of the contents of all files.
    pub seed: u64,
    /// Stonewall of the writing phases in seconds: the time after which no rank begins further work.
    pub stonewall_s: f64,
    /// Least time of a writing phase in seconds, by the rules of the suite.
    pub least_s: f64,
    /// Directory in which a file with the name of a phase makes the phase wait; null without such a directory.
    pub pause_dir: Option<String>,
    /// Whether the result file has the times at which phases began and ended.
    pub shows_times: bool,
    /// Directories that the suite made before its first phase, each before the directories below; the end of the suite
    /// removes the directories that are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_dirs: Vec<String>,
    /// Sentences on the configuration that make every score invalid.
    pub reasons: Vec<String>,
    /// Phases of the mode, in order, with the phases that are not run.
    pub phases: Vec<SuitePhase>,
    /// Numbers of the phases, from 0, that an earlier process began and did not complete. The next process made the
    /// files of such a phase again before the phase, unmeasured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<u32>,
    /// Results of the phases so far, in order.
    pub results: Vec<PhaseResult>,
    /// Score over the mandatory phases; null until all phases have ended.
    pub score: Option<SuiteScore>,
    /// Score over all phases of the extended mode; null in the standard mode, and until all phases have ended.
    pub extended_score: Option<SuiteScore>,
}

/// Phase of a suite with its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuitePhase {
    /// Name of the phase, such as `ior-easy-write`.
    pub name: String,
    /// Score to which the phase contributes.
    pub group: ScoreGroup,
    /// Whether only the extended mode has the phase, so that the phase does not affect the score of the mandatory phases.
    pub is_extended: bool,
    /// Whether the phase writes until the stonewall, and must last as long as the rules require.
    pub is_timed: bool,
    /// Whether the phase changes its files so that a second attempt needs the files as they were before.
    pub is_unrepeatable: bool,
    /// Reason why the phase is not run, such as `run = FALSE` in the configuration; null for a phase that is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
}

/// Result of a phase: figure, time, and the reasons why the phase is invalid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResult {
    /// Name of the phase.
    pub name: String,
    /// Figure of the phase: GiB per second of a phase whose name begins with `ior`, otherwise thousands of operations per
    /// second; 0 for a phase that was not run.
    pub figure: f64,
    /// Time of the slowest rank in seconds; 0 for a phase that was not run.
    pub time_s: f64,
    /// Reasons why the phase is invalid, each a sentence; empty for a valid phase.
    pub reasons: Vec<String>,
}

/// Scores of a suite, with the reasons why the scores are invalid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteScore {
    /// Bandwidth score: geometric mean of the figures of the bandwidth phases in GiB per second; 0 without such a
    /// phase.
    pub bandwidth: f64,
    /// Metadata score: geometric mean of the figures of the metadata phases in thousands of operations per second; 0
    /// without such a phase.
    pub metadata: f64,
    /// Total score: square root of the product of bandwidth score and metadata score.
    pub total: f64,
    /// Reasons why the scores are invalid, each a sentence; empty for valid scores.
    pub reasons: Vec<String>,
    /// IO500's checksum over the figures of the phases and the score, in hexadecimal digits.
    pub hash: String,
}

/// Figures of the stage of a pattern that is a phase of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseFigures {
    /// Time of the slowest rank in seconds.
    pub time_s: f64,
    /// Number of operations on objects; of a search, number of names that the ranks looked at.
    pub items: u64,
    /// Number of bytes that the operations moved.
    pub bytes: u128,
    /// Number of rounds of the rank with the most rounds: files of mdtest, transfers of IOR.
    pub rounds: u64,
    /// Time of the slowest rank to the stonewall, in seconds; null if no rank reached the stonewall.
    pub stonewall_s: Option<f64>,
    /// Number of rounds of all ranks at the stonewall; null if no rank reached the stonewall.
    pub stonewall_rounds: Option<u64>,
    /// Number of files that a search matched; null for another phase.
    pub matches: Option<u64>,
    /// Fraction of the bytes read that the client's own memory served; null if nothing was read or the source of the
    /// data is unknown.
    pub hit_ratio: Option<f64>,
    /// Number of stalls of the target in the phase.
    pub stalls: u32,
}

impl PhaseFigures {
    /// The stage of a run that is the phase: the last measured stage with rounds; `None` for a run without such a stage.
    #[must_use]
    pub fn stage(run: &Run) -> Option<&Stage> {
        let pattern = run.plan.pattern()?;
        let works = |stage: &&Stage| {
            let planned = pattern.stages.get(stage.stage as usize);
            planned.is_some_and(|stage| stage.work.has_rounds())
        };
        run.stages.iter().rev().find(works)
    }

    /// Figures of the stage of a run that is the phase; `None` for a run without such a stage.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let (pattern, stage) = (run.plan.pattern()?, Self::stage(run)?);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let longest = stage.ranks.iter().map(|rank| rank.time_ns).max();
        let walls = stage.ranks.iter().filter_map(|rank| rank.stonewall_ns);
        let at_wall = stage.ranks.iter().filter_map(|rank| rank.stonewall_rounds);
        let at_wall: Vec<u64> = at_wall.collect();
        let rows = stage.ranks.iter().flat_map(|rank| &rank.rows);
        let (ops, bytes) = rows.fold((0, 0), |(ops, bytes), row| {
            (ops + row.ops, bytes + row.bytes)
        });
        let matches = matches_of(pattern, stage);
        let rounds = stage.ranks.iter().map(|rank| rank.rounds);
        let stalls = stage.window.summary.stalls.len();
        Some(Self {
            time_s: seconds(longest.unwrap_or(0)),
            items: match matches {
                Some(_) => rounds.clone().sum(),
                None => ops,
            },
            bytes,
            rounds: rounds.max().unwrap_or(0),
            stonewall_s: walls.max().map(seconds),
            stonewall_rounds: (!at_wall.is_empty()).then(|| at_wall.iter().sum()),
            matches,
            hit_ratio: stage.window.client_cache.and_then(|cache| cache.hit_ratio),
            stalls: stalls as u32,
        })
    }

    /// Thousands of operations per second over the time of the slowest rank.
    #[must_use]
    pub fn kiops(&self) -> f64 {
        per_second(self.items, self.time_s) / 1e3
    }

    /// GiB per second over the time of the slowest rank.
    #[must_use]
    pub fn gib_per_s(&self) -> f64 {
        per_second(self.bytes, self.time_s) / GIB
    }
}

/// Number of files that a search matched; `None` for a stage without a search.
fn matches_of(pattern: &Pattern, stage: &Stage) -> Option<u64> {
    let work = &pattern.stages[stage.stage as usize].work;
    match work {
        StageWork::Objects(_) | StageWork::Transfers(_) => None,
        StageWork::Search(_) => Some(stage.ranks.iter().filter_map(|rank| rank.matches).sum()),
    }
}

impl SuitePhase {
    /// Whether the suite runs the phase.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.not_run.is_none()
    }

    /// Unit of the figure of the phase: IO500 has GiB/s for the phases of IOR.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.name.starts_with("ior") {
            true => "GiB/s",
            false => "kIOPS",
        }
    }

    /// Figure of the phase in the unit [`Self::unit`], from the figures of the phase's run.
    #[must_use]
    pub fn figure(&self, figures: &PhaseFigures) -> f64 {
        match self.name.starts_with("ior") {
            true => figures.gib_per_s(),
            false => figures.kiops(),
        }
    }
}

impl SuiteScore {
    /// Bandwidth score, metadata score and total of the figures of phases.
    pub fn scores(figures: impl Iterator<Item = (ScoreGroup, f64)> + Clone) -> [f64; 3] {
        let mean = |group| {
            let of_group = figures.clone().filter(|(of, _)| *of == group);
            geometric_mean(of_group.map(|(_, figure)| figure))
        };
        let (bandwidth, metadata) = (mean(ScoreGroup::Bandwidth), mean(ScoreGroup::Metadata));
        [bandwidth, metadata, (bandwidth * metadata).sqrt()]
    }

    /// Whether the scores are valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// A figure in the form of IO500's files, which is also the form that enters the checksum.
#[must_use]
pub fn suite_figure(value: f64) -> String {
    format!("{value:.6}")
}

/// The geometric mean of the positive figures; 0 without such figures.
fn geometric_mean(figures: impl Iterator<Item = f64>) -> f64 {
    let (mut logarithms, mut count) = (0.0, 0u32);
    for figure in figures.filter(|figure| *figure > 0.0) {
        logarithms += figure.ln();
        count += 1;
    }
    match count {
        0 => 0.0,
        n => (logarithms / f64::from(n)).exp(),
    }
}

impl Suite {
    /// Whether the suite has phases that only the extended mode has.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.phases.iter().any(|phase| phase.is_extended)
    }

    /// Name of the mode, as in IO500's files: `extended` or `standard`.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self.is_extended() {
            true => "extended",
            false => "standard",
        }
    }

    /// The phases that are run, each with its number in the list of all phases. The number of a phase among these phases
    /// is the number of its configuration.
    pub fn run_phases(&self) -> impl Iterator<Item = (usize, &SuitePhase)> {
        self.phases
            .iter()
            .enumerate()
            .filter(|(_, phase)| phase.runs())
    }

    /// The phase of the configuration with the number `configuration`.
    #[must_use]
    pub fn phase_of(&self, configuration: u32) -> Option<(usize, &SuitePhase)> {
        self.run_phases().nth(configuration as usize)
    }

    /// The run of the phase with the name `name`; `None` for a phase without a run.
    #[must_use]
    pub fn run_of<'a>(&self, name: &str, runs: &'a [SeriesRun]) -> Option<&'a SeriesRun> {
        let at = self
            .run_phases()
            .position(|(_, phase)| phase.name == name)?;
        runs.iter().find(|run| run.configuration as usize == at)
    }

    fn result(&self, phase: &SuitePhase, run: Option<&SeriesRun>) -> PhaseResult {
        let figures = run.and_then(|run| run.phase.as_ref());
        let figure = figures.map_or(0.0, |figures| phase.figure(figures));
        let time_s = figures.map_or(0.0, |figures| figures.time_s);
        let mut reasons = Vec::new();
        match run {
            None => reasons.push(match &phase.not_run {
                Some(why) => format!("not run: {why}"),
                None => "not run".into(),
            }),
            Some(run) if run.errors > 0 => {
                reasons.push(format!("{} operations failed", run.errors));
            }
            Some(_) => {}
        }
        if run.is_some() && phase.is_timed && time_s < self.least_s {
            reasons.push(format!(
                "the phase wrote for {time_s:.3} s, and the rules require {} s",
                self.least_s
            ));
        } else if run.is_some() && phase.is_timed && time_s < self.stonewall_s {
            reasons.push(format!(
                "the phase ended after {time_s:.3} s, before its stonewall of {} s",
                self.stonewall_s
            ));
        }
        if run.is_some() && figure <= 0.0 {
            reasons.push("nothing was measured".into());
        }
        if figures.is_some_and(|figures| figures.matches == Some(0)) {
            reasons.push("the search matched no file".into());
        }
        PhaseResult {
            name: phase.name.clone(),
            figure,
            time_s,
            reasons,
        }
    }

    /// Score over the phases for which `counts` is true. `hashed` selects the phases whose figures enter the checksum.
    fn score_of(
        &self,
        counts: impl Fn(&SuitePhase) -> bool,
        hashed: impl Fn(&SuitePhase) -> bool,
        mut hash: PairHash,
    ) -> SuiteScore {
        let both = || self.phases.iter().zip(&self.results);
        let counted = both().filter(|(p, _)| counts(p));
        let figures = counted.map(|(p, result)| (p.group, result.figure));
        let [bandwidth, metadata, total] = SuiteScore::scores(figures);
        let scored = |p: &SuitePhase| p.group != ScoreGroup::Unscored;
        for (phase, result) in both().filter(|(p, _)| scored(p) && hashed(p)) {
            hash.add(&phase.name, &suite_figure(result.figure));
        }
        for (key, value) in [("MD", metadata), ("BW", bandwidth), ("SCORE", total)] {
            hash.add(key, &suite_figure(value));
        }
        let of_phases = both()
            .filter(|(p, _)| counts(p))
            .flat_map(|(phase, result)| {
                let reasons = result.reasons.iter();
                reasons.map(|reason| format!("{}: {reason}", phase.name))
            });
        let reasons: Vec<String> = self.reasons.iter().cloned().chain(of_phases).collect();
        if !reasons.is_empty() {
            hash.add("valid", "NO");
        }
        SuiteScore {
            bandwidth,
            metadata,
            total,
            reasons,
            hash: hash.to_string(),
        }
    }
}

impl Strategy for Suite {
    fn repeats(&mut self, configuration: u32) -> bool {
        let Some((number, phase)) = self.phase_of(configuration) else {
            return false;
        };
        let (number, repeats) = (number as u32, phase.is_unrepeatable);
        if repeats && !self.repeated.contains(&number) {
            self.repeated.push(number);
        }
        repeats
    }

    fn next(&self, series: &Series) -> Step {
        let number = series.runs.len();
        match self.phase_of(number as u32) {
            None => Step::End(SeriesState::Complete, None),
            Some((_, phase)) => Step::Run(NextRun {
                configuration: number as u32,
                load: None,
                value: None,
                purpose: None,
                seed: self.seed,
                directory: format!("{:02}-{}", number + 1, phase.name),
            }),
        }
    }

    fn conclude(&mut self, runs: &[SeriesRun]) {
        let complete = runs.len() == self.run_phases().count();
        let begun = |phase: &&SuitePhase| {
            !phase.runs()
                || self
                    .run_of(&phase.name, runs)
                    .is_some_and(SeriesRun::is_measured)
        };
        let ended = self.phases.iter().take_while(begun);
        self.results = ended
            .map(|phase| self.result(phase, self.run_of(&phase.name, runs)))
            .collect();
        let is_over = complete && self.results.len() == self.phases.len();
        let mandatory = |phase: &SuitePhase| !phase.is_extended;
        let mut version = PairHash::default();
        version.add("version", &self.version);
        let score = is_over.then(|| self.score_of(mandatory, mandatory, version));
        let is_extended = |phase: &SuitePhase| phase.is_extended;
        let extended = is_over && self.is_extended();
        self.extended_score =
            extended.then(|| self.score_of(|_| true, is_extended, PairHash::default()));
        self.score = score;
    }

    /// A suite is valid if all its scores are valid.
    fn is_valid(&self, _: &[SeriesRun]) -> bool {
        let scores = [&self.score, &self.extended_score];
        self.score.is_some() && scores.into_iter().flatten().all(SuiteScore::is_valid)
    }

    fn shares_files(&self, _: &Series) -> bool {
        true
    }

    fn check(&self, series: &Series) -> Result<(), String> {
        let count = self.run_phases().count();
        let (configurations, runs) = (series.configurations.len(), series.runs.len());
        if configurations > count || runs > configurations {
            return Err(format!(
                "the suite runs {count} phases, and there are {configurations} configurations and {runs} runs"
            ));
        }
        let in_order = |(at, run): (u32, &SeriesRun)| run.configuration == at;
        match (0..).zip(&series.runs).all(in_order) {
            true => Ok(()),
            false => Err("the runs are not in the order of the phases".into()),
        }
    }
}

impl SeriesOf<'_, Suite> {
    /// Whether the files of the phase with the number `phase`, from 0, were made again before the phase.
    #[must_use]
    pub fn is_repeated(&self, phase: usize) -> bool {
        self.figures.repeated.contains(&(phase as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(figures: &[(&str, ScoreGroup, f64)]) -> Suite {
        let phases = figures.iter().map(|(name, group, _)| SuitePhase {
            name: (*name).into(),
            group: *group,
            is_extended: name.starts_with("find-"),
            is_timed: false,
            is_unrepeatable: false,
            not_run: None,
        });
        let results = figures.iter().map(|(name, _, figure)| PhaseResult {
            name: (*name).into(),
            figure: *figure,
            time_s: 1.0,
            reasons: vec![],
        });
        Suite {
            file: String::new(),
            text: String::new(),
            complete: String::new(),
            config_hash: String::new(),
            version: "io500-isc24_v3".into(),
            data_dir: String::new(),
            target: String::new(),
            pattern_ranks: 1,
            ranks_per_host: 1,
            seed: 1,
            stonewall_s: 300.0,
            least_s: 300.0,
            pause_dir: None,
            shows_times: true,
            made_dirs: vec![],
            reasons: vec![],
            phases: phases.collect(),
            repeated: vec![],
            results: results.collect(),
            score: None,
            extended_score: None,
        }
    }

    /// The published figures of Helios (submission 708 of 2024), with the published scores, whose last digit follows from
    /// figures that are not rounded.
    #[test]
    fn scores_of_a_published_result_are_recomputed() {
        use ScoreGroup::{Bandwidth, Metadata, Unscored};
        let published = suite(&[
            ("ior-easy-write", Bandwidth, 352.803_032),
            ("mdtest-easy-write", Metadata, 119.113_150),
            ("find-easy", Metadata, 1.0),
            ("ior-hard-write", Bandwidth, 5.996_531),
            ("mdtest-hard-write", Metadata, 66.621_419),
            ("find", Metadata, 2_872.215_129),
            ("ior-easy-read", Bandwidth, 464.646_333),
            ("mdtest-easy-stat", Metadata, 415.688_686),
            ("ior-hard-read", Bandwidth, 227.682_852),
            ("mdtest-hard-stat", Metadata, 305.227_639),
            ("mdtest-easy-delete", Metadata, 96.720_801),
            ("mdtest-hard-read", Metadata, 114.129_044),
            ("mdtest-hard-delete", Metadata, 58.712_616),
            ("ior-rnd4K-easy-read", Unscored, 7.0),
        ]);
        let mut version = PairHash::default();
        version.add("version", &published.version);
        let mandatory = |p: &SuitePhase| !p.is_extended;
        let score = published.score_of(mandatory, mandatory, version);
        for (found, stated) in [
            (score.bandwidth, 122.312_630),
            (score.metadata, 192.355_126),
            (score.total, 153.386_640),
        ] {
            assert!((found - stated).abs() < 2e-6, "{found}, not {stated}");
        }
        let invalid = Suite {
            reasons: vec!["why".into()],
            ..published
        };
        let invalid = invalid.score_of(mandatory, mandatory, version);
        assert_eq!((invalid.total, invalid.is_valid()), (score.total, false));
        assert_ne!(invalid.hash, score.hash);
    }

    #[test]
    fn means_leave_out_phases_without_a_figure() {
        let mean = |figures: &[f64]| geometric_mean(figures.iter().copied());
        assert_eq!(mean(&[]), 0.0);
        assert_eq!(mean(&[0.0]), 0.0);
        assert!((mean(&[2.0, 0.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
