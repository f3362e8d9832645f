//! Figures as PNG: an SVG of this crate, drawn with the fonts of the machine. Must not know which figure it is. Start
//! reading at [`Fonts`].

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Pixels for a unit of a drawing: sharp on a dense screen and in print.
const SCALE: f32 = 2.0;

/// Fonts to write with.
pub struct Fonts {
    database: Arc<fontdb::Database>,
    family: String,
}

/// The machine has no font.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoFonts;

/// Sans-serif fonts with all characters of a report, in the order in which they are tried.
const FAMILIES: [&str; 6] =
    ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Roboto", "Helvetica", "Arial"];

impl Fonts {
    /// Those that are installed.
    ///
    /// # Errors
    /// [`NoFonts`]: a text would be left out without a word.
    pub fn installed() -> Result<Self, NoFonts> {
        let mut database = fontdb::Database::new();
        database.load_system_fonts();
        Self::of(database)
    }

    fn of(mut database: fontdb::Database) -> Result<Self, NoFonts> {
        let families = || database.faces().flat_map(|face| &face.families).map(|(name, _)| name);
        let known = FAMILIES.iter().find(|family| families().any(|name| name == *family));
        let family = known.map(|name| (*name).to_owned()).or_else(|| families().next().cloned());
        let family = family.ok_or(NoFonts)?;
        database.set_sans_serif_family(&family);
        Ok(Self { database: Arc::new(database), family })
    }

    /// A figure as PNG; `None` if it is not an SVG that can be drawn.
    pub fn png(&self, svg: &str) -> Option<Vec<u8>> {
        let options = Options {
            fontdb: Arc::clone(&self.database),
            font_family: self.family.clone(),
            ..Options::default()
        };
        let tree = Tree::from_str(svg, &options).ok()?;
        let size = tree.size().to_int_size().scale_by(SCALE)?;
        let mut pixels = Pixmap::new(size.width(), size.height())?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figure_files, testdata};

    #[test]
    fn without_a_font_nothing_is_drawn() {
        assert!(matches!(Fonts::of(fontdb::Database::new()), Err(NoFonts)));
    }

    #[test]
    fn every_figure_is_drawn_with_its_text() {
        let Ok(fonts) = Fonts::installed() else {
            return skips::note("this machine has no font (fonts-dejavu-core)");
        };
        for file in figure_files(&testdata::run_with(3)) {
            let png = fonts.png(&file.svg).unwrap_or_else(|| panic!("{}", file.name));
            let with_text = Pixmap::decode_png(&png).unwrap();
            // The same without its texts has fewer dark pixels.
            let bare = file.svg.replace("<text ", "<text display=\"none\" ");
            let bare = Pixmap::decode_png(&fonts.png(&bare).unwrap()).unwrap();
            assert_eq!((with_text.width(), with_text.height()), (bare.width(), bare.height()));
            let inked =
                |pixmap: &Pixmap| pixmap.pixels().iter().filter(|pixel| pixel.red() < 120).count();
            let (with, without) = (inked(&with_text), inked(&bare));
            assert!(
                with > without + 500,
                "{}: {with} dark pixels, {without} without text",
                file.name
            );
        }
    }
}
