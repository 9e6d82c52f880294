/* A crosshair over all charts of a page: each shows the same instant. The values are the cells of the chart's table,
   as people write them, with the exact ones in their titles; here a line is drawn and the cells are copied. On a focused chart Left and Right go from row
   to row, Page Up and Page Down from change to change. */
(() => {
  "use strict";
  // The pointer is drawn to a change that is at most so many pixels away.
  const NEAR = 8;
  // A drag over fewer pixels is a click.
  const LEAST = 8;
  const views = new WeakMap();
  const tables = new WeakMap();
  let instant;
  let zoom = null;
  let drag;

  const plotOf = (figure) => figure.querySelector(".plot");
  const viewOf = (figure) => views.get(plotOf(figure));
  const figures = () => [...document.querySelectorAll("[data-chart]")].filter((one) => viewOf(one) && tableOf(one).rows.length);
  const tableOf = (figure) => {
    if (!tables.has(figure)) {
      const rows = [...figure.querySelectorAll("tr[data-start]")].map((row) => ({
        start: Number(row.dataset.start),
        end: Number(row.dataset.end),
        isGap: "gap" in row.dataset,
        change: row.dataset.change ?? "",
        cells: [...row.cells].map((cell) => cell.textContent),
        exact: [...row.cells].map((cell) => cell.title),
      }));
      tables.set(figure, { rows, step: Math.min(...rows.map((row) => row.end - row.start)) });
    }
    return tables.get(figure);
  };

  // Where a time is on the axis, in pixels from its begin; bars have their middle. Undefined beside the axis.
  const placeOf = (view, at) => {
    const scale = view.scale("x");
    if (scale.bandwidth) {
      const bar = scale.domain().filter((start) => Number(start) <= at).pop();
      return bar === undefined ? undefined : scale(bar) + scale.bandwidth() / 2;
    }
    const place = scale(at);
    return place < 0 || place > view.width() ? undefined : place;
  };
  const rowAt = (figure, at) => tableOf(figure).rows.find((row) => row.start <= at && at < row.end);

  const xIn = (figure, clientX) =>
    clientX - plotOf(figure).querySelector("svg").getBoundingClientRect().left - viewOf(figure).origin()[0];

  // The instant under the pointer: that of the nearest row, or the slot of a gap.
  const instantAt = (figure, clientX) => {
    const view = viewOf(figure);
    const { rows, step } = tableOf(figure);
    const x = xIn(figure, clientX);
    const away = (row) => Math.abs((placeOf(view, row.start) ?? Infinity) - x);
    const nearest = (of) => of.reduce((best, row) => (!best || away(row) < away(best) ? row : best), undefined);
    const change = nearest(rows.filter((row) => row.change && !row.isGap));
    if (change && away(change) <= NEAR) return change.start;
    const scale = view.scale("x");
    const at = scale.invert ? Number(scale.invert(x)) : undefined;
    const gap = rows.find((row) => row.isGap && row.start <= at && at < row.end);
    return gap ? gap.start + Math.floor((at - gap.start) / step) * step : nearest(rows)?.start;
  };

  // A shape over the drawing, one of each name in a chart.
  const drawShape = (figure, tag, name, attributes) => {
    const svg = plotOf(figure).querySelector("svg");
    let shape = svg.querySelector(`.${name}`);
    if (!attributes) return shape?.remove();
    if (!shape) {
      shape = document.createElementNS("http://www.w3.org/2000/svg", tag);
      shape.setAttribute("class", name);
      svg.append(shape);
    }
    Object.entries(attributes).forEach(([attribute, value]) => shape.setAttribute(attribute, value));
  };
  const drawLine = (figure, x) => {
    const view = viewOf(figure);
    const [left, top] = view.origin();
    const place = Math.round(left + x) + 0.5;
    const ends = { x1: place, x2: place, y1: top, y2: top + view.height() };
    drawShape(figure, "line", "crosshair", x === undefined ? undefined : ends);
  };

  const describe = (figure, row) => {
    const names = [...figure.querySelectorAll("th")].slice(1).map((title) => title.textContent);
    const values = names.map((name, index) => `${name} ${row.exact[index + 1] || row.cells[index + 1]}`);
    return [`${row.cells[0]} UTC`, ...values.filter((value) => !value.endsWith(" —"))].join(", ");
  };
  const showIn = (figure) => {
    const row = instant === undefined ? undefined : rowAt(figure, instant);
    drawLine(figure, row && placeOf(viewOf(figure), instant));
    figure.querySelectorAll("[data-value]").forEach((value, index) => {
      value.textContent = row ? row.cells[index + 1] : "";
      value.title = row?.exact[index + 1] ?? "";
    });
    figure.querySelector("[data-instant]").textContent = row ? [`${row.cells[0]} UTC`, row.change].filter(Boolean).join(" · ") : "";
    const plot = plotOf(figure);
    const { rows } = tableOf(figure);
    plot.setAttribute("aria-valuemax", rows.length - 1);
    plot.setAttribute("aria-valuenow", row ? rows.indexOf(row) : rows.length - 1);
    plot.setAttribute("aria-valuetext", describe(figure, row ?? rows.at(-1)));
  };
  const showZoom = () => document.querySelectorAll("[data-zoom-out]").forEach((button) => { button.hidden = !zoom; });
  const setZoom = (times) => {
    zoom = times;
    showZoom();
    document.dispatchEvent(new CustomEvent("chart:zoom", { detail: times }));
  };
  const show = (at) => {
    instant = at;
    figures().forEach(showIn);
  };

  const figureOf = (target) => {
    const figure = target instanceof Element ? target.closest(".plot")?.closest("[data-chart]") : undefined;
    return figure && figures().includes(figure) ? figure : undefined;
  };
  const follow = (event) => {
    if (drag) return drawDrag(event);
    const figure = figureOf(event.target);
    if (figure) show(instantAt(figure, event.clientX));
    else if (instant !== undefined && !figureOf(document.activeElement)) show(undefined);
  };

  // Only charts of time are zoomed, by a mouse or pen: a finger scrolls the page and moves the crosshair.
  const beginDrag = (event) => {
    const figure = figureOf(event.target);
    if (!figure?.querySelector("[data-zoom-out]") || event.button !== 0 || event.pointerType === "touch") return;
    drag = { figure, from: event.clientX };
  };
  const dragTo = (clientX) => {
    const view = viewOf(drag.figure);
    const ends = [drag.from, clientX].map((end) => Math.min(view.width(), Math.max(0, xIn(drag.figure, end))));
    return ends.sort((one, other) => one - other);
  };
  const drawDrag = (event) => {
    const [x, end] = dragTo(event.clientX);
    const [left, top] = viewOf(drag.figure).origin();
    drawShape(drag.figure, "rect", "zoom", { x: left + x, y: top, width: end - x, height: viewOf(drag.figure).height() });
  };
  const endDrag = (event) => {
    if (!drag) return;
    const { figure } = drag;
    const [from, to] = dragTo(event.clientX);
    drawShape(figure, "rect", "zoom");
    drag = undefined;
    if (to - from < LEAST) return;
    const scale = viewOf(figure).scale("x");
    const times = [from, to].map((end) => Number(scale.invert(end)));
    const inside = tableOf(figure).rows.filter((row) => row.start < times[1] && times[0] < row.end);
    // Whole slots, so that the first and last value are in it.
    if (inside.length > 1) setZoom([Math.max(times[0], inside[0].start), Math.min(times[1], inside.at(-1).end)]);
  };

  const step = (rows, key) => {
    const here = instant === undefined ? -1 : rows.findIndex((row) => row.start <= instant && instant < row.end);
    const before = here < 0 ? rows : rows.slice(0, here);
    const after = rows.slice(here + 1);
    const choices = {
      ArrowLeft: () => before.at(-1),
      ArrowRight: () => after[0],
      Home: () => rows[0],
      End: () => rows.at(-1),
      PageUp: () => before.findLast((row) => row.change),
      PageDown: () => after.find((row) => row.change),
    };
    return choices[key]?.();
  };
  const isShown = (row) => !zoom || (row.start < zoom[1] && zoom[0] < row.end);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && zoom && !event.target.closest?.("dialog, input, select, textarea")) return setZoom(null);
    const figure = figureOf(event.target);
    if (!figure) return;
    if (event.key === "Escape") return show(undefined);
    const row = step(tableOf(figure).rows.filter(isShown), event.key);
    if (!row) return;
    event.preventDefault();
    show(row.start);
  });
  document.addEventListener("focusin", (event) => {
    const figure = figureOf(event.target);
    if (figure?.querySelector(".plot:focus-visible") && instant === undefined) show(tableOf(figure).rows.at(-1).start);
  });
  document.addEventListener("focusout", (event) => { if (figureOf(event.target)) show(undefined); });
  document.addEventListener("pointermove", follow);
  document.addEventListener("pointerdown", (event) => {
    follow(event);
    beginDrag(event);
  });
  document.addEventListener("pointerup", endDrag);
  document.addEventListener("click", (event) => { if (event.target.closest?.("[data-zoom-out]")) setZoom(null); });

  document.addEventListener("chart:drawn", (event) => {
    const plot = event.target;
    const figure = plot.closest("[data-chart]");
    views.set(plot, event.detail.view);
    if (!tableOf(figure).rows.length) return;
    plot.tabIndex = 0;
    plot.setAttribute("role", "slider");
    plot.setAttribute("aria-valuemin", 0);
    showIn(figure);
  });
  // A poll brings another table, and keeps the drawing until the new one is complete.
  document.addEventListener("htmx:load", () => {
    showZoom();
    if (instant !== undefined) show(instant);
  });
})();
