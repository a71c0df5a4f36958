//! Bytes that are written.

use crate::compose::Composer;
use crate::content::ContentPool;
use crate::error::OpError;

/// Where the bytes of writes come from.
pub(crate) struct Source {
    content: ContentPool,
    composer: Option<Composer>,
    step: usize,
}

impl Source {
    pub(crate) fn new(content: &ContentPool, number: u64) -> Result<Self, OpError> {
        Ok(Self {
            composer: match content.is_composed() {
                true => Some(Composer::new(content, number)?),
                false => None,
            },
            content: content.clone(),
            step: number as usize * 61,
        })
    }

    /// Makes the bytes of the next write, if they have to be made.
    pub(crate) fn compose(&mut self, len: u64) -> Result<(), OpError> {
        if let Some(composer) = &mut self.composer {
            let len = len.min(self.content.longest() as u64) as usize;
            composer.make(&self.content, len)?;
        }
        Ok(())
    }

    /// The next bytes, at most so many.
    pub(crate) fn next(&mut self, most: u64) -> Result<&[u8], OpError> {
        let want = most.min(self.content.longest() as u64) as usize;
        let step = self.step;
        self.step = step.wrapping_add(ContentPool::steps(want));
        Ok(match &mut self.composer {
            None => self.content.piece(step, want),
            Some(composer) => composer.take(&self.content, want)?,
        })
    }
}
