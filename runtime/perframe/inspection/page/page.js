"use strict";
// The page: one or two panes, the tools above them, the panel beside them.

const byId = id => document.getElementById(id);

class Page {
  constructor(data) {
    this.data = data;
    this.colours = new Colours(data);
    this.panes = [];
    this.ready = false;
    document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    byId("title").textContent = data.title;
    this.tools();
    this.keys();
    this.open(data.views.length - 1);
  }

  // --- panes ---

  open(which) {
    this.shown = which;
    const views = which === "both" ? this.data.views : [this.data.views[which]];
    for (const button of byId("views").children) button.setAttribute("aria-pressed", String(button.dataset.which === String(which)));
    this.ready = false;
    this.panes = views.map(view => new Pane(view, this));
    byId("panes").replaceChildren(...this.panes.map(pane => pane.element));
    this.active = this.panes[this.panes.length - 1];
    const arranged = this.panes.map(pane => pane.arrange(() => pane.begin()));
    Promise.all(arranged).then(() => { this.ready = true; this.fromHash(); });
    this.describe(null);
    const view = this.active.graph.view;
    const work = view.multiply_adds === null ? "" : ` · ${view.multiply_adds.toLocaleString("en")} multiply-adds`;
    byId("summary").textContent = this.data.views.map(one => `${one.layers.length.toLocaleString("en")} layers ${one.label}`).join(" → ")
      + ` · ${view.parameters.toLocaleString("en")} parameters, ${bytesText(view.constant_bytes)}${work}`;
  }

  focus(pane) { this.active = pane; }

  arranged() { this.legend(); this.search(byId("search").value, false); }

  legend() { byId("legend").innerHTML = this.colours.legend(this.active.graph); }

  recolour(choice) {
    this.colours.choice = byId("colour").value = choice;
    for (const pane of this.panes) { this.colours.prepare(pane.graph); pane.draw(); }
    this.legend();
  }

  toggle(pane, which) {
    const { expanded } = pane.graph;
    expanded.has(which) ? expanded.delete(which) : expanded.add(which);
    const first = pane.graph.view.blocks[which].first;
    return pane.arrange(() => { pane.selected = null; pane.show(pane.graph.boxes[pane.graph.boxOfLayer[first]], pane.camera.scale); });
  }

  spread(all) {
    this.ready = false;
    return Promise.all(this.panes.map(pane => {
      pane.graph.expanded = new Set(all ? pane.graph.view.blocks.keys() : []);
      return pane.arrange(() => { pane.selected = null; pane.begin(); });
    })).then(() => { this.ready = true; });
  }

  // --- selection ---

  select(pane, found) {
    pane.selected = found;
    pane.draw();
    this.describe(found, pane);
    if (found?.kind !== "layer") return;
    history.replaceState(null, "", `#layer=${encodeURIComponent(found.layer.name)}`);
    for (const other of this.panes) if (other !== pane) {
      const index = other.graph.view.layers.findIndex(layer => layer.name === found.layer.name);
      if (index >= 0) this.reveal(other, index, false);
    }
  }

  async reveal(pane, index, describe = true) {
    if (pane.graph.reveal(index)) await pane.arrange();
    const box = pane.graph.boxes[pane.graph.boxOfLayer[index]];
    pane.show(box);
    if (describe) this.select(pane, box); else { pane.selected = box; pane.draw(); }
  }

  describe(found, pane = this.active) {
    const { graph } = pane, panel = byId("panel");
    if (!found) panel.innerHTML = Panel.model(this.data, graph.view);
    else if (found.kind === "layer") panel.innerHTML = Panel.layer(graph, found.layer, this.colours);
    else if (found.kind === "block") panel.innerHTML = Panel.block(graph, found);
    else panel.innerHTML = `<h2>${found.values ? "Edge" : found.kind}</h2>` + (found.values || [found.value.name]).map(name => Panel.value(graph, name)).join("");
    panel.scrollTop = 0;
  }

  fromHash() {
    const name = new URLSearchParams(location.hash.slice(1)).get("layer");
    const index = name === null ? -1 : this.active.graph.view.layers.findIndex(layer => layer.name === name);
    if (index >= 0) this.reveal(this.active, index);
  }

  // --- search ---

  search(text, move = true) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const pane of this.panes) {
      const { graph } = pane;
      const fits = layer => words.every(word => `${layer.name} ${titleOf(layer)} ${layer.outputs.join(" ")}`.toLowerCase().includes(word));
      pane.found = words.length ? graph.view.layers.flatMap((layer, index) => fits(layer) ? [index] : []) : [];
      pane.matches = new Set(pane.found.map(index => graph.boxes?.[graph.boxOfLayer[index]]));
      pane.draw();
    }
    byId("matches").textContent = words.length ? `${this.active.found.length} found` : "";
    if (move) this.current = -1;
  }

  next(step = 1) {
    const { found } = this.active;
    if (!found?.length) return;
    this.current = (this.current + step + found.length) % found.length;
    byId("matches").textContent = `${this.current + 1} of ${found.length}`;
    return this.reveal(this.active, found[this.current]).then(() => {
      byId("matches").textContent = `${this.current + 1} of ${found.length}`;
    });
  }

  // --- tools and keys ---

  tools() {
    const { views } = this.data;
    const choices = [...views.map((view, which) => [which, view.label]), ...(views.length > 1 ? [["both", "side by side"]] : [])];
    byId("views").innerHTML = choices.length > 1 ? choices.map(([which, label]) => `<button data-which="${which}">${label}</button>`).join("") : "";
    byId("views").addEventListener("click", ({ target }) => {
      if (target.dataset.which) this.open(target.dataset.which === "both" ? "both" : Number(target.dataset.which));
    });
    byId("colour").innerHTML = this.colours.choices.map(([key, title]) => `<option value="${escaped(key)}">${escaped(title)}</option>`).join("");
    byId("colour").value = this.colours.choice;
    byId("colour").addEventListener("change", ({ target }) => this.recolour(target.value));
    byId("search").addEventListener("input", ({ target }) => this.search(target.value));
    byId("search").addEventListener("keydown", event => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") { event.target.value = ""; this.search(""); event.target.blur(); }
    });
    byId("collapse").onclick = () => this.spread(false);
    byId("expand").onclick = () => this.spread(true);
    byId("fit").onclick = () => this.panes.forEach(pane => pane.fit());
    byId("in").onclick = () => this.panes.forEach(pane => pane.zoom(1.3));
    byId("out").onclick = () => this.panes.forEach(pane => pane.zoom(1 / 1.3));
    byId("theme").onclick = () => {
      const root = document.documentElement;
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
      this.panes.forEach(pane => pane.draw());
    };
    byId("panel").addEventListener("click", ({ target }) => {
      const { layer, toggle, search, value } = target.dataset;
      if (layer !== undefined) this.reveal(this.active, Number(layer));
      if (toggle !== undefined) this.toggle(this.active, Number(toggle));
      if (search !== undefined) { byId("search").value = search; this.search(search); this.next(); }
      if (value !== undefined) {
        const box = this.active.graph.boxes.find(one => one.value?.name === value);
        if (box) { this.active.show(box); this.select(this.active, box); }
      }
    });
  }

  keys() {
    addEventListener("keydown", event => {
      if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = {
        "/": () => byId("search").focus(), "0": () => byId("fit").click(), "+": () => byId("in").click(), "=": () => byId("in").click(),
        "-": () => byId("out").click(), "Escape": () => this.select(this.active, null), "n": () => this.next(), "N": () => this.next(-1),
        "ArrowDown": () => this.step("readers"), "ArrowUp": () => this.step("maker"),
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  // To the first layer that reads the chosen one's output, or that makes its first input.
  step(direction) {
    const { graph, selected } = this.active;
    if (selected?.kind !== "layer") return;
    const index = direction === "maker"
      ? selected.layer.inputs.map(name => graph.maker.get(name)).find(maker => maker !== undefined)
      : graph.readers.get(selected.layer.outputs[0])?.[0];
    if (index !== undefined) this.reveal(this.active, index);
  }
}

window.page = new Page(JSON.parse(byId("data").textContent));
