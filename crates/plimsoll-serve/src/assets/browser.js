// Watches a run in progress, and says how many results are ticked. Without it every page still
// works, but a run has to be looked at again by hand.
"use strict";
const live = document.querySelector("[data-events]");
if (live) {
  const state = document.querySelector("#state");
  const figures = document.querySelector("#figures");
  const events = new EventSource(live.dataset.events);
  events.addEventListener("interval", event => {
    // What was opened stays open, and what has the focus keeps it, when the tables are new.
    const open = new Set([...figures.querySelectorAll("details[open]")].map(d => d.closest("figure").id));
    const focus = document.activeElement.closest && document.activeElement.closest("#figures figure");
    const kind = focus && document.activeElement.tagName;
    figures.innerHTML = event.data;
    document.dispatchEvent(new Event("plimsoll:drawn"));
    for (const id of open) {
      const details = figures.querySelector(`#${id} details`);
      if (details) details.open = true;
    }
    const again = focus && figures.querySelector(`#${focus.id} ${kind}`);
    if (again) again.focus({ preventScroll: true });
    state.textContent = "in progress";
  });
  events.addEventListener("end", event => {
    events.close();
    const [word, place] = event.data.split("\n");
    state.textContent = word;
    if (!place) return;
    const link = document.querySelector("#results");
    link.href = place;
    link.hidden = false;
  });
  events.addEventListener("error", () => {
    state.textContent = "connecting again";
    // The browser does that itself, but not after an answer that is no stream. Then the page is
    // asked for anew: it says why, if it is not there any more.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2000);
  });
}

const compare = document.querySelector("#compare");
if (compare) {
  const ticks = [...document.querySelectorAll("input[name=with]")];
  const count = () => {
    const ticked = ticks.filter(t => t.checked).length;
    compare.disabled = ticked < 2;
    compare.textContent = ticked < 2 ? "Compare (tick at least two)" : `Compare ${ticked} results`;
  };
  for (const tick of ticks) tick.addEventListener("change", count);
  addEventListener("pageshow", count);
  count();
}
