"use strict";
const view = document.getElementById("view"), warning = document.getElementById("alert"), heading = document.querySelector("h1");
const seed = Number(view.dataset.seed) % 1000;
const lanes = ["To do", "Doing", "Done"], people = ["", "Ines", "Tomasz", "Wanda", "Yusuf"];

// make builds an element with properties and children.
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const labelled = (text, input) => make("label", {}, text + " ", input);
// Each answer takes a time that depends on the seed and on what is asked.
const wait = path => new Promise(done => setTimeout(done, 20 + (seed * 31 + path.length * 17) % 120));
const ask = async (method, path, body) => {
  await wait(path);
  const answer = await fetch("/api" + path, { method, body: body && JSON.stringify(body) });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
};
const say = text => { warning.textContent = text; };

// chooser changes one field of a task: at first on the page, then on the server, and back if that refuses.
const chooser = (task, field, options, label) => {
  const select = make("select", { ariaLabel: `${label} of ${task.title}` }, ...options.map(o => make("option", { value: o, textContent: o || "no one", selected: task[field] === o })));
  select.addEventListener("change", async () => {
    const before = task[field];
    task[field] = select.value;
    say("");
    try {
      await ask("PATCH", `/tasks/${task.id}`, { [field]: select.value });
    } catch (error) {
      task[field] = select.value = before;
      say(error.message);
    }
  });
  return select;
};

const pages = {
  async tasks() {
    heading.textContent = "Tasks";
    const list = make("ul", { ariaLabel: "Tasks", className: "tasks" }), count = make("p", { role: "status" });
    const search = make("input", { type: "search" }), more = make("button", { textContent: "Load more" });
    const title = make("input", {}), add = make("button", { textContent: "Add task" });
    let shown = 0;
    const row = task => make("li", {}, make("a", { href: `/task/${task.id}`, textContent: task.title }), " ", chooser(task, "lane", lanes, "Lane"), task.locked ? " 🔒" : "");
    const load = async fresh => {
      if (fresh) shown = 0;
      more.disabled = true;
      const found = await ask("GET", `/tasks?from=${shown}&q=${encodeURIComponent(search.value)}`);
      if (fresh) list.replaceChildren();
      list.append(...found.tasks.map(row));
      shown += found.tasks.length;
      count.textContent = `${shown} of ${found.all} tasks`;
      more.disabled = false;
      more.hidden = shown >= found.all;
    };
    search.addEventListener("input", () => load(true));
    more.addEventListener("click", () => load(false));
    add.addEventListener("click", async () => {
      say("");
      const mark = make("li", { textContent: title.value, className: "faint" });
      list.prepend(mark);
      try {
        mark.replaceWith(row(await ask("POST", "/tasks", { title: title.value })));
        title.value = "";
      } catch (error) {
        mark.remove();
        say(error.message);
      }
    });
    view.replaceChildren(make("p", {}, labelled("New task", title), " ", add), make("p", {}, labelled("Filter", search)), count, list, more);
    await load(true);
  },

  async task(id) {
    heading.textContent = "Task";
    const task = await ask("GET", `/tasks/${id}`);
    heading.textContent = task.title;
    const title = make("input", { value: task.title, size: 40 }), save = make("button", { textContent: "Save title" }), drop = make("button", { textContent: "Delete task" });
    save.addEventListener("click", async () => {
      say("");
      heading.textContent = title.value;
      try {
        task.title = (await ask("PATCH", `/tasks/${id}`, { title: title.value })).title;
      } catch (error) {
        heading.textContent = title.value = task.title;
        say(error.message);
      }
    });
    drop.addEventListener("click", async () => {
      if (!confirm(`Delete “${task.title}”?`)) return;
      try {
        await ask("DELETE", `/tasks/${id}`);
        go("/tasks");
      } catch (error) {
        say(error.message);
      }
    });
    view.replaceChildren(make("p", {}, labelled("Title", title), " ", save), make("p", {}, labelled("Assignee", chooser(task, "assignee", people, "Assignee"))),
      make("p", {}, labelled("Lane", chooser(task, "lane", lanes, "Lane"))), make("p", {}, task.locked ? "Locked by the foreman." : "Not locked."), drop);
  },

  async settings() {
    heading.textContent = "Settings";
    const now = await ask("GET", "/settings");
    const name = make("input", { value: now.name }), compact = make("input", { type: "checkbox", checked: now.compact }), save = make("button", { textContent: "Save settings" });
    const done = make("p", { role: "status" });
    save.addEventListener("click", async () => {
      say("");
      try {
        await ask("PUT", "/settings", { name: name.value, compact: compact.checked });
        done.textContent = "Saved.";
      } catch (error) {
        say(error.message);
      }
    });
    view.replaceChildren(make("p", {}, labelled("Name of the board", name)), make("p", {}, labelled("Compact lists", compact)), save, done);
  },
};

const draw = () => {
  say("");
  view.replaceChildren(make("p", { textContent: "Loading…" }));
  const [, page, id] = location.pathname.split("/");
  (pages[page] || pages.tasks)(id).catch(error => { view.replaceChildren(); say(error.message); });
};
const go = path => { history.pushState({}, "", path); draw(); };
document.addEventListener("click", event => {
  const link = event.target.closest("a");
  if (!link || link.origin !== location.origin) return;
  event.preventDefault();
  go(link.pathname);
});
addEventListener("popstate", draw);
draw();
