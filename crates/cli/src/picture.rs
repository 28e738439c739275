//! Converts pictures to PNG, for programs that cannot read SVG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Converts SVG to PNG with this machine's fonts.
pub struct Converter {
    options: Options<'static>,
}

impl Converter {
    /// Loads the machine's fonts. Without any, it fails, because pictures would lack their text.
    pub fn new() -> Result<Converter, String> {
        let mut options = Options::default();
        options.fontdb_mut().load_system_fonts();
        let first = options.fontdb.faces().next().and_then(|face| face.families.first().cloned());
        let Some((family, _)) = first else {
            return Err(
                "--png: this host has no fonts for the text in the pictures; install some \
                        (Debian: apt-get install fonts-dejavu-core), or use --svg"
                    .into(),
            );
        };
        // The font that replaces a list of fonts if none of them is installed.
        options.font_family = family;
        Ok(Converter { options })
    }

    /// `svg` as PNG, in the size given by the SVG.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>, String> {
        let tree = Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        let size = tree.size().to_int_size();
        let mut pixels = Pixmap::new(size.width(), size.height())
            .ok_or_else(|| "the picture has no size".to_owned())?;
        resvg::render(&tree, Transform::default(), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A converter, or `None` if the machine has no fonts.
    fn converter() -> Option<Converter> {
        Converter::new().map_err(|why| err!("skipped: {why}")).ok()
    }

    const BLUE: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="3" height="2"><rect width="3" height="2" fill="#0072b2"/></svg>"##;

    #[test]
    fn a_png_has_the_size_of_its_svg() -> Result<(), String> {
        let Some(converter) = converter() else { return Ok(()) };
        let png = converter.png(BLUE)?;
        // The signature, then the chunk IHDR with width and height, big-endian.
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&png[16..24], [0, 0, 0, 3, 0, 0, 0, 2]);
        Ok(())
    }
}
