//! The styles of pictures, in plain colours: programs that rasterise SVG often support neither
//! custom properties nor media queries.

use crate::colour;
use crate::theme::Theme;

/// Colours of background, text, muted text, grid, edge and band.
const LIGHT: [&str; 6] = ["#ffffff", "#1c1c1a", "#5f5f5a", "#e4e4df", "#cfcfc8", "#0072b2"];
const DARK: [&str; 6] = ["#16171a", "#ecece8", "#a2a29c", "#2e3036", "#41444b", "#4a9fd8"];

fn rules(tones: [&str; 6], dark: bool) -> String {
    let [paper, ink, muted, grid, edge, band] = tones;
    let mut css = format!(
        ".paper{{fill:{paper}}}\
         .chart text{{fill:{ink};font-size:11px}}\
         .chart .num{{fill:{muted};font-size:10.5px}}\
         .chart .title{{font-weight:600}}\
         .chart .outside{{fill:{muted};font-size:10px}}\
         .chart .named{{fill:{muted};font-size:10px;paint-order:stroke;stroke:{paper};stroke-width:3px}}\
         .chart .frame{{fill:none;stroke:{edge}}}\
         .chart .grid{{fill:none;stroke:{grid}}}\
         .chart .tick{{fill:none;stroke:{edge}}}\
         .chart .band{{fill:{band};opacity:.2}}\
         .chart .line{{fill:none;stroke-width:1.6;stroke-linejoin:round}}\
         .chart .theory{{stroke-dasharray:5 3;stroke-width:1.3}}\
         .chart .lab{{stroke-dasharray:1.5 2.5;stroke-width:2.2}}\
         .chart .dot{{stroke:none}}\
         .chart .whisker{{fill:none;stroke-width:1}}\
         .chart .dot.ns2,.chart .dot.theory{{fill:none;stroke-width:1.1;stroke-dasharray:none}}\
         .chart .dot.sim.ink,.chart .dot.lab.ink{{fill:{ink};stroke:none}}\
         .chart .leader{{fill:none;stroke-width:1}}\
         .chart .box{{fill:none;stroke-width:1.4}}\
         .chart .median{{fill:none;stroke-width:2.6}}\
         .chart .level{{fill:none;stroke-width:1;stroke-dasharray:8 3 2 3}}\
         .chart .moment{{fill:none;stroke-width:1.2}}\
         .chart .mark{{fill:{paper};stroke-width:1.6}}\
         .chart .ink{{stroke:{ink}}}"
    );
    for (i, tone) in colour::tones(dark).enumerate() {
        css += &format!(
            ".chart .line.c{i},.chart .whisker.c{i},.chart .level.c{i},.chart .mark.c{i},.chart .moment.c{i},.chart .box.c{i},.chart .leader.c{i},.chart .median.c{i},.chart .dot.ns2.c{i},.chart .dot.theory.c{i}{{stroke:{tone}}}\
             .chart .dot.sim.c{i},.chart .dot.lab.c{i}{{fill:{tone}}}"
        );
    }
    // Sweetspot's own variant stands out: the boldest line, in the strongest colour.
    css += &format!(
        ".chart .line.own,.chart .whisker.own,.chart .moment.own,.chart .leader.own,.chart .dot.ns2.own{{stroke:{ink}}}\
         .chart .line.own{{stroke-width:2.8}}.chart .dot.sim.own,.chart .dot.lab.own{{fill:{ink}}}"
    );
    css
}

const FONT: &str = "text{font-family:system-ui,\"Segoe UI\",Roboto,\"Liberation Sans\",\"DejaVu Sans\",sans-serif}";

/// Styles for a page with pictures.
pub fn page_style(theme: Theme) -> String {
    if theme == Theme::Print {
        return rules(LIGHT, false);
    }
    format!("{}@media(prefers-color-scheme:dark){{{}}}", rules(LIGHT, false), rules(DARK, true))
}

/// Styles for a picture in its own file.
pub fn file_style(theme: Theme) -> String {
    format!("{FONT}{}", page_style(theme))
}
