//! Leaf directories, and listing directories of the tree.

use super::super::core::Subject;
use super::super::{Halt, Worker};
use super::happened;
use crate::store::Kind;
use plimsoll_plan::Value;
use plimsoll_target::Session;

impl<S: Session> Worker<S> {
    pub(super) async fn make_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
    ) -> Result<(), Halt> {
        let number = index.map(|i| self.core.draw(i));
        let dir = self
            .core
            .choose_leaf_dir(row, f, Kind::Absent, number)
            .await?;
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        self.session
            .locate(|path| set.layout.push_leaf_dir(dir, path));
        self.check_parent(row, Subject::leaf_dir(f, dir)).await?;
        let make = self.session.make_dir();
        let done = self
            .core
            .timed(row, Subject::leaf_dir(f, dir), |()| 0, make)
            .await;
        let made = happened(&done);
        if made {
            set.leaf_dirs.changed(Kind::Present);
        }
        set.release_leaf_dir(dir, if made { Kind::Present } else { Kind::Absent });
        done.map(|_| ())
    }

    pub(super) async fn remove_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
    ) -> Result<(), Halt> {
        let number = index.map(|i| self.core.draw(i));
        let dir = self
            .core
            .choose_leaf_dir(row, f, Kind::Present, number)
            .await?;
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        self.session
            .locate(|path| set.layout.push_leaf_dir(dir, path));
        self.check_parent(row, Subject::leaf_dir(f, dir)).await?;
        let remove = self.session.remove_dir();
        let done = self
            .core
            .timed(row, Subject::leaf_dir(f, dir), |()| 0, remove)
            .await;
        let gone = happened(&done);
        if gone {
            set.leaf_dirs.changed(Kind::Absent);
        }
        set.release_leaf_dir(dir, if gone { Kind::Absent } else { Kind::Present });
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
