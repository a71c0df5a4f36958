//! Leaf directories, and listing directories of the tree.

use super::super::context::OpSubject;
use super::super::{Worker, WorkerExit};
use super::took_effect;
use crate::file_pool::Existence;
use plimsoll_plan::Value;
use plimsoll_target::Session;

impl<S: Session> Worker<S> {
    /// Makes a leaf directory, so that it is `to` be present, or removes one.
    pub(super) async fn change_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
        to: Existence,
    ) -> Result<(), WorkerExit> {
        let from = match to {
            Existence::Existing => Existence::Missing,
            Existence::Missing => Existence::Existing,
        };
        let number = index.map(|i| self.context.draw(i));
        let dir = self.context.choose_leaf_dir(row, f, from, number).await?;
        let shared = self.context.shared.clone();
        let set = &shared.filesets[f as usize];
        self.session
            .locate(|path| set.layout.push_leaf_dir(dir, path));
        self.check_parent(row, OpSubject::leaf_dir(f, dir)).await?;
        let session = &mut self.session;
        let change = async {
            match to {
                Existence::Existing => session.make_dir().await,
                Existence::Missing => session.remove_dir().await,
            }
        };
        let done = self
            .context
            .timed(row, OpSubject::leaf_dir(f, dir), |()| 0, change)
            .await;
        let changed = took_effect(&done);
        if changed {
            set.leaf_dirs.set_existence(to);
        }
        set.release_leaf_dir(dir, if changed { to } else { from });
        done.map(|_| ())
    }

    pub(super) async fn list_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
    ) -> Result<(), WorkerExit> {
        let number = index.map(|i| self.context.draw(i));
        let set = self.context.shared.filesets[f as usize].clone();
        let dir = set.pick_dir(number);
        self.session.locate(|path| set.layout.push_dir(dir, path));
        let list = self.session.list();
        self.context
            .timed(row, OpSubject::dir(f, dir), |l| l.bytes, list)
            .await
            .map(|_| ())
    }
}
