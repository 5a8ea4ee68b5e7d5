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
    const decision = point.seriesType === "scatter";
    box.append(row(decision ? `▲ ${point.name}` : `${point.seriesName}: ${point.value[1].toLocaleString("en", { maximumSignificantDigits: 3 })}`));
  }
  return box;
}
