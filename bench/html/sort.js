/* bench/html/sort.js - sorts a table when one of its headings is clicked.
 *
 * A second click turns the order round. Sorting is stable. Cells without a value stay last in both
 * directions. */
"use strict";
for (const table of document.querySelectorAll("table.bench, table.compare")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, column, numeric) => {
    const cell = row.cells[column], text = numeric ? cell.dataset.v : cell.textContent;
    return text === "" || text === undefined ? null : numeric ? Number(text) : text;
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending", numeric = "numeric" in head.dataset;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map(row => [value(row, column, numeric), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = numeric ? a - b : a < b ? -1 : a > b ? 1 : 0;
      return down ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  }));
}
