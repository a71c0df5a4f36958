//! The curve directory.

use super::{CURVE_FILE, CURVE_SCHEMA, CurvePoint, LoadCurve};
use crate::dir::{MadeRoot, name_of, publish};
use crate::document;
use crate::hidden::{Hidden, lock};
use crate::{ClockKind, ResultsError, RunDir, RunWriter, Verdict};
use plimsoll_plan::Plan;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A curve directory: `curve.json`, and the results directories of its points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurveDir {
    path: PathBuf,
}

impl CurveDir {
    /// A curve directory, which need not be whole: reading says what is wrong with it.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a curve in it.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.path.join(CURVE_FILE).is_file()
    }

    /// Reads `curve.json`.
    ///
    /// # Errors
    /// As [`RunDir::read`].
    pub fn read(&self) -> Result<LoadCurve, ResultsError> {
        document::read(&self.path.join(CURVE_FILE), CURVE_SCHEMA, "curve")
    }

    /// The results of a point's run.
    #[must_use]
    pub fn run(&self, point: &CurvePoint) -> RunDir {
        RunDir::at(&self.path.join(&point.run))
    }
}

/// A curve directory that is being written.
///
/// `curve.json` is replaced as a whole after every point, so that a process that is killed leaves
/// what it had measured. The directory belongs to one writer at a time.
pub struct CurveWriter {
    dir: CurveDir,
    curve: LoadCurve,
    /// Holds the lock, which the system lifts when the process ends, however it does.
    _lock: File,
    /// Goes again if the curve is withdrawn.
    _made_root: Option<MadeRoot>,
}

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
        let made_root = MadeRoot::make(root)?;
        let hidden = Hidden::create(root)?;
        document::write_new(&hidden.path().join(CURVE_FILE), &curve.to_json())?;
        let name = name_of(&format!("{}-curve", curve.workload), started);
        let path = publish(hidden.path(), root, &name)?;
        hidden.published(&path);
        let lock = lock(&path)?;
        Ok(Self {
            dir: CurveDir { path },
            curve,
            _lock: lock,
            _made_root: made_root,
        })
    }

    /// Goes on with the curve in a directory. A point whose run was written although the process
    /// ended before it was listed is listed now.
    ///
    /// # Errors
    /// As [`CurveDir::read`]; [`ResultsError::InUse`] if another process writes to the directory.
    pub fn resume(path: &Path) -> Result<Self, ResultsError> {
        let dir = CurveDir::at(path);
        // Before the lock, so that nothing is put into a directory that is no curve's.
        dir.read()?;
        let lock = lock(path)?;
        let curve = dir.read()?;
        let mut writer = Self {
            dir,
            curve,
            _lock: lock,
            _made_root: None,
        };
        writer.adopt()?;
        Ok(writer)
    }

    /// Lists runs that are there and not listed.
    fn adopt(&mut self) -> Result<(), ResultsError> {
        while let Some(load) = self.curve.missing().first().copied() {
            let name = self.name_of(load);
            let Ok(run) = RunDir::at(&self.dir.path.join(&name)).read() else {
                break;
            };
            let is_it = run.plan.metric.as_ref().is_some_and(|m| m.load == load)
                && run.plan.seed == self.curve.seed
                && run.plan.filesets == self.curve.plan.filesets;
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
        &self.dir
    }

    /// The curve as it was last written.
    #[must_use]
    pub fn curve(&self) -> &LoadCurve {
        &self.curve
    }

    /// Name of the directory of the point with this load.
    fn name_of(&self, load: u64) -> String {
        let at = self.curve.loads.iter().position(|l| *l == load);
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
        RunWriter::create_as(&name, &self.dir.path, plan, started, clock)
    }

    /// Takes a curve without points away, with its directory: what it was to measure was refused.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn withdraw(self) -> Result<(), ResultsError> {
        let dir = self.dir.path();
        let file = dir.join(CURVE_FILE);
        std::fs::remove_file(&file).map_err(ResultsError::io("remove", &file))?;
        std::fs::remove_dir(dir).map_err(ResultsError::io("remove", dir))
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
        change(&mut self.curve);
        self.curve.compute();
        document::replace(&self.dir.path.join(CURVE_FILE), &self.curve.to_json())
    }
}
