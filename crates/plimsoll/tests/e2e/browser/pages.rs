//! What is asked of a page, in the page's own language.

/// Ticks and points of a series of a chart, in the coordinates of its wide drawing.
pub const POINTS: &str = r##"(id, name) => {
  const figure = document.getElementById(id);
  const svg = figure.querySelector(".wide svg");
  const key = [...figure.querySelectorAll(".key li")].find(li => li.textContent === name);
  const color = key.querySelector(".swatch").style.background.match(/var\([^)]*\)/)[0];
  const texts = [...svg.querySelectorAll("text")].filter(t => !t.hasAttribute("transform"));
  const ticks = (anchor, at) => texts
    .filter(t => t.getAttribute("text-anchor") === anchor && /^[\d.]+( [a-zµ]+)?$/i.test(t.textContent.trim()))
    .map(t => ({ at: Number(t.getAttribute(at)), label: t.textContent.trim() }));
  const points = [...svg.querySelectorAll(`polyline[stroke="${color}"]`)]
    .flatMap(l => l.getAttribute("points").trim().split(/\s+/))
    .map(p => p.split(",").map(Number));
  return { x: ticks("middle", "x"), y: ticks("end", "y"), points };
}"##;

/// Heads and cells of a chart's table.
pub const TABLE: &str = r##"id => {
  const table = document.getElementById(id).querySelector("table");
  const texts = cells => [...cells].map(c => c.textContent);
  return {
    heads: texts(table.querySelectorAll("thead th")),
    rows: [...table.querySelectorAll("tbody tr")].map(r => texts(r.cells)),
  };
}"##;

/// Of each chart, how many drawings are shown, and how high its letters are on the screen.
pub const DRAWINGS: &str = r##"[...document.querySelectorAll("figure.chart")].map(f => {
  const shown = [...f.querySelectorAll(".drawing")].filter(d => d.offsetWidth > 0);
  const svg = shown[0].querySelector("svg");
  const units = svg.viewBox.baseVal.width;
  const size = Number(svg.querySelector("text").getAttribute("font-size"));
  return { id: f.id, shown: shown.length, letters: size * shown[0].offsetWidth / units };
})"##;

/// The serious complaints of axe-core, which the page has been given before.
pub const AXE: &str = r##"axe.run(document, { resultTypes: ["violations"] }).then(r => r.violations
  .filter(v => v.impact === "serious" || v.impact === "critical")
  .map(v => `${v.id}: ${v.nodes.map(n => n.target.join(" ")).slice(0, 3).join("; ")}`))"##;
