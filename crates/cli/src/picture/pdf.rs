//! Pictures as PDF, for papers: lines stay lines, and words become outlines, so that no font is
//! needed to show them.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, TextStr};
use resvg::usvg::tiny_skia_path::{self, PathSegment};
use resvg::usvg::{
    Color, Fill, FillRule, Group, LineCap, LineJoin, Node, Paint, PaintOrder, Path, Stroke,
    Transform, Tree,
};

/// Points (1/72 inch) in a pixel (1/96 inch).
const POINTS: f32 = 0.75;

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const INFO: Ref = Ref::new(5);
/// The first of the opacities.
const OPACITY: i32 = 6;

/// `tree` on a page of its size; an error if it has more than lines, plain colours and words.
pub fn of(tree: &Tree, title: &str) -> Result<Vec<u8>, String> {
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut drawing = Drawing { content: Content::new(), opacities: BTreeSet::new() };
    // Upwards is up.
    drawing.content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    drawing.group(tree.root(), Transform::identity(), 1.0)?;

    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES);
    pdf.pages(PAGES).kids([PAGE]).count(1);
    pdf.document_info(INFO).title(TextStr(title)).producer(TextStr("sweetspot"));
    let states: Vec<(u16, Ref)> =
        drawing.opacities.iter().copied().zip((OPACITY..).map(Ref::new)).collect();
    let mut page = pdf.page(PAGE);
    page.media_box(Rect::new(0.0, 0.0, width, height));
    page.parent(PAGES);
    page.contents(CONTENT);
    let mut resources = page.resources();
    let mut named = resources.ext_g_states();
    for (thousandths, state) in &states {
        named.pair(Name(opacity_name(*thousandths).as_bytes()), *state);
    }
    named.finish();
    resources.finish();
    page.finish();
    for (thousandths, state) in states {
        let opacity = f32::from(thousandths) / 1000.0;
        pdf.ext_graphics(state).stroking_alpha(opacity).non_stroking_alpha(opacity);
    }
    let packed = packed(&drawing.content.finish()).map_err(|error| error.to_string())?;
    pdf.stream(CONTENT, &packed).filter(Filter::FlateDecode);
    Ok(pdf.finish())
}

fn packed(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content)?;
    encoder.finish()
}

fn opacity_name(thousandths: u16) -> String {
    format!("a{thousandths}")
}

/// The page's content while it is written.
struct Drawing {
    content: Content,
    /// Opacities in use, in thousandths.
    opacities: BTreeSet<u16>,
}

impl Drawing {
    /// Overlaps within a translucent group show through; pictures have no such group.
    fn group(&mut self, group: &Group, above: Transform, opacity: f32) -> Result<(), String> {
        if group.clip_path().is_some() || group.mask().is_some() || !group.filters().is_empty() {
            return Err(refusal("clips, masks or filters"));
        }
        let transform = above.pre_concat(group.transform());
        let opacity = opacity * group.opacity().get();
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group, transform, opacity)?,
                Node::Path(path) if path.is_visible() => self.path(path, transform, opacity)?,
                Node::Path(_) => {}
                Node::Text(text) => self.group(text.flattened(), transform, opacity)?,
                Node::Image(_) => return Err(refusal("images")),
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, transform: Transform, opacity: f32) -> Result<(), String> {
        let Transform { sx, ky, kx, sy, tx, ty } = transform;
        self.content.save_state().transform([sx, ky, kx, sy, tx, ty]);
        let mut parts = [path.fill().map(Part::Fill), path.stroke().map(Part::Stroke)];
        if path.paint_order() == PaintOrder::StrokeAndFill {
            parts.reverse();
        }
        for part in parts.into_iter().flatten() {
            match part {
                Part::Fill(fill) => self.fill(path.data(), fill, opacity)?,
                Part::Stroke(stroke) => self.stroke(path.data(), stroke, opacity)?,
            }
        }
        self.content.restore_state();
        Ok(())
    }

    fn fill(
        &mut self,
        path: &tiny_skia_path::Path,
        fill: &Fill,
        opacity: f32,
    ) -> Result<(), String> {
        let [r, g, b] = rgb(fill.paint())?;
        self.opacity(opacity * fill.opacity().get());
        self.content.set_fill_rgb(r, g, b);
        self.outline(path);
        match fill.rule() {
            FillRule::NonZero => self.content.fill_nonzero(),
            FillRule::EvenOdd => self.content.fill_even_odd(),
        };
        Ok(())
    }

    fn stroke(
        &mut self,
        path: &tiny_skia_path::Path,
        stroke: &Stroke,
        opacity: f32,
    ) -> Result<(), String> {
        let [r, g, b] = rgb(stroke.paint())?;
        self.opacity(opacity * stroke.opacity().get());
        self.content
            .set_stroke_rgb(r, g, b)
            .set_line_width(stroke.width().get())
            .set_miter_limit(stroke.miterlimit().get())
            .set_line_cap(match stroke.linecap() {
                LineCap::Butt => LineCapStyle::ButtCap,
                LineCap::Round => LineCapStyle::RoundCap,
                LineCap::Square => LineCapStyle::ProjectingSquareCap,
            })
            .set_line_join(match stroke.linejoin() {
                LineJoin::Miter | LineJoin::MiterClip => LineJoinStyle::MiterJoin,
                LineJoin::Round => LineJoinStyle::RoundJoin,
                LineJoin::Bevel => LineJoinStyle::BevelJoin,
            });
        let dashes = stroke.dasharray().unwrap_or_default();
        self.content.set_dash_pattern(dashes.iter().copied(), stroke.dashoffset());
        self.outline(path);
        self.content.stroke();
        Ok(())
    }

    fn opacity(&mut self, opacity: f32) {
        let thousandths = (opacity * 1000.0).round() as u16;
        self.opacities.insert(thousandths);
        self.content.set_parameters(Name(opacity_name(thousandths).as_bytes()));
    }

    fn outline(&mut self, path: &tiny_skia_path::Path) {
        // PDF has cubic curves only: a quadratic one is a cubic one with its control point at two
        // thirds of the way from either end.
        let mut at = tiny_skia_path::Point::zero();
        for segment in path.segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    self.content.move_to(p.x, p.y);
                    at = p;
                }
                PathSegment::LineTo(p) => {
                    self.content.line_to(p.x, p.y);
                    at = p;
                }
                PathSegment::QuadTo(control, p) => {
                    let toward = |end: f32, control: f32| end + (control - end) * (2.0 / 3.0);
                    let (x1, y1) = (toward(at.x, control.x), toward(at.y, control.y));
                    let (x2, y2) = (toward(p.x, control.x), toward(p.y, control.y));
                    self.content.cubic_to(x1, y1, x2, y2, p.x, p.y);
                    at = p;
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.content.cubic_to(a.x, a.y, b.x, b.y, p.x, p.y);
                    at = p;
                }
                PathSegment::Close => {
                    self.content.close_path();
                }
            }
        }
    }
}

/// The parts of a path to paint.
enum Part<'a> {
    Fill(&'a Fill),
    Stroke(&'a Stroke),
}

fn rgb(paint: &Paint) -> Result<[f32; 3], String> {
    match paint {
        Paint::Color(Color { red, green, blue }) => {
            Ok([red, green, blue].map(|part| f32::from(*part) / 255.0))
        }
        _ => Err(refusal("gradients or patterns")),
    }
}

fn refusal(what: &str) -> String {
    format!("--pdf: the picture has {what}, which are not written as PDF here; use --svg or --png")
}
