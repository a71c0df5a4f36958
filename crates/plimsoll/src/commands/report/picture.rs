//! Chart images.

use crate::exit::CommandError;
use plimsoll_report::html::chart::{Chart, Theme, WIDE, png, standalone};

/// Image formats.
#[derive(Clone, Copy)]
pub enum Picture {
    /// Scalable.
    Svg,
    /// Raster.
    Png,
}

impl Picture {
    /// File name ending.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }

    /// Encodes a chart as an image file.
    ///
    /// # Errors
    /// If the image cannot be encoded.
    pub fn draw(self, chart: &Chart) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Svg => Ok(standalone(chart, WIDE, Theme::Light).into_bytes()),
            Self::Png => png(chart, WIDE, Theme::Light).map_err(CommandError::failed),
        }
    }
}
