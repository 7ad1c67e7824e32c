// The colour switch, filters and sorting of tables. Without it the pages show everything, in the reader's colours.
"use strict";

const KEY = "testbed-board-theme";

function kept(value) {
  try {
    if (value !== undefined) localStorage.setItem(KEY, value);
    return localStorage.getItem(KEY);
  } catch {
    return null; // a browser that keeps nothing for files
  }
}

function setTheme(name) {
  if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}

function startThemes() {
  const chosen = kept();
  for (const radio of document.querySelectorAll("input[name=theme]")) {
    radio.checked = radio.value === (chosen || "auto");
    radio.addEventListener("change", () => { setTheme(radio.value); kept(radio.value); });
  }
}

function startFilter(form) {
  const rows = [...document.getElementById(form.dataset.filters).tBodies[0].rows];
  const show = () => {
    const text = form.elements.text.value.trim().toLowerCase();
    const state = form.elements.state ? form.elements.state.value : "";
    for (const row of rows) {
      const named = row.cells[0].textContent.toLowerCase().includes(text);
      row.hidden = !named || (state !== "" && row.dataset.state !== state);
    }
    form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || !target.hidden) return;
    form.reset();
    show();
    target.scrollIntoView();
  });
  show();
}

function valueOf(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/,|~/g, ""));
  return row.cells[column].classList.contains("num") ? (Number.isNaN(number) ? -Infinity : number) : text;
}

function startSorting(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, column), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}

setTheme(kept()); // before anything is drawn
document.addEventListener("DOMContentLoaded", () => {
  for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
  startThemes();
  document.querySelectorAll("form[data-filters]").forEach(startFilter);
  document.querySelectorAll("table.sortable").forEach(startSorting);
});
