"use strict";
customElements.define("note-card", class extends HTMLElement {
  connectedCallback() {
    const { kind, word } = this.dataset;
    const root = this.attachShadow({ mode: kind });
    root.innerHTML = `<section aria-label="Card"><p>The word here is <strong></strong>.</p><p role="status"></p>
      <label>Note <input></label> <button>Send note</button></section>`;
    root.querySelector("strong").textContent = word;
    root.querySelector("button").addEventListener("click", async () => {
      const note = root.querySelector("input").value;
      const answer = await fetch(`/inner/${kind}`, { method: "POST", body: new URLSearchParams({ note }) });
      root.querySelector("[role=status]").textContent = answer.ok ? `Got: ${note}` : "It was not sent.";
    });
  }
});

document.getElementById("opens")?.addEventListener("click", () => open("/inner/popup", "window", "width=400,height=300"));
