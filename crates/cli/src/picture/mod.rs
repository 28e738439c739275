//! Pictures as PNG and PDF, for programs that cannot read SVG.

mod pdf;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Turns SVG texts into other formats with this machine's fonts.
pub struct Converter {
    options: Options<'static>,
}

impl Converter {
    /// Loads the machine's fonts; an error if there are none, because texts would be missing. `option` is the option that needs
    /// them.
    pub fn new(option: &str) -> Result<Converter, String> {
        let mut options = Options::default();
        options.fontdb_mut().load_system_fonts();
        let first = options.fontdb.faces().next().and_then(|face| face.families.first().cloned());
        let Some((family, _)) = first else {
            return Err(format!(
                "{option}: there are no fonts here for the words in the pictures; install some \
                 (Debian: apt-get install fonts-dejavu-core), or use --svg"
            ));
        };
        // The rest of a list of names, none of them installed.
        options.font_family = family;
        Ok(Converter { options })
    }

    fn tree(&self, svg: &str) -> Result<Tree, String> {
        Tree::from_str(svg, &self.options).map_err(|error| error.to_string())
    }

    /// `svg` as PNG, as large as it says itself.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>, String> {
        let tree = self.tree(svg)?;
        let size = tree.size().to_int_size();
        let mut pixels = Pixmap::new(size.width(), size.height())
            .ok_or_else(|| "the picture has no size".to_owned())?;
        resvg::render(&tree, Transform::default(), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }

    /// `svg` as a PDF of one page, as large as it says itself.
    pub fn pdf(&self, svg: &str, title: &str) -> Result<Vec<u8>, String> {
        pdf::of(&self.tree(svg)?, title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A blue picture of 3 x 2 pixels; `None` where there are no fonts.
    fn converter() -> Option<Converter> {
        Converter::new("--png").map_err(|why| err!("skipped: {why}")).ok()
    }

    const BLUE: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="3" height="2"><rect width="3" height="2" fill="#0072b2"/></svg>"##;

    #[test]
    fn a_picture_becomes_as_many_pixels_as_it_says() -> Result<(), String> {
        let Some(converter) = converter() else { return Ok(()) };
        let png = converter.png(BLUE)?;
        // The signature, then the chunk IHDR with width and height, big-endian.
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&png[16..24], [0, 0, 0, 3, 0, 0, 0, 2]);
        Ok(())
    }

    #[test]
    fn a_page_has_the_size_of_the_picture_and_its_lines() -> Result<(), String> {
        let Some(converter) = converter() else { return Ok(()) };
        let pdf = converter.pdf(BLUE, "Blue")?;
        assert!(pdf.starts_with(b"%PDF-") && pdf.ends_with(b"%%EOF"));
        let text = String::from_utf8_lossy(&pdf);
        // 3 x 2 pixels of 1/96 inch, in points of 1/72.
        assert!(text.contains("/MediaBox [0 0 2.25 1.5]"), "{text}");
        assert!(text.contains("(Blue)"), "{text}");
        Ok(())
    }

    #[test]
    fn what_a_page_cannot_hold_is_refused() {
        let Some(converter) = converter() else { return };
        let gradient = r##"<svg xmlns="http://www.w3.org/2000/svg" width="3" height="2"><linearGradient id="a"><stop stop-color="#000"/><stop offset="1" stop-color="#fff"/></linearGradient><rect width="3" height="2" fill="url(#a)"/></svg>"##;
        let refused = converter.pdf(gradient, "").expect_err("it is no plain colour");
        assert!(refused.contains("--svg"), "{refused}");
    }
}
