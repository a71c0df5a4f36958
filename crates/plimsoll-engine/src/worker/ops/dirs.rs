//! Leaf directories, and lists of the directories of the tree.

use super::took_effect;
use crate::file_pool::Existence;
use crate::worker::context::OpSubject;
use crate::worker::{Worker, WorkerExit};
use plimsoll_plan::Value;
use plimsoll_target::{FilesetEntry, Session};

impl<S: Session> Worker<S> {
    /// Creates (`to` is `Existing`) or removes (`to` is `Missing`) a leaf directory.
    pub(super) async fn change_dir(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
        to: Existence,
    ) -> Result<(), WorkerExit> {
        let from = to.other();
        let number = index.map(|i| self.context.draw(i));
        let dir = self.context.choose_leaf_dir(row, f, from, number).await?;
        let shared = self.context.shared.clone();
        let set = &shared.filesets[f as usize];
        set.locate_entry(FilesetEntry::LeafDir(dir), &mut self.session);
        let subject = OpSubject::leaf_dir(f, dir);
        let done = match self.check_parent(row, subject).await {
            Ok(()) => {
                let session = &mut self.session;
                let change = async {
                    match to {
                        Existence::Existing => session.make_dir().await,
                        Existence::Missing => session.remove_dir().await,
                    }
                };
                self.context.timed(row, subject, |()| 0, change).await
            }
            Err(exit) => Err(exit),
        };
        let changed = took_effect(&done);
        if changed {
            set.leaf_dirs.set_existence(to);
        }
        set.leaf_dirs.release(dir, if changed { to } else { from });
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
        set.locate_entry(FilesetEntry::Dir(dir), &mut self.session);
        let list = self.session.list();
        self.context
            .timed(row, OpSubject::dir(f, dir), |l| l.bytes, list)
            .await?;
        Ok(())
    }
}
