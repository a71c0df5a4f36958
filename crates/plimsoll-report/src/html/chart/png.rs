//! Charts as bitmaps.

use super::{Chart, Size, Theme, standalone};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::{Arc, LazyLock};

/// Pixels of the bitmap per pixel of the drawing: sharp on a screen of doubled resolution, and on
/// paper up to 16 cm wide.
const SCALE: u32 = 2;

/// The fonts of every picture, whatever fonts the machine has.
static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    Arc::new(fonts)
});

/// Why a chart could not be converted to a bitmap.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The library cannot read the drawing.
    #[error("the drawing cannot be read: {0}")]
    Drawing(#[from] resvg::usvg::Error),
    /// There is not enough memory for a picture of this size.
    #[error("a picture of {0} by {1} pixels is too large")]
    Size(u32, u32),
    /// The picture could not be written.
    #[error("the picture cannot be written: {0}")]
    Encoding(String),
}

/// Draws a chart as a separate PNG file: with a background, its title and a key, and two pixels for
/// each of `size`.
///
/// # Errors
/// The picture is too large for the memory.
pub fn png(chart: &Chart, size: Size, theme: Theme) -> Result<Vec<u8>, PngError> {
    let options = Options {
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let tree = Tree::from_str(&standalone(chart, size, theme), &options)?;
    let (width, height) = (
        size.width.saturating_mul(SCALE),
        size.height.saturating_mul(SCALE),
    );
    let mut pixels = Pixmap::new(width, height).ok_or(PngError::Size(width, height))?;
    let scale = SCALE as f32;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels
        .encode_png()
        .map_err(|e| PngError::Encoding(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::{Axis, ChartOverlay, Column, SeriesStyle, Unit, WIDE};

    fn chart(title: &str) -> Chart {
        Chart {
            id: "c".into(),
            title: title.into(),
            about: String::new(),
            x: Axis::linear("time", Unit::Number),
            y: Axis::linear("operations/s", Unit::Number),
            at: vec![0.0, 1.0, 2.0],
            columns: vec![Column {
                name: "read".into(),
                unit: Unit::Number,
                values: vec![Some(1.0), Some(3.0), Some(2.0)],
                style: Some(SeriesStyle::Series(0)),
            }],
            is_stacked: false,
            extra: ChartOverlay::None,
            marks: vec![],
        }
    }

    fn pixels(title: &str, theme: Theme) -> Pixmap {
        Pixmap::decode_png(&png(&chart(title), WIDE, theme).unwrap()).unwrap()
    }

    #[test]
    fn a_picture_has_twice_the_pixels_of_the_drawing_and_its_colours() {
        for (theme, background, series) in [
            (Theme::Light, [255, 255, 255], [0x1f, 0x6f, 0xb4]),
            (Theme::Dark, [0x14, 0x18, 0x1d], [0x6c, 0xb2, 0xeb]),
        ] {
            let picture = pixels("Operations per second", theme);
            assert_eq!((picture.width(), picture.height()), (1920, 600));
            let is = |p: &resvg::tiny_skia::PremultipliedColorU8, c: [u8; 3]| {
                [p.red(), p.green(), p.blue()] == c && p.alpha() == 255
            };
            let count = |c| picture.pixels().iter().filter(|p| is(p, c)).count();
            assert!(count(background) > picture.pixels().len() * 8 / 10);
            // A line across the picture, at least two pixels thick.
            assert!(count(series) > 1000, "{theme:?}: {}", count(series));
        }
    }

    #[test]
    fn words_are_drawn_with_the_letters_that_come_along() {
        let (with, without) = (pixels("Operations", Theme::Light), pixels("", Theme::Light));
        let differing = with.pixels().iter().zip(without.pixels());
        let differing = differing.filter(|(a, b)| a != b).count();
        assert!(differing > 500, "{differing} pixels of the title");
        let names: Vec<String> = FONTS.faces().map(|f| f.families[0].0.clone()).collect();
        assert_eq!(names, ["DejaVu Sans", "DejaVu Sans"]);
    }
}
