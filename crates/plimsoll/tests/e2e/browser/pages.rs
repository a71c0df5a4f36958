//! What is asked of a page, in the page's own language.

/// Ticks and points of a series of a chart, in the coordinates of its wide drawing.
pub const POINTS: &str = r##"(id, name) => {
  const figure = document.getElementById(id);
  const svg = figure.querySelector(".wide svg");
  const names = button => (button.title || button.textContent).split(/, | and /);
  const key = [...figure.querySelectorAll(".key button")].find(button => names(button).includes(name));
  const color = key.querySelector("line").getAttribute("stroke");
  const texts = [...svg.querySelectorAll("text")].filter(t => !t.hasAttribute("transform"));
  const ticks = (anchor, at) => texts
    .filter(t => t.getAttribute("text-anchor") === anchor && /^[\d.]+( [a-zµ]+)?$/i.test(t.textContent.trim()))
    .map(t => ({ at: Number(t.getAttribute(at)), label: t.textContent.trim() }));
  const points = [...svg.querySelectorAll(`polyline[stroke="${color}"]`)]
    .flatMap(l => l.getAttribute("points").trim().split(/\s+/))
    .map(p => p.split(",").map(Number));
  return { x: ticks("middle", "x"), y: ticks("end", "y"), points };
}"##;

/// Of each chart over time, where its cross is: a share of the plotting area's width from the left, or nothing.
pub const CROSSES: &str = r##"[...document.querySelectorAll("figure[data-time]")].map(figure => {
  const cross = figure.querySelector(".cross");
  if (cross.hidden) return null;
  const box = [...figure.querySelectorAll(".drawing")].find(d => d.offsetWidth > 0).getBoundingClientRect();
  const area = figure.querySelector(`.drawing:is(.wide, .small)`).dataset.area.split(" ").map(Number);
  return ((cross.getBoundingClientRect().left - box.left) / box.width - area[0]) / (area[2] - area[0]);
})"##;

/// Of each chart over time, the labels of its time axis as numbers.
pub const TIMES: &str = r##"[...document.querySelectorAll("figure[data-time]")].map(figure =>
  [...figure.querySelectorAll(".drawing:is(.wide, .small) text.tick")].map(t => Number(t.textContent)))"##;

/// Of each line of a chart, whether the chart shows the line.
pub const SHOWN: &str = r##"id => [...document.querySelectorAll(`#${id} [data-switch]`)].map(button =>
  [...document.querySelectorAll(`#${id} .wide [data-line="${button.dataset.switch}"]`)]
    .some(e => getComputedStyle(e).display !== "none"))"##;

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
