const tidegateClock = (at) => new Date(at * 1000).toTimeString().slice(0, 8);

// Says how old the page's values are, also when nobody answers any more: only the browser can know that.
// Times are written in the browser's own zone, like those of the charts.
(() => {
  let seen = "";
  let seenAt = performance.now();
  setInterval(() => {
    for (const time of document.querySelectorAll("time:empty")) time.textContent = tidegateClock(time.dataset.at);
    const banner = document.getElementById("stale");
    const pulse = document.querySelector(".pulse");
    if (!banner || !pulse) return;
    if (pulse.dataset.tick !== seen) {
      seen = pulse.dataset.tick;
      seenAt = performance.now();
    }
    const age = Number(pulse.dataset.age) + (performance.now() - seenAt) / 1000;
    banner.hidden = !(age >= Number(banner.dataset.limit));
    const sentence = `This page shows ${Math.round(age)} s old values: the controller does not answer.`;
    if (!banner.hidden && banner.textContent !== sentence) banner.textContent = sentence;
  }, 250);
})();

// Copies the line beside a button by way of the selection, which works without TLS, too. Where even that is forbidden,
// the line is left selected.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".copy");
  if (!button) return;
  const selection = getSelection();
  selection.selectAllChildren(button.parentElement.querySelector("code"));
  const copied = document.execCommand("copy");
  if (copied) selection.removeAllRanges();
  button.textContent = copied ? "Copied" : "Press Ctrl+C";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

// One line per series at the pointer, and the sentence of a decision made there.
function tidegateTooltip(points) {
  const row = (text) => {
    const line = document.createElement("div");
    line.textContent = text;
    return line;
  };
  const box = document.createElement("div");
  box.style.cssText = "max-width: 320px; white-space: normal";
  box.append(row(tidegateClock(points[0].value[0] / 1000)));
  for (const point of points) {
    if (point.seriesName === "phase") continue;
    const value = point.value[1].toLocaleString("en", { maximumSignificantDigits: 3 });
    if (point.seriesType === "scatter") box.append(row(`▲ ${point.name}`));
    else if (point.seriesType === "custom") box.append(row(tidegateBatchWords(point.value)));
    else box.append(row(`${point.seriesName}: ${value}`));
  }
  return box;
}

// A batch: when it ended, its rows, when it began, whether it was at the limit.
function tidegateBatchWords([ended, rows, began, atLimit]) {
  const took = ((ended - began) / 1000).toLocaleString("en", { maximumSignificantDigits: 2 });
  return `batch: ${rows.toLocaleString("en")} rows in ${took} s${atLimit ? ", at the limit" : ""}`;
}

// A bar as wide as the batch took; one at the limit is solid and has a cap over it, so that its colour is not alone.
function tidegateBatch(params, api) {
  const [end, top] = api.coord([api.value(0), api.value(1)]);
  const [begin, bottom] = api.coord([api.value(2), 0]);
  const width = Math.max(1.5, end - begin - 0.5);
  const atLimit = api.value(3) === 1;
  const fill = atLimit ? "var(--caution)" : "var(--tide)";
  const left = Math.max(end - width, params.coordSys.x);
  const shape = { x: left, y: top, width: Math.max(0, end - left), height: bottom - top };
  const bar = { type: "rect", shape, style: { fill, opacity: atLimit ? 0.6 : 0.4 } };
  const cap = { type: "rect", shape: { ...shape, y: top - 5, height: 2.5 }, style: { fill } };
  return { type: "group", children: atLimit ? [bar, cap] : [bar] };
}
