/* Charts: the library is fetched when the first chart is on the page. A chart that is polled stays as
   it is until the new drawing is complete, so that it never blinks. */
(() => {
  "use strict";
  const OPTIONS = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };

  let library;
  const loadLibrary = (url) => {
    library ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = url;
      script.onload = () => resolve(window.vegaEmbed);
      script.onerror = () => {
        library = undefined;
        reject(new Error(`no chart library at ${url}`));
      };
      document.head.append(script);
    });
    return library;
  };

  // The times that charts of time show, in milliseconds: all of them, or those that were chosen in one of them.
  let zoom = null;
  const isShown = (text) => zoom[0] <= Date.parse(text) && Date.parse(text) <= zoom[1];
  const parse = (text) => {
    const spec = JSON.parse(text);
    for (const layer of zoom ? spec.layer ?? [] : []) {
      const x = layer.encoding.x;
      if (!x?.scale?.domain) continue;
      x.scale.domain = zoom;
      x.axis.tickCount = 4;
      delete x.axis.format;
      if (layer.encoding.x2) layer.mark.clip = true;
      else layer.data.values = layer.data.values.filter((value) => isShown(value.at));
    }
    return spec;
  };

  // The drawing of a plot: what it shows, and how to take it down.
  const drawn = new WeakMap();
  const drawOne = async (figure) => {
    const plot = figure.querySelector(".plot");
    const { bundle, spec } = figure.dataset;
    const keyNow = () => `${zoom} ${figure.dataset.spec}`;
    const key = keyNow();
    if (drawn.get(plot)?.key === key) return;
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    try {
      const embed = await loadLibrary(bundle);
      plot.append(sheet);
      const view = await embed(sheet, parse(spec), OPTIONS);
      if (key !== keyNow()) {
        sheet.remove();
        view.finalize();
        return;
      }
      const old = drawn.get(plot);
      drawn.set(plot, { key, view });
      plot.replaceChildren(sheet);
      old?.view.finalize();
      plot.dispatchEvent(new CustomEvent("chart:drawn", { bubbles: true, detail: { view: view.view } }));
    } catch {
      sheet.remove();
      // An older drawing is better than none; the table beside it is of now.
      if (drawn.has(plot)) return;
      plot.classList.add("failed");
      plot.textContent = "The chart could not be drawn. The table below shows the same numbers.";
    }
  };
  const draw = (from) => from.querySelectorAll("[data-chart]").forEach(drawOne);

  document.addEventListener("htmx:load", (event) => draw(event.detail.elt.parentElement ?? event.detail.elt));
  document.addEventListener("chart:zoom", (event) => {
    zoom = event.detail;
    draw(document.body);
  });
  draw(document.body);
})();
