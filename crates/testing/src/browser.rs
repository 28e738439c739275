//! A real browser, controlled through a pipe (the Chrome DevTools Protocol).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A headless Chromium with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_id: u64,
    session: Option<String>,
    /// Errors that the page reported.
    pub errors: Vec<String>,
    _profile: tempfile::TempDir,
}

/// Commands and replies pass through file descriptors 3 and 4.
const START: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

impl Browser {
    /// Starts a browser; `None` if none is installed.
    pub fn start() -> Result<Option<Browser>> {
        let has = |name: &&str| {
            let version = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            version.is_ok_and(|output| output.status.success())
        };
        let Some(name) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(has)
        else {
            return Ok(None);
        };
        let profile = tempfile::tempdir()?;
        let mut child = Command::new("sh")
            .args(["-c", START, "sh", name, "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().ok_or("no pipe")?;
        let from = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut browser = Browser {
            child,
            to,
            from,
            last_id: 0,
            session: None,
            errors: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}))?;
        }
        Ok(Some(browser))
    }

    /// Sends one command and returns its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes())?;
        self.to.write_all(&[0])?;
        self.to.flush()?;
        loop {
            let mut message = Vec::new();
            if self.from.read_until(0, &mut message)? == 0 {
                return Err("the browser has ended".into());
            }
            message.pop();
            let message: Value = serde_json::from_slice(&message)?;
            if let Some("Runtime.exceptionThrown" | "Log.entryAdded") = message["method"].as_str() {
                self.errors.push(message["params"].to_string());
            }
            if message["id"] == json!(self.last_id) {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// The value of an expression in the page, once it exists.
    pub fn value(&mut self, expression: &str) -> Result<Value> {
        let query =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answered = self.call("Runtime.evaluate", query)?;
        match answered.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}").into()),
            None => Ok(answered["result"]["value"].clone()),
        }
    }

    /// Opens an address and waits until everything requested on the page is drawn.
    pub fn open(&mut self, address: &str) -> Result<()> {
        self.call("Page.navigate", json!({ "url": address }))?;
        self.settle()
    }

    /// Waits until everything requested on the page is drawn.
    pub fn settle(&mut self) -> Result<()> {
        self.until("document.body?.dataset.settled")
    }

    /// Waits until an expression is true, for at most five minutes, longer than any machine needs.
    pub fn until(&mut self, expression: &str) -> Result<()> {
        let wait = format!(
            "new Promise((done, fail) => {{ const end = Date.now() + 300000; \
             const look = () => {expression} ? done(true) \
             : Date.now() > end ? fail(new Error('five minutes have passed')) : setTimeout(look, 20); \
             look(); }})"
        );
        self.value(&wait).map(|_| ())
    }

    /// Presses the mouse button at one point, moves to another and releases it.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        for (kind, (x, y)) in [("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Emulates a screen of this width, light or dark.
    pub fn screen(&mut self, width: u32, dark: bool) -> Result<()> {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] })).map(|_| ())
    }

    /// Opens a file and waits until its layout is complete.
    pub fn open_file(&mut self, path: &Path) -> Result<()> {
        let address = format!("file://{}", path.display());
        self.call("Page.navigate", json!({ "url": address }))?;
        let here = format!("document.readyState === 'complete' && location.href === '{address}'");
        self.until(&here)
    }

    /// Chooses a file in the page's file field `selector`, as its user would.
    pub fn choose_file(&mut self, selector: &str, path: &Path) -> Result<()> {
        let document = self.call("DOM.getDocument", json!({}))?;
        let query = json!({ "nodeId": document["root"]["nodeId"], "selector": selector });
        let field = self.call("DOM.querySelector", query)?;
        let chosen = json!({ "nodeId": field["nodeId"], "files": [path] });
        self.call("DOM.setFileInputFiles", chosen).map(|_| ())
    }

    /// The width of the page, in CSS pixels; larger than the screen if the page scrolls sideways.
    pub fn width(&mut self) -> Result<u64> {
        let width = self.value("document.documentElement.scrollWidth")?;
        width.as_u64().ok_or_else(|| "the page has no width".into())
    }

    /// The texts with less contrast than WCAG level AA requires, each with its ratio.
    pub fn low_contrast(&mut self) -> Result<Vec<String>> {
        self.list(&format!("(() => {{ {COLOURS} {LOW_CONTRAST} }})()"))
    }

    /// The parts of pictures and the edges of controls with too little contrast, each with its ratio.
    pub fn low_graphics(&mut self) -> Result<Vec<String>> {
        self.list(&format!("(() => {{ {COLOURS} {LOW_GRAPHICS} }})()"))
    }

    /// The texts of one picture that overlap one another or extend beyond it.
    pub fn collisions(&mut self) -> Result<Vec<String>> {
        self.list(COLLISIONS)
    }

    /// Faults of a page on a phone and on a wide screen, light and dark: horizontal scrolling, poor contrast, overlapping
    /// texts, and, on the phone, small texts.
    pub fn faults(&mut self, page: &Path) -> Result<Vec<String>> {
        self.faults_after(page, |_| Ok(()))
    }

    /// The faults of a page after running `act` on it.
    pub fn faults_after(
        &mut self,
        page: &Path,
        act: impl Fn(&mut Browser) -> Result<()>,
    ) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for width in [PHONE, 1200] {
            for dark in [false, true] {
                self.screen(width, dark)?;
                self.open_file(page)?;
                act(self)?;
                let wide = self.width()?;
                let mut found = self.low_contrast()?;
                found.extend(self.low_graphics()?);
                found.extend(self.collisions()?);
                if width == PHONE {
                    found.extend(self.list(SMALL_TEXTS)?);
                }
                if wide > width.into() {
                    found.push(format!("it is {wide} wide"));
                }
                let shade = if dark { "dark" } else { "light" };
                let name = page.display();
                all.extend(found.iter().map(|f| format!("{name}, {width} px, {shade}: {f}")));
            }
        }
        Ok(all)
    }

    fn list(&mut self, expression: &str) -> Result<Vec<String>> {
        let found = self.value(expression)?;
        Ok(found.as_array().into_iter().flatten().map(ToString::to_string).collect())
    }
}

/// Width of a phone's screen, pixels.
const PHONE: u32 = 390;

/// Texts in a picture shrink with it. Subscripts are smaller than their text by design.
const SMALL_TEXTS: &str = "
  [...document.querySelectorAll('svg text')].filter(t => t.checkVisibility() && t.textContent.trim()).map(t => {
    const px = parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a;
    return px < 10.49 ? `small: ${t.textContent.trim()}: ${px.toFixed(2)} px` : '';
  }).filter(Boolean)";

/// WCAG 2.2: contrast is (L1 + 0.05) / (L2 + 0.05), with the relative luminances L1 > L2.
const COLOURS: &str = "
  const rgba = colour => {
    const n = (colour.match(/[\\d.]+/g) ?? []).map(Number);
    return n.length < 3 ? [0, 0, 0, 0] : n.length < 4 ? [...n, 1] : n;
  };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const ground = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, above) => over(above, below), [255, 255, 255, 1]);
  };
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const contrast = (ink, behind) => {
    const [high, low] = [luminance(over(ink, behind)), luminance(behind)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const opacity = element => element ? parseFloat(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
  const wrong = new Set();";

/// Level AA requires 4.5 for text, and 3 for large text (24 px, or 18.66 px and bold).
const LOW_CONTRAST: &str = "
  for (const element of document.body.querySelectorAll('*')) {
    const words = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join(' ').trim();
    if (!words || !element.checkVisibility() || element.closest('style, script, option') || element.disabled) continue;
    const style = getComputedStyle(element);
    const svg = element instanceof SVGElement;
    const ink = rgba(svg ? style.fill : style.color);
    ink[3] *= opacity(element);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
    const ratio = contrast(ink, ground(element));
    if (ratio < needed) wrong.add(`${ratio.toFixed(2)} of ${needed}: ${words.slice(0, 40)}`);
  }
  return [...wrong];";

/// Success criterion 1.4.11 requires 3 for parts needed to understand a picture or to find a control. This excludes
/// paper, grids, frames and shaded areas (their limits are also written out). Either the edge or the fill of a mark must
/// stand out.
const LOW_GRAPHICS: &str = "
  const quiet = '.paper, .grid, .frame, .tick, .band, .area, .cursor, .quantiles, defs *, clipPath *';
  const shapes = 'path, line, circle, rect, ellipse, polyline, polygon';
  for (const shape of document.body.querySelectorAll(shapes)) {
    if (shape.matches(quiet) || !shape.checkVisibility()) continue;
    const style = getComputedStyle(shape);
    const paper = shape.ownerSVGElement.querySelector('.paper');
    const behind = paper ? rgba(getComputedStyle(paper).fill) : ground(shape);
    const seen = [];
    for (const [paint, share, there] of [
      [style.stroke, style.strokeOpacity, parseFloat(style.strokeWidth) > 0],
      [style.fill, style.fillOpacity, shape.tagName !== 'line'],
    ]) {
      if (!there || paint === 'none') continue;
      const ink = rgba(paint);
      ink[3] *= opacity(shape) * share;
      seen.push(contrast(ink, behind));
    }
    const most = Math.max(...seen);
    if (seen.length && most > 1 && most < 3) wrong.add(`${most.toFixed(2)} of 3: ${shape.tagName}.${shape.getAttribute('class')}`);
  }
  for (const control of document.body.querySelectorAll('input:not([type=range]), select, button')) {
    if (!control.checkVisibility() || control.disabled) continue;
    const ratio = contrast(rgba(getComputedStyle(control).borderTopColor), ground(control.parentElement));
    if (ratio < 3) wrong.add(`${ratio.toFixed(2)} of 3: ${control.tagName} ${control.id || control.className}`);
  }
  return [...wrong];";

/// For visible texts in one picture, by their bounding boxes, which include some space above and below the letters.
const COLLISIONS: &str = "(() => {
  const wrong = new Set();
  for (const svg of document.body.querySelectorAll('svg')) {
    if (!svg.checkVisibility()) continue;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter(t => t.checkVisibility() && t.textContent.trim());
    const boxes = texts.map(text => {
      const { left, right, top, bottom } = text.getBoundingClientRect();
      const air = (bottom - top) * 0.2;
      return { words: text.textContent.trim(), left, right, top: top + air, bottom: bottom - air };
    });
    for (const [i, a] of boxes.entries()) {
      if (a.left < frame.left - 1 || a.right > frame.right + 1) wrong.add(`outside: ${a.words}`);
      for (const b of boxes.slice(i + 1)) {
        const apart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top || b.bottom <= a.top;
        if (!apart) wrong.add(`${a.words} | ${b.words}`);
      }
    }
  }
  return [...wrong];
})()";

impl Drop for Browser {
    fn drop(&mut self) {
        // Helper processes of a killed browser may still write to the profile, which would then be left behind.
        self.session = None;
        if self.call("Browser.close", json!({})).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
