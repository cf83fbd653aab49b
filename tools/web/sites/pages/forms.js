"use strict";
const all = (query, from = document) => [...from.querySelectorAll(query)];
const form = document.querySelector("form[method=post]");

form.addEventListener("submit", event => {
  for (const box of all("[data-field]")) form.elements[box.dataset.field].value = box.innerText.trim();
  for (const list of all("[data-ranks]")) form.elements[list.dataset.ranks].value = all("li", list).map(li => li.dataset.name).join(" ");
  if (form.dataset.confirm && !confirm(form.dataset.confirm)) event.preventDefault();
});

for (const range of all("input[type=range]")) range.addEventListener("input", () => { range.parentNode.querySelector("output").value = range.value; });

for (const button of all("[data-ranks] button")) button.addEventListener("click", () => {
  const item = button.closest("li");
  if (item.previousElementSibling) item.parentNode.insertBefore(item, item.previousElementSibling);
});

const tabs = all("[role=tab]");
for (const tab of tabs) tab.addEventListener("click", () => {
  for (const other of tabs) {
    other.setAttribute("aria-selected", other === tab);
    document.getElementById(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
});

for (const select of all("select[data-follows]")) {
  const leader = all("select", form)[all("select", form).indexOf(select) - 1];
  const follow = () => {
    for (const option of all("option[data-of]", select)) {
      option.hidden = option.disabled = option.dataset.of !== leader.value;
      if (option.disabled) option.selected = false;
    }
  };
  leader.addEventListener("change", () => { select.value = ""; follow(); });
  follow();
}

for (const box of all("[data-filters]")) box.addEventListener("input", () => {
  for (const label of all("label", document.getElementById(box.dataset.filters + "-list"))) {
    label.hidden = !label.textContent.toLowerCase().includes(box.value.toLowerCase());
    label.style.display = label.hidden ? "none" : "";
  }
});

for (const button of all("[data-opens]")) button.addEventListener("click", () => document.getElementById(button.dataset.opens).showModal());
for (const button of all("[data-closes]")) button.addEventListener("click", () => document.getElementById(button.dataset.closes).close());

const needed = all("[data-needed]"), send = form.querySelector("button:not([type])");
const allow = () => { send.disabled = needed.some(box => !box.checked); };
for (const box of needed) box.addEventListener("change", allow);
allow();
