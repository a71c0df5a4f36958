//! Leaf directories, and listing directories of the tree.

use super::super::core::Subject;
use super::super::{Halt, Worker};
use super::happened;
use crate::store::Kind;
use plimsoll_plan::Value;
use plimsoll_target::Session;

impl<S: Session> Worker<S> {
    /// Makes a leaf directory, so that it is `to` be present, or removes one.
    pub(super) async fn change_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
        to: Kind,
    ) -> Result<(), Halt> {
        let from = match to {
            Kind::Present => Kind::Absent,
            Kind::Absent => Kind::Present,
        };
        let number = index.map(|i| self.core.draw(i));
        let dir = self.core.choose_leaf_dir(row, f, from, number).await?;
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        self.session
            .locate(|path| set.layout.push_leaf_dir(dir, path));
        self.check_parent(row, Subject::leaf_dir(f, dir)).await?;
        let session = &mut self.session;
        let change = async {
            match to {
                Kind::Present => session.make_dir().await,
                Kind::Absent => session.remove_dir().await,
            }
        };
        let done = self
            .core
            .timed(row, Subject::leaf_dir(f, dir), |()| 0, change)
            .await;
        let changed = happened(&done);
        if changed {
            set.leaf_dirs.changed(to);
        }
        set.release_leaf_dir(dir, if changed { to } else { from });
        done.map(|_| ())
    }

    pub(super) async fn list_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
    ) -> Result<(), Halt> {
        let number = index.map(|i| self.core.draw(i));
        let set = self.core.shared.filesets[f as usize].clone();
        let dir = set.pick_dir(number);
        self.session.locate(|path| set.layout.push_dir(dir, path));
        let list = self.session.list();
        self.core
            .timed(row, Subject::dir(f, dir), |l| l.bytes, list)
            .await
            .map(|_| ())
    }
}
