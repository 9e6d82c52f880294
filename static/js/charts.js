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

  // The drawing of a plot: which spec it shows, and how to take it down.
  const drawn = new WeakMap();
  const drawOne = async (figure) => {
    const plot = figure.querySelector(".plot");
    const { bundle, spec } = figure.dataset;
    if (drawn.get(plot)?.spec === spec) return;
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    try {
      const embed = await loadLibrary(bundle);
      plot.append(sheet);
      const view = await embed(sheet, JSON.parse(spec), OPTIONS);
      const old = drawn.get(plot);
      drawn.set(plot, { spec, view });
      plot.replaceChildren(sheet);
      old?.view.finalize();
      plot.dispatchEvent(new CustomEvent("chart:drawn", { bubbles: true, detail: { view } }));
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
  draw(document.body);
})();
