//! The curve directory.

use super::{CurvePoint, LoadCurve};
use crate::document::{Directory, Writer};
use crate::{ClockKind, Percentiles, ResultsError, RunDir, RunWriter, Verdict};
use plimsoll_plan::Plan;
use std::path::Path;
use std::time::SystemTime;

/// A curve directory: `curve.json`, and the results directories of its points.
pub type CurveDir = Directory<LoadCurve>;

impl Directory<LoadCurve> {
    /// Reads the curve, for tables that show these percentiles; with none it is
    /// [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`RunDir::read_with`] of its points.
    pub fn read_with(&self, percentiles: Option<&Percentiles>) -> Result<LoadCurve, ResultsError> {
        let mut curve = self.read()?;
        if let Some(wanted) = percentiles {
            for point in &mut curve.points {
                let dir = self.run(point);
                point.complete(&dir, wanted)?;
            }
            curve.percentiles_shown = Some(wanted.clone());
        }
        Ok(curve)
    }

    /// The results of a point's run.
    #[must_use]
    pub fn run(&self, point: &CurvePoint) -> RunDir {
        self.listed(&point.run)
    }
}

/// A curve directory that is being written.
///
/// `curve.json` is replaced as a whole after every point, so that a process that is killed leaves
/// what it had measured. The directory belongs to one writer at a time.
pub struct CurveWriter(Writer<LoadCurve>);

impl CurveWriter {
    /// Makes a curve directory below `root`, which is made if it is missing, and writes `curve`,
    /// which has no points yet.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn create(
        root: &Path,
        curve: LoadCurve,
        started: SystemTime,
    ) -> Result<Self, ResultsError> {
        let name = format!("{}-curve", curve.workload);
        Ok(Self(Writer::create(root, curve, &name, started)?))
    }

    /// Goes on with the curve in a directory. A point whose run was written although the process
    /// ended before it was listed is listed now.
    ///
    /// # Errors
    /// As [`CurveDir::read`]; [`ResultsError::InUse`] if another process writes to the directory.
    pub fn resume(path: &Path) -> Result<Self, ResultsError> {
        let mut writer = Self(Writer::resume(path)?);
        writer.list_unlisted_runs()?;
        Ok(writer)
    }

    /// Lists runs that are there and not listed.
    fn list_unlisted_runs(&mut self) -> Result<(), ResultsError> {
        while let Some(load) = self.curve().missing().first().copied() {
            let name = self.name_of(load);
            let Ok(run) = self.dir().listed(&name).read() else {
                break;
            };
            let is_it = run.plan.metric.as_ref().is_some_and(|m| m.load == load)
                && run.plan.seed == self.curve().seed
                && run.plan.filesets == self.curve().plan.filesets;
            let ended = matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
            if !(is_it && ended) {
                break;
            }
            self.add(CurvePoint::of(&run, load, &name))?;
        }
        Ok(())
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &CurveDir {
        self.0.dir()
    }

    /// The curve as it was last written.
    #[must_use]
    pub fn curve(&self) -> &LoadCurve {
        self.0.document()
    }

    /// Name of the directory of the point with this load.
    fn name_of(&self, load: u64) -> String {
        let at = self.curve().loads.iter().position(|l| *l == load);
        format!("point-{:02}-load-{load}", at.map_or(0, |i| i + 1))
    }

    /// A writer of the results of the point with this load.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn point(
        &self,
        load: u64,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        let name = self.name_of(load);
        RunWriter::create_as(&name, self.dir().path(), plan, started, clock)
    }

    /// Takes a curve without points away, with its directory: what it was to measure was refused.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn withdraw(self) -> Result<(), ResultsError> {
        self.0.remove_empty()
    }

    /// Adds a point and writes the curve.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn add(&mut self, point: CurvePoint) -> Result<(), ResultsError> {
        self.change(|curve| curve.points.push(point))
    }

    /// Changes the curve, computes its figures, and writes it.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn change(&mut self, change: impl FnOnce(&mut LoadCurve)) -> Result<(), ResultsError> {
        self.0.change(|curve| {
            change(curve);
            curve.compute();
        })
    }
}
