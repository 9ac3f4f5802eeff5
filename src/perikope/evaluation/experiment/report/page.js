
// A click on the head of a column sorts by it: figures falling first, texts rising. Without scripts the order is the experiment's.
for (const head of document.querySelectorAll("table.figures thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const isText = head.classList.contains("text");
    const isFalling = head.ariaSort ? head.ariaSort === "ascending" : !isText;
    const key = (row) => (isText ? row.cells[head.cellIndex].textContent : Number(row.cells[head.cellIndex].dataset.value ?? -Infinity));
    const rows = [...body.rows].map((row) => [key(row), row]);
    const compare = isText ? (a, b) => a.localeCompare(b) : (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    rows.sort(([a], [b]) => (isFalling ? compare(b, a) : compare(a, b)));
    for (const other of head.parentNode.cells) other.ariaSort = null;
    head.ariaSort = isFalling ? "descending" : "ascending";
    body.append(...rows.map(([, row]) => row));
  });
}
