// Charts answer the pointer: values of the nearest point, one cross in all charts of the same time, a zoom of these
// charts, and lines switched off and on. Handlers are on the document, because the page of a run in progress replaces
// its charts; the event `plimsoll:drawn` then restores what the reader has chosen.
"use strict";
(() => {
  const off = new Set(); // Lines that are switched off: id of the chart and label of the line.
  const zooms = new Map(); // Shown part of the time axis, as shares, by the id of the charts' container.
  let drag = null;

  const area = drawing => drawing.dataset.area.split(" ").map(Number);
  const all = (selector, of = document) => [...of.querySelectorAll(selector)];
  const home = figure => figure.closest("article, #figures")?.id ?? "";
  // Charts that share the time axis with a chart, or the chart alone.
  const peers = figure => figure.dataset.time === undefined ? [figure]
    : all("figure[data-time]").filter(f => home(f) === home(figure));
  const zoom = figure => figure.dataset.time !== undefined && zooms.get(home(figure)) || [0, 1];
  const shown = figure => all(".drawing", figure).find(d => d.offsetWidth > 0);

  // Share of the shown part of the first axis at an event.
  const place = (drawing, event) => {
    const box = drawing.getBoundingClientRect();
    const [left, , right] = area(drawing);
    return ((event.clientX - box.left) / box.width - left) / (right - left);
  };

  const nearest = (places, share) => {
    let low = 0, high = places.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle] < share) low = middle + 1; else high = middle;
    }
    return low > 0 && share - places[low - 1] < places[low] - share ? low - 1 : low;
  };

  // Puts a box over the plotting area between two shares of the shown part.
  const stretch = (box, drawing, from, to) => {
    const [left, top, right, bottom] = area(drawing);
    const [width, height] = [drawing.offsetWidth, drawing.offsetHeight];
    const x = share => drawing.offsetLeft + (left + share * (right - left)) * width;
    box.style.left = `${x(from)}px`;
    box.style.width = `${Math.max(1, x(to) - x(from))}px`;
    box.style.top = `${top * height}px`;
    box.style.height = `${(bottom - top) * height}px`;
    box.hidden = false;
    return x(from);
  };

  const hide = () => { for (const box of all(".cross, .values")) box.hidden = true; };

  const point = (figure, drawing, event) => {
    hide();
    const rows = all("tbody tr", figure);
    const at = place(drawing, event);
    if (!rows.length || at < -0.02 || at > 1.02) return;
    const [from, to] = zoom(figure);
    const places = rows.map(r => Number(r.dataset.at));
    const i = nearest(places, from + at * (to - from));
    const share = (places[i] - from) / (to - from);
    if (share < 0 || share > 1) return;
    for (const peer of peers(figure)) {
      const own = shown(peer);
      if (own) stretch(peer.querySelector(".cross"), own, share, share);
    }
    // The values are read from the chart's table, so that there is one place where values are written.
    const heads = all("thead th", figure).map(h => h.textContent);
    const values = figure.querySelector(".values");
    values.replaceChildren(...[...rows[i].cells].flatMap((cell, n) => {
      if (!cell.textContent) return [];
      const line = document.createElement("div");
      line.textContent = n ? `${heads[n]}: ${cell.textContent}` : cell.textContent;
      return [line];
    }));
    values.hidden = false;
    const width = figure.querySelector(".drawings").clientWidth;
    const x = parseFloat(figure.querySelector(".cross").style.left);
    const beside = x > width / 2 ? x - values.offsetWidth - 10 : x + 10;
    values.style.left = `${Math.max(0, Math.min(width - values.offsetWidth, beside))}px`;
  };

  // Draws the zoomed part of a time axis: moves what is drawn, and labels the axis anew.
  const originals = new WeakMap();
  const draw = (figure, [from, to]) => {
    figure.classList.toggle("zoomed", to - from < 1);
    figure.querySelector(".whole").hidden = to - from >= 1;
    for (const svg of all(".drawing > svg", figure)) {
      const box = svg.querySelector(".data").viewBox.baseVal;
      const x = old => box.x + ((old - box.x) / box.width - from) / (to - from) * box.width;
      for (const e of all(".data > *", svg)) {
        if (!originals.has(e))
          originals.set(e, ["points", "x", "cx", "width"].map(name => [name, e.getAttribute(name)]));
        for (const [name, old] of originals.get(e)) {
          if (old === null) continue;
          e.setAttribute(name, name === "points" ? old.replace(/([-\d.]+),/g, (_, n) => `${x(Number(n))},`)
            : name === "width" ? old / (to - from) : x(Number(old)));
        }
      }
      ticks(svg, box, Number(figure.dataset.time), [from, to], x);
    }
  };

  const ticks = (svg, box, end, [from, to], x) => {
    const marks = all(":scope > polyline", svg).filter(p => {
      const [x0, y0, x1] = p.getAttribute("points").split(/[ ,]+/).map(Number);
      return p.classList.contains("tick") || x0 === x1 && y0 >= box.y + box.height / 2;
    });
    const labels = all(":scope > text.tick", svg);
    if (!originals.has(svg)) {
      for (const mark of marks) mark.classList.add("tick");
      originals.set(svg, [...marks, ...labels]);
    }
    for (const old of [...marks, ...labels]) old.remove();
    const before = svg.querySelector(".data");
    if (to - from >= 1) return before.before(...originals.get(svg));
    const [label] = originals.get(svg).filter(e => e.tagName === "text");
    const [mark] = originals.get(svg).filter(e => e.tagName === "polyline");
    if (!label || !mark) return;
    // About a label every 70 pixels, and at least two.
    const rough = (to - from) * end * 700 / box.width;
    const decade = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map(n => n * decade).find(n => n >= rough);
    if ((to - from) * end / step < 2) step /= 2;
    for (let n = Math.ceil(from * end / step); n * step <= to * end; n++) {
      const at = x(box.x + n * step / end * box.width);
      const [text, line] = [label.cloneNode(), mark.cloneNode()];
      text.setAttribute("x", at);
      text.textContent = Number((n * step).toPrecision(12));
      line.setAttribute("points", mark.getAttribute("points").replace(/[-\d.]+,/g, `${at},`));
      before.before(line, text);
    }
  };

  const zoomTo = (figure, part) => {
    if (part) zooms.set(home(figure), part); else zooms.delete(home(figure));
    hide();
    for (const peer of peers(figure)) draw(peer, part ?? [0, 1]);
  };

  const name = button => `${button.closest("figure").id}/${button.textContent}`;
  const press = button => {
    const on = !off.has(name(button));
    button.setAttribute("aria-pressed", on);
    for (const e of all(`.drawing [data-line="${button.dataset.switch}"]`, button.closest("figure")))
      e.style.display = on ? "" : "none";
  };

  document.addEventListener("plimsoll:drawn", () => {
    all("[data-switch]").filter(button => off.has(name(button))).forEach(press);
    for (const figure of all("figure[data-time]")) if (zooms.has(home(figure))) draw(figure, zoom(figure));
  });

  document.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button?.dataset.switch !== undefined) {
      if (!off.delete(name(button))) off.add(name(button));
      press(button);
    } else if (button?.classList.contains("whole")) {
      zoomTo(button.closest("figure"), null);
    } else if (button?.classList.contains("unfold")) {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", open);
      for (const row of all("tr.folded", button.closest("tbody"))) row.hidden = !open;
    }
  });

  const chart = event => {
    const drawing = event.target.closest?.("figure.chart .drawing");
    return drawing && [drawing.closest("figure"), drawing];
  };
  document.addEventListener("pointerdown", event => {
    const found = chart(event);
    if (!found) return;
    point(...found, event);
    if (found[0].dataset.time === undefined || event.button) return;
    drag = { figure: found[0], drawing: found[1], at: place(found[1], event), x: event.clientX };
  });
  document.addEventListener("pointermove", event => {
    const found = chart(event);
    if (found) point(...found, event); else hide();
    if (!drag || Math.abs(event.clientX - drag.x) < 8) return;
    const ends = [drag.at, place(drag.drawing, event)].map(s => Math.max(0, Math.min(1, s)));
    drag.ends = ends.sort((a, b) => a - b);
    stretch(drag.figure.querySelector(".brush"), drag.drawing, ...drag.ends);
  });
  const release = event => {
    if (!drag) return;
    const { figure, ends } = drag;
    drag = null;
    figure.querySelector(".brush").hidden = true;
    if (event.type !== "pointerup" || !ends || ends[0] === ends[1]) return;
    const [from, to] = zoom(figure);
    zoomTo(figure, ends.map(share => from + share * (to - from)));
  };
  document.addEventListener("pointerup", release);
  document.addEventListener("pointercancel", release);
  document.addEventListener("dblclick", event => {
    const found = chart(event);
    if (found && found[0].dataset.time !== undefined) zoomTo(found[0], null);
  });
  document.documentElement.addEventListener("pointerleave", hide);
})();
