"use strict";
document.documentElement.classList.add("js");

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const numbers = (text) => text.split(" ").map((word) => (word === "-" ? NaN : Number(word)));

// Tables: a click or Enter on a heading sorts; cells without a value stay at the end.
for (const table of all("table.sortable")) {
  const body = table.tBodies[0];
  all("thead th", table).forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const first = column === 0 ? "ascending" : "descending";
      const second = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => row.cells[column].dataset.v;
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === undefined || y === undefined) {
          const words = x === undefined && y === undefined;
          return words ? sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent) : x === undefined ? 1 : -1;
        }
        return sign * (Number(x) - Number(y));
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}

// Copies the LaTeX of a table to the clipboard, or selects it if the clipboard is not available.
for (const box of all(".copy")) {
  const [button, status, source] = box.children;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value);
      status.textContent = "Copied.";
    } catch {
      source.hidden = false;
      source.select();
      status.textContent = document.execCommand("copy") ? "Copied." : "Press Ctrl+C.";
      source.hidden = status.textContent === "Copied.";
    }
  });
}

// Shows one figure at a time.
for (const charts of all(".charts")) {
  const figures = all("figure", charts);
  const legend = charts.querySelector(".legend");
  const tabs = document.createElement("div");
  tabs.className = "tabs";
  tabs.setAttribute("role", "group");
  tabs.setAttribute("aria-label", "figures");
  const show = (front) => {
    figures.forEach((figure, place) => {
      figure.classList.toggle("front", figure === front);
      tabs.children[place].setAttribute("aria-pressed", figure === front);
    });
    legend.classList.toggle("off", front.dataset.name === "weights");
    all("output", legend).forEach((output) => (output.textContent = ""));
  };
  for (const figure of figures) {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.textContent = figure.dataset.tab;
    tab.addEventListener("click", () => show(figure));
    tabs.append(tab);
  }
  charts.prepend(tabs);
  if (figures.length) show(figures[0]);

  // The legend hides and highlights strategies.
  const parts = all("figure [data-s]:not(button)", charts);
  for (const button of legend.children) {
    const own = button.dataset.s;
    const highlight = (on) => parts.forEach((part) => part.classList.toggle("dim", on && part.dataset.s !== own));
    button.addEventListener("pointerenter", () => highlight(true));
    button.addEventListener("pointerleave", () => highlight(false));
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", on);
      parts.filter((part) => part.dataset.s === own).forEach((part) => part.classList.toggle("off", !on));
    });
  }
  all("svg.curves", charts).forEach((svg) => follow(svg, legend));
  all("svg.bubbles", charts).forEach(inflate);
}

// Pointer, touch and arrow keys move a line over the curves; the legend shows the values of that round.
function follow(svg, legend) {
  const [left, top, right, bottom] = numbers(svg.dataset.frame);
  const [low, high] = numbers(svg.dataset.y);
  const rounds = Number(svg.dataset.rounds);
  const unit = svg.dataset.unit;
  const scale = unit === "%" ? 100 : 1;
  const draw = (name, attributes) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return svg.appendChild(element);
  };
  const cursor = draw("line", { y1: top, y2: bottom, stroke: "currentColor", "stroke-opacity": 0.5, class: "off" });
  const lines = all("polyline[data-v]", svg).map((line) => ({
    own: line.dataset.s,
    values: numbers(line.dataset.v),
    spread: numbers(line.dataset.d),
    dot: draw("circle", { r: 4, fill: line.getAttribute("stroke"), class: "off", "data-s": line.dataset.s }),
    line,
  }));
  const readout = svg.parentElement.querySelector(".readout");
  let round = null;
  const at = (place) => left + ((right - left) * (place - 1)) / (rounds - 1);
  const digits = (value) => (unit === "%" ? value.toFixed(1) : value.toPrecision(3));
  const show = (place) => {
    round = place === null ? null : Math.min(rounds, Math.max(1, place));
    cursor.classList.toggle("off", round === null);
    readout.textContent = round === null ? "" : `round ${round}`;
    if (round !== null) ["x1", "x2"].forEach((x) => cursor.setAttribute(x, at(round)));
    for (const { own, values, spread, dot, line } of lines) {
      const value = round === null ? NaN : values[round - 1];
      const seen = !Number.isNaN(value) && value !== undefined && !line.classList.contains("off");
      dot.classList.toggle("off", !seen);
      const output = legend.querySelector(`[data-s="${own}"] output`);
      output.textContent = "";
      if (!seen) continue;
      dot.setAttribute("cx", at(round));
      dot.setAttribute("cy", bottom - ((bottom - top) * (value / scale - low)) / (high - low));
      const band = spread[round - 1];
      output.textContent = digits(value) + (band > 0 ? ` ± ${digits(band)}` : "") + (unit ? ` ${unit}` : "");
    }
  };
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    show(Math.round(1 + ((x - left) / (right - left)) * (rounds - 1)));
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(null));
  svg.addEventListener("blur", () => show(null));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -rounds, End: rounds }[event.key];
    if (step === undefined && event.key !== "Escape") return;
    event.preventDefault();
    show(step === undefined ? null : (round ?? (step > 0 ? 0 : rounds + 1)) + step);
  });
}

// Bubbles: the buttons choose the strategy whose weights are shown; the pointer selects a client.
function inflate(svg) {
  const figure = svg.parentElement;
  const circles = all("circle", svg);
  const readout = figure.querySelector(".readout");
  const buttons = all(".switch button", figure);
  let column = 0;
  let over = null;
  const describe = () => {
    if (!over) return (readout.textContent = "");
    const [client, size, tvd] = over.dataset.c.split(" ");
    const weight = numbers(over.dataset.w)[column].toFixed(3);
    readout.textContent = `client ${client}: ${size} samples, TVD ${tvd}, weight ${weight}`;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      column = Number(button.dataset.column);
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
      const colour = `var(--s${Number(button.dataset.s) % 8})`;
      for (const circle of circles) {
        circle.setAttribute("fill", colour);
        circle.setAttribute("stroke", colour);
        circle.setAttribute("r", svg.dataset.radius * Math.sqrt(numbers(circle.dataset.w)[column]));
      }
      describe();
    });
  }
  const point = (event) => {
    over?.classList.remove("over");
    over = event.target.closest("circle");
    over?.classList.add("over");
    describe();
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
}
