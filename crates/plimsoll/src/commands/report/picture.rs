//! Pictures of charts.

use crate::exit::CommandError;
use plimsoll_report::html::chart::{Chart, Theme, WIDE, png, standalone};

/// Kinds of pictures.
#[derive(Clone, Copy)]
pub enum Picture {
    /// Of any size.
    Svg,
    /// In pixels.
    Png,
}

impl Picture {
    /// The ending of a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If the picture cannot be made.
    pub fn draw(self, chart: &Chart) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Svg => Ok(standalone(chart, WIDE, Theme::Light).into_bytes()),
            Self::Png => png(chart, WIDE, Theme::Light).map_err(CommandError::failed),
        }
    }
}
