"use strict";
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const post = async path => (await fetch(path, { method: "POST" })).json();

const feed = document.getElementById("feed");
if (feed) {
  const end = document.getElementById("end"), count = document.getElementById("count");
  let from = 0, busy = false;
  const card = item => {
    const like = make("button", { textContent: item.liked ? "Liked" : "Like", ariaLabel: `Like item ${item.id}`, ariaPressed: String(item.liked) });
    like.addEventListener("click", async () => {
      const { on } = await post(`/like/${item.id}`);
      like.textContent = on ? "Liked" : "Like";
      like.ariaPressed = String(on);
    });
    const hide = make("button", { textContent: `Hide ${item.author}`, ariaLabel: `Hide ${item.author}, item ${item.id}` });
    hide.addEventListener("click", async () => {
      const { hidden } = await post(`/hide/${item.author}`);
      for (const other of [...feed.children]) if (hidden.includes(other.dataset.author)) other.remove();
    });
    const element = make("article", { ariaLabel: `Item ${item.id} by ${item.author}` }, make("p", {}, make("strong", { textContent: item.author }), ` · item ${item.id}`), make("p", { textContent: item.text }), like, " ", hide);
    element.dataset.author = item.author;
    return element;
  };
  const load = async () => {
    if (busy || from >= Number(feed.dataset.all)) return;
    busy = true;
    const { items, hidden } = await (await fetch(`/items?from=${from}`)).json();
    feed.append(...items.filter(item => !hidden.includes(item.author)).map(card));
    from += items.length;
    busy = false;
    count.textContent = `${from} of ${feed.dataset.all} items`;
    if (from >= Number(feed.dataset.all)) end.textContent = "That was all.";
    else if (end.getBoundingClientRect().top < innerHeight + 200) load();
  };
  new IntersectionObserver(seen => { if (seen.some(one => one.isIntersecting)) load(); }, { rootMargin: "200px" }).observe(end);
}

const pane = document.getElementById("window");
if (pane) {
  const height = 30, all = Number(pane.getAttribute("aria-rowcount")), rows = document.getElementById("rows"), shown = document.getElementById("shown");
  const parts = new Map(); // of 50 rows each
  rows.style.height = `${all * height}px`;
  const part = async number => {
    if (!parts.has(number)) parts.set(number, fetch(`/rows?from=${number * 50}`).then(answer => answer.json()));
    return (await parts.get(number)).rows;
  };
  const line = row => {
    const pick = make("button", { textContent: row.picked ? "Picked" : "Pick", ariaLabel: `Pick row ${row.row}`, ariaPressed: String(row.picked) });
    pick.addEventListener("click", async () => {
      row.picked = (await post(`/pick/${row.row}`)).on;
      pick.textContent = row.picked ? "Picked" : "Pick";
      pick.ariaPressed = String(row.picked);
    });
    const element = make("div", { role: "row" }, make("span", { role: "cell", textContent: `${row.row} · ` }), make("span", { role: "cell", textContent: `${row.station} · ` }), make("span", { role: "cell", textContent: `${row.level} cm ` }), pick);
    element.setAttribute("aria-rowindex", row.row);
    Object.assign(element.style, { position: "absolute", top: `${(row.row - 1) * height}px`, height: `${height}px`, left: "8px" });
    return element;
  };
  let drawn = 0;
  const draw = async () => {
    const mine = ++drawn, first = Math.floor(pane.scrollTop / height), last = Math.min(all, first + Math.ceil(pane.clientHeight / height));
    const needed = [];
    for (let n = Math.floor(first / 50); n <= Math.floor((last - 1) / 50); n++) needed.push(part(n));
    const seen = (await Promise.all(needed)).flat().filter(row => row.row > first && row.row <= last);
    if (mine !== drawn) return;
    rows.replaceChildren(...seen.map(line));
    shown.textContent = `Rows ${first + 1} to ${last} of ${all}`;
  };
  pane.addEventListener("scroll", draw);
  document.getElementById("go").addEventListener("click", () => {
    const row = Number(document.getElementById("jump").value);
    if (row >= 1 && row <= all) pane.scrollTop = (row - 1) * height;
  });
  draw();
}
