// Shows the values of the point nearest to the pointer. They are read from the chart's table, so
// that there is one place where values are written.
"use strict";
for (const figure of document.querySelectorAll("figure.chart")) {
  const drawings = figure.querySelector(".drawings");
  const cross = figure.querySelector(".cross");
  const values = figure.querySelector(".values");
  const heads = [...figure.querySelectorAll("thead th")].map(h => h.textContent);
  const rows = [...figure.querySelectorAll("tbody tr")];
  const places = rows.map(r => Number(r.dataset.at));
  const hide = () => { cross.hidden = values.hidden = true; };

  const nearest = share => {
    let low = 0, high = places.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle] < share) low = middle + 1; else high = middle;
    }
    return low > 0 && share - places[low - 1] < places[low] - share ? low - 1 : low;
  };

  const show = event => {
    const drawing = event.target.closest(".drawing");
    if (!drawing || !rows.length) return hide();
    const box = drawing.getBoundingClientRect();
    const [left, top, right, bottom] = drawing.dataset.area.split(" ").map(Number);
    const share = ((event.clientX - box.left) / box.width - left) / (right - left);
    if (share < -0.02 || share > 1.02) return hide();
    const i = nearest(share);
    const x = (left + places[i] * (right - left)) * box.width;
    cross.style.left = `${x}px`;
    cross.style.top = `${top * box.height}px`;
    cross.style.height = `${(bottom - top) * box.height}px`;
    values.replaceChildren(...[...rows[i].cells].flatMap((cell, n) => {
      if (!cell.textContent) return [];
      const line = document.createElement("div");
      line.textContent = n ? `${heads[n]}: ${cell.textContent}` : cell.textContent;
      return [line];
    }));
    cross.hidden = values.hidden = false;
    const room = drawings.clientWidth - values.offsetWidth;
    const beside = x > drawings.clientWidth / 2 ? x - values.offsetWidth - 10 : x + 10;
    values.style.left = `${Math.max(0, Math.min(room, beside))}px`;
  };

  drawings.addEventListener("pointermove", show);
  drawings.addEventListener("pointerdown", show);
  drawings.addEventListener("pointerleave", hide);
}
