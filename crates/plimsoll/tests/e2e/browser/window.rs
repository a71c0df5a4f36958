//! A browser with one page.

use super::pages;
use crate::common::PATIENCE;
use headless_chrome::protocol::cdp::{Emulation, Input, Page, Runtime};
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names that Chromium goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The rules of accessibility, as a script for pages.
const AXE: &str = include_str!("assets/axe-core-4.14.1.min.js");

/// Collects what a page complains of, from its first line on.
const LISTEN: &str = "window.complaints = [];
addEventListener('error', e => complaints.push(String(e.message)));
addEventListener('securitypolicyviolation', e => complaints.push(`policy: ${e.violatedDirective}`));";

/// What a person prefers.
#[derive(Debug, Clone, Copy)]
pub enum Theme {
    Light,
    Dark,
}

/// A page in a browser of its own, which ends with it.
pub struct Window {
    tab: Arc<Tab>,
    _browser: Browser,
}

fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).flat_map(|d| NAMES.map(|n| d.join(n)));
    found.find(|p| p.is_file()).unwrap_or_else(|| {
        panic!("Chromium is needed to look at pages: `make setup` or `apt-get install chromium`")
    })
}

impl Window {
    pub fn open(page: &Path) -> Self {
        Self::at(&format!("file://{}", page.display()))
    }

    pub fn at(url: &str) -> Self {
        let options = LaunchOptions {
            path: Some(chromium()),
            // Containers have no user namespaces to make a sandbox of.
            sandbox: false,
            idle_browser_timeout: Duration::from_secs(120),
            ..LaunchOptions::default()
        };
        let browser = Browser::new(options).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(60));
        tab.call_method(Page::AddScriptToEvaluateOnNewDocument {
            source: LISTEN.into(),
            world_name: None,
            include_command_line_api: None,
            run_immediately: None,
        })
        .unwrap();
        let window = Self {
            tab,
            _browser: browser,
        };
        window.go(url);
        window
    }

    /// Opens another page in the same window.
    pub fn go(&self, url: &str) {
        self.tab
            .navigate_to(url)
            .unwrap()
            .wait_until_navigated()
            .unwrap();
    }

    /// Clicks what a selector finds, after which another page is shown.
    #[track_caller]
    pub fn follow(&self, selector: &str) {
        let before = self.json("window.page = performance.timeOrigin");
        self.json(&format!("document.querySelector({selector:?}).click()"));
        self.until(&format!(
            "document.readyState === 'complete' && performance.timeOrigin !== {before}"
        ));
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&self, expression: &str) {
        let begun = Instant::now();
        while self.json(&format!("Boolean({expression})")) != true {
            if begun.elapsed() > PATIENCE {
                let text = self.json("document.body.innerText");
                panic!("still not: {expression}; the page says {text}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn size(&self, width: u32, height: u32) {
        let method = serde_json::json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        let method: Emulation::SetDeviceMetricsOverride = serde_json::from_value(method).unwrap();
        self.tab.call_method(method).unwrap();
    }

    pub fn theme(&self, theme: Theme) {
        let value = format!("{theme:?}").to_lowercase();
        let feature = serde_json::json!({
            "features": [{ "name": "prefers-color-scheme", "value": value }],
        });
        let method: Emulation::SetEmulatedMedia = serde_json::from_value(feature).unwrap();
        self.tab.call_method(method).unwrap();
    }

    /// Value of an expression of the page.
    #[track_caller]
    pub fn json(&self, expression: &str) -> Value {
        let method = serde_json::json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let method: Runtime::Evaluate = serde_json::from_value(method).unwrap();
        let done = self.tab.call_method(method).unwrap();
        if let Some(thrown) = done.exception_details {
            let what = thrown.exception.and_then(|e| e.description);
            panic!("{}", what.unwrap_or(thrown.text));
        }
        done.result.value.unwrap_or(Value::Null)
    }

    /// Place in the window of an element, a share of its chart's width from the left; scrolls to the element.
    fn place(&self, selector: &str, share: f64) -> Value {
        self.json(&format!(
            "(() => {{
               const e = document.querySelector({selector:?});
               e.scrollIntoView({{ block: 'center', behavior: 'instant' }});
               const drawing = [...e.querySelectorAll('.drawing')].find(d => d.offsetWidth > 0);
               const box = (drawing || e).getBoundingClientRect();
               const [left, , right] = drawing ? drawing.dataset.area.split(' ').map(Number) : [0, 0, 1];
               return [box.left + box.width * (left + {share} * (right - left)), box.top + box.height / 2];
             }})()"
        ))
    }

    fn mouse(&self, kind: &str, place: &Value, clicks: u32) {
        let button = if clicks > 0 { "left" } else { "none" };
        let event = serde_json::json!({
            "type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": clicks,
        });
        let method: Input::DispatchMouseEvent = serde_json::from_value(event).unwrap();
        self.tab.call_method(method).unwrap();
    }

    /// Drags the pointer from one share of a chart's width to another.
    pub fn drag(&self, selector: &str, from: f64, to: f64) {
        let [from, to] = [from, to].map(|share| self.place(selector, share));
        self.mouse("mouseMoved", &from, 0);
        self.mouse("mousePressed", &from, 1);
        self.mouse("mouseMoved", &to, 1);
        self.mouse("mouseReleased", &to, 1);
    }

    /// Double-clicks a chart.
    pub fn double_click(&self, selector: &str) {
        let place = self.place(selector, 0.5);
        for clicks in [1, 2] {
            self.mouse("mousePressed", &place, clicks);
            self.mouse("mouseReleased", &place, clicks);
        }
    }

    /// Moves the pointer over an element, a share of its chart's width from the left; returns
    /// what is shown then, line by line.
    pub fn hover(&self, selector: &str, share: f64) -> String {
        let place = self.place(selector, share);
        self.mouse("mouseMoved", &place, 0);
        let shown = self.json(
            "[...document.querySelectorAll('.values:not([hidden]) div')].map(d => d.textContent).join('\\n')",
        );
        shown.as_str().unwrap_or_default().to_owned()
    }

    /// Serious complaints of axe-core.
    pub fn axe(&self) -> Value {
        if self.json("typeof axe") == "undefined" {
            self.json(&format!("{AXE}; 0"));
        }
        self.json(pages::AXE)
    }

    /// What the page complained of since it was opened.
    pub fn complaints(&self) -> Vec<String> {
        serde_json::from_value(self.json("window.complaints")).unwrap()
    }

    /// Puts a picture of what the window shows beside the test programs, for a person to look at.
    pub fn picture(&self, name: &str) {
        self.json("scrollTo(0, 0)");
        let format = Page::CaptureScreenshotFormatOption::Png;
        let png = self
            .tab
            .capture_screenshot(format, None, None, true)
            .unwrap();
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("{name}.png")), png).unwrap();
    }
}
