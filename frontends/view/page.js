/* The page's own behaviour: moving about, choosing, searching.  The drawing and what it says are in the page already;
 * nothing that a model says is ever taken for markup. */
(function () {
  "use strict";
  const started = performance.now();
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const L = read("layout"), model = read("model");
  const root = document.documentElement, main = document.querySelector("main"), SVG = "http://www.w3.org/2000/svg";
  const detail = document.getElementById("detail"), summary = document.getElementById("summary");
  const MOST_LISTED = 200;

  /* ---- what there is ---- */

  const nodes = [];     /* by number */
  const pageOf = [];    /* number of a node -> its page */
  const readers = [];   /* number of a node -> [reader, slot] */
  const leaves = [];    /* number of a node -> names of results */
  const pages = Array.from(document.querySelectorAll("main > section"), (section) => {
    const svg = section.querySelector("svg");
    return { graph: model.graphs[+section.dataset.graph], section, svg, tiles: null, spots: null, view: null,
             width: +svg.getAttribute("width"), height: +svg.getAttribute("height") };
  });
  const pageAt = new Map(pages.map((p, at) => [p.section.id, at])); /* g0: a graph or region; m0-3: a group of graph 0 */
  model.graphs.forEach((graph, at) => {
    for (const n of graph.nodes) {
      nodes[n.id] = n;
      pageOf[n.id] = pageAt.get("g" + at);
      readers[n.id] = [];
    }
    for (const n of graph.nodes)
      (n.inputs || []).forEach((from, slot) => { if (from !== null) readers[from].push([n.id, slot]); });
    graph.results.forEach((r) => {
      if (r.node !== null) (leaves[r.node] = leaves[r.node] || []).push(r.name || title(nodes[r.node]));
    });
  });

  pages.forEach((p, at) => { for (const id of spotsOf(p).keys()) pageOf[id] = at; });
  /* What is not drawn is where it is read. */
  for (const n of nodes) if (isHeld(n) || n.op === "part") pageOf[n.id] = pageOf[drawnFor(n.id)] ?? pageOf[n.id];

  function title(n) { return n.path || (n.name !== undefined ? n.name : "%" + n.number); }
  function isHeld(n) { return n.op === "const" || n.op === "param" || n.op === "state"; }

  /* The node that is drawn for a node: itself, what it is a part of, or the first reader of a constant. */
  function drawnFor(id) {
    let n = nodes[id];
    for (let i = 0; n && i < 64; i++) {
      if (n.op === "part") n = nodes[n.inputs[0]];
      else if (isHeld(n)) n = readers[n.id].length ? nodes[readers[n.id][0][0]] : null;
      else return n.id;
    }
    return -1;
  }

  /* The page around a page; itself for a graph. */
  function around(at) { return pageAt.get(pages[at].section.dataset.within) ?? at; }

  /* The sheets that hold nodes, those around them too. */
  function groupsAround(ids) {
    const all = new Set();
    for (const id of ids)
      for (let at = pageOf[id]; at !== undefined && !all.has(pages[at].section.id); at = around(at)) all.add(pages[at].section.id);
    return all;
  }

  /* Marks the boxes of groups that hold what was found. */
  function markGroups() {
    const found = groupsAround(hits);
    for (const a of pages[here].svg.querySelectorAll("a.group")) a.classList.toggle("hit", found.has(a.getAttribute("href").slice(1)));
  }

  function elements(type) {
    const m = /^[a-z0-9]+\[([0-9,]*)\]$/.exec(type);
    return m ? m[1].split(",").reduce((a, b) => a * (b === "" ? 1 : +b), 1) : 0;
  }

  /* The class of a type's colour, as precision.c has it. */
  function precision(n) {
    const bits = codeBits(n);
    if (bits) return bits <= 4 ? "i4" : bits <= 8 ? "i8" : "i16";
    return precisionOf(n.type);
  }

  /* Bits that tell codes apart, where they are fewer than those of their type; 0: they are not. */
  function codeBits(n) {
    const a = n.attributes, m = /^\(?[iu](8|16)\[/.exec(n.type);
    if (!a || !m || (a.least === undefined && a.largest === undefined)) return 0;
    const bits = Math.ceil(Math.log2((a.largest || 0) - (a.least || 0) + 1));
    return bits > 0 && bits < +m[1] ? bits : 0;
  }

  function precisionOf(type) {
    const m = /^(?:\(|seq\(|optional\()*([a-z0-9]+)\[/.exec(type), d = m ? m[1] : "";
    if (d === "bf16" || d === "bool") return d;
    if (/^f[0-9]/.test(d)) return /^f[68]e/.test(d) ? "f8" : d.startsWith("f4") ? "f4" : d;
    const i = /^[iu](\d+)$/.exec(d);
    return i ? "i" + (i[1] === "2" ? "4" : i[1]) : "other";
  }

  function inModule(n, path) {
    const m = (n.module === undefined ? "" : n.module).toLowerCase();
    return n.module !== undefined && (m === path || m.startsWith(path + "."));
  }

  function bytes(n) {
    const units = ["bytes", "kB", "MB", "GB", "TB"];
    let u = 0;
    while (Math.abs(n) >= 1000 && u < 4) { n /= 1000; u++; }
    return (u ? n.toFixed(1) : n) + " " + units[u];
  }

  function make(tag, attrs, ...children) {
    const e = document.createElement(tag);
    for (const k in attrs) if (attrs[k] !== undefined) e.setAttribute(k, attrs[k]);
    e.append(...children);
    return e;
  }

  /* ---- the drawing: tiles are drawn where one looks ---- */

  let here = -1, chosen = -1, hits = [], isHit = new Set(), hitAt = -1;

  function spotsOf(p) {
    if (!p.spots) {
      p.spots = new Map();
      const flat = JSON.parse(p.svg.dataset.spots);
      for (let i = 0; i < flat.length; i += 3) p.spots.set(flat[i], [flat[i + 1], flat[i + 2]]);
    }
    return p.spots;
  }

  function tilesOf(p) {
    if (!p.tiles)
      p.tiles = Array.from(p.svg.querySelectorAll("g.tile"), (g) => ({
        g, row: +g.dataset.row, lane: +g.dataset.lane,
        text: g.firstChild && g.firstChild.nodeType === Node.COMMENT_NODE ? g.firstChild.data : null, awake: false,
      }));
    return p.tiles;
  }

  function mark(id, name, on) {
    const e = document.getElementById("n" + id);
    if (e) e.classList.toggle(name, on);
  }

  function markLines(id, on) {
    const lines = (from, name) => {
      const e = document.getElementById("en" + from);
      if (e) e.classList.toggle(name, on);
    };
    for (const from of nodes[id].inputs || []) if (from !== null) lines(drawnFor(from), "in");
    lines(id, "out");
  }

  function dress() {
    for (const id of hits) mark(drawnFor(id), "hit", true);
    markGroups();
    markMates("mate", true);
    markMates("near", true);
    if (chosen >= 0 && pageOf[chosen] === here) {
      mark(drawnFor(chosen), "chosen", true);
      markLines(drawnFor(chosen), true);
    }
  }

  /* Lines of a tile may leave it downwards and to both sides, so tiles wake a tile early. */
  function wake(p, box) {
    let changed = false;
    for (const t of tilesOf(p)) {
      if (t.text === null) continue;
      const x = L.margin + t.lane * L.lane, y = L.margin + t.row * L.row, w = L.tile_lanes * L.lane, h = L.tile_rows * L.row;
      const near = x - w < box.x + box.w && x + 2 * w > box.x && y - h / 4 < box.y + box.h && y + 2.1 * h > box.y;
      if (near === t.awake) continue;
      if (near) t.g.innerHTML = t.text;
      else t.g.textContent = "";
      t.awake = near;
      changed = changed || near;
    }
    if (changed) dress();
  }

  let asked = false;
  function draw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(drawNow);
  }

  function drawNow() {
    asked = false;
    const p = pages[here], v = p.view, w = main.clientWidth / v.k, h = main.clientHeight / v.k;
    p.svg.setAttribute("viewBox", [v.x, v.y, w, h].join(" "));
    p.svg.classList.toggle("far", v.k < 0.22);
    p.svg.classList.toggle("middle", v.k >= 0.22 && v.k < 0.5);
    if (v.k >= 0.06) wake(p, { x: v.x, y: v.y, w, h });
    drawMap();
  }

  /* ---- the map: the whole page, small ---- */

  const map = make("canvas", { id: "map", title: "the whole graph; click to go there" });
  let mapPicture = null;

  function paintMap(p) {
    const w = map.clientWidth, h = map.clientHeight, dots = window.devicePixelRatio || 1, style = getComputedStyle(root);
    map.width = w * dots;
    map.height = h * dots;
    const k = Math.min(w / (p.width + 20), 0.25), ky = Math.min(h / p.height, 0.25);
    const ctx = map.getContext("2d");
    ctx.setTransform(dots, 0, 0, dots, 0, 0);
    const left = (w - p.width * k) / 2, tones = {};
    for (const [id, [row, lane]] of spotsOf(p)) {
      const c = precision(nodes[id]), launch = mainOf(nodes[id]);
      ctx.fillStyle = isByLaunch() ? (launch < 0 ? "gray" : "hsl(" + (launch * 137) % 360 + " 60% 50%)")
        : tones[c] || (tones[c] = style.getPropertyValue("--p-" + c).trim() || "gray");
      ctx.fillRect(left + (L.margin + lane * L.lane) * k, (L.margin + row * L.row) * ky, Math.max(1.5, L.width * k),
                   Math.max(0.8, L.height * ky));
    }
    ctx.fillStyle = style.getPropertyValue("--hit").trim();
    for (const id of hits) {
      const spot = spotsOf(p).get(drawnFor(id));
      if (spot) ctx.fillRect(left + (L.margin + spot[1] * L.lane) * k - 2, (L.margin + spot[0] * L.row) * ky - 1, Math.max(5, L.width * k + 4), 3);
    }
    mapPicture = { k, ky, left, image: ctx.getImageData(0, 0, map.width, map.height) };
  }

  function drawMap() {
    const p = pages[here], v = p.view;
    if (!map.clientHeight) return;
    if (!mapPicture) paintMap(p);
    const ctx = map.getContext("2d"), m = mapPicture;
    ctx.putImageData(m.image, 0, 0);
    ctx.strokeStyle = getComputedStyle(root).getPropertyValue("--accent").trim();
    ctx.lineWidth = 1.5;
    ctx.strokeRect(m.left + v.x * m.k, v.y * m.ky, (main.clientWidth / v.k) * m.k, Math.max(3, (main.clientHeight / v.k) * m.ky));
  }

  function mapGo(e) {
    const m = mapPicture, v = pages[here].view, box = map.getBoundingClientRect();
    v.x = (e.clientX - box.left - m.left) / m.k - main.clientWidth / v.k / 2;
    v.y = (e.clientY - box.top) / m.ky - main.clientHeight / v.k / 2;
    draw();
  }
  map.addEventListener("pointerdown", (e) => { map.setPointerCapture(e.pointerId); mapGo(e); });
  map.addEventListener("pointermove", (e) => { if (e.buttons) mapGo(e); });

  /* ---- moving about ---- */

  function zoom(by, cx, cy) {
    const v = pages[here].view, k = Math.min(4, Math.max(0.01, v.k * by));
    cx = cx === undefined ? main.clientWidth / 2 : cx;
    cy = cy === undefined ? main.clientHeight / 2 : cy;
    v.x += cx / v.k - cx / k;
    v.y += cy / v.k - cy / k;
    v.k = k;
    draw();
  }

  function pan(dx, dy) {
    const v = pages[here].view;
    v.x += dx / v.k;
    v.y += dy / v.k;
    draw();
  }

  function fit(whole) {
    const p = pages[here], w = main.clientWidth, h = main.clientHeight;
    const k = whole ? Math.max(0.01, Math.min(1, w / p.width, h / p.height)) : 1;
    const first = spotsOf(p).values().next().value, x = first ? L.margin + first[1] * L.lane + L.width / 2 : 0;
    p.view = { k, x: p.width * k <= w || whole ? (p.width - w / k) / 2 : Math.max(0, x - w / 2), y: 0 };
    if (whole && p.height * k < h) p.view.y = (p.height - h / k) / 2;
    draw();
  }

  function center(id) {
    const spot = spotsOf(pages[here]).get(id), v = pages[here].view;
    if (!spot) return;
    const x = L.margin + spot[1] * L.lane, y = L.margin + spot[0] * L.row, w = main.clientWidth / v.k, h = main.clientHeight / v.k;
    const seen = x > v.x && x + L.width < v.x + w && y > v.y && y + L.height < v.y + h;
    if (seen && v.k >= 0.5) return;
    if (v.k < 0.5) v.k = 1;
    v.x = within(x + L.width / 2 - main.clientWidth / v.k / 2, pages[here].width, main.clientWidth / v.k);
    v.y = within(y + L.height / 2 - main.clientHeight / v.k / 2, pages[here].height, main.clientHeight / v.k);
    draw();
  }

  /* Where a window of `size` on `whole` begins so that it shows no more emptiness than it must. */
  function within(at, whole, size) {
    return whole < size ? (whole - size) / 2 : Math.max(0, Math.min(at, whole - size));
  }

  main.addEventListener("wheel", (e) => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 30 : e.deltaMode === 2 ? 400 : 1, box = main.getBoundingClientRect();
    if (e.ctrlKey || e.metaKey)
      zoom(Math.exp(-e.deltaY * unit * (Math.abs(e.deltaY) < 40 ? 0.01 : 0.002)), e.clientX - box.left, e.clientY - box.top);
    else if (e.shiftKey && !e.deltaX) pan(e.deltaY * unit, 0);
    else pan(e.deltaX * unit, e.deltaY * unit);
  }, { passive: false });

  let held = null;
  main.addEventListener("pointerdown", (e) => { if (e.button === 0) held = { x: e.clientX, y: e.clientY, moved: false }; });
  window.addEventListener("pointermove", (e) => {
    if (!held || !(e.buttons & 1)) return;
    if (!held.moved && Math.hypot(e.clientX - held.x, e.clientY - held.y) < 4) return;
    held.moved = true;
    main.classList.add("drag");
    pan(held.x - e.clientX, held.y - e.clientY);
    held.x = e.clientX;
    held.y = e.clientY;
  });
  window.addEventListener("pointerup", () => main.classList.remove("drag"));
  main.addEventListener("dragstart", (e) => e.preventDefault());
  main.addEventListener("click", (e) => {
    const moved = held && held.moved;
    held = null;
    if (moved) { e.preventDefault(); return; }
    const a = e.target.closest("a"), g = e.target.closest("g.n");
    if (a) return; /* the address changes, and that does it */
    if (g && g.id[0] === "n") go("#" + g.id);
    else if (g) chooseResult(g.id);
  });
  main.addEventListener("dblclick", (e) => {
    const g = e.target.closest("g.n"), n = g && g.id[0] === "n" ? nodes[+g.id.slice(1)] : null;
    if (n && n.regions) go("#g" + n.regions[0]);
  });

  /* ---- pages ---- */

  function show(at) {
    if (at === here) return;
    if (here >= 0) pages[here].section.classList.remove("shown");
    here = at;
    pages[at].section.classList.add("shown");
    mapPicture = null;
    if (!pages[at].view) fit(false);
    const nav = document.querySelector("nav"), way = [];
    for (let p = at; ; p = around(p)) {
      way.unshift(p);
      if (around(p) === p) break;
    }
    nav.textContent = "";
    if (pages.length > 1)
      way.forEach((p, i) => nav.append(i ? " \u203a " : "", p === at ? pageTitle(p) : make("a", { href: "#" + pages[p].section.id }, pageTitle(p))));
    for (const a of document.querySelectorAll("#tree a")) a.classList.toggle("here", a.getAttribute("href") === "#" + pages[at].section.id);
    dress();
    draw();
  }

  function pageTitle(at) { return pages[at].section.querySelector("h2").textContent; }

  function tree() {
    if (pages.length < 2) return;
    const lists = [], top = make("ul", {});
    pages.slice(0, 2000).forEach((p, at) => {
      const item = make("li", {}, make("a", { href: "#" + p.section.id }, pageTitle(at)));
      const within = around(at);
      if (within === at) top.append(item);
      else {
        if (!lists[within].list) {
          lists[within].list = make("ul", {});
          const fold = make("details", { open: pages.length < 40 || around(within) === within ? "" : undefined }, make("summary", {}, "inside"), lists[within].list);
          lists[within].item.append(fold);
        }
        lists[within].list.append(item);
      }
      lists[at] = { item, list: null };
    });
    const fold = (label, open) => {
      const b = make("button", { type: "button" }, label);
      b.addEventListener("click", () => { for (const d of top.querySelectorAll("details")) d.open = open; });
      return b;
    };
    summary.append(make("details", { id: "tree", open: "" }, make("summary", {}, "graphs and groups"), fold("all", true), fold("none", false), top));
  }

  /* ---- launches: what engines run, each with its nodes ---- */

  const MOST_TOLD = 4, MOST_WITH = 12;
  const lit = { mate: [], near: [] }; /* nodes that run with the chosen one, and with the one under the pointer */

  /* The graph around a region; itself for a graph. */
  function graphOf(at) {
    while (model.graphs[at].within !== undefined) at = model.graphs[at].within;
    return at;
  }

  function graphOfNode(id) { return graphOf(+pages[pageOf[id]].section.dataset.graph); }
  function launchOf(graph, i) { return (model.graphs[graph].launches || [])[i]; }
  function matesOf(graph, launches) { return (launches || []).flatMap((i) => launchOf(graph, i).nodes); }

  function markMates(name, on) {
    for (const id of lit[name]) mark(drawnFor(id), name, on);
    const around = groupsAround(on ? lit[name] : []);
    for (const a of pages[here].svg.querySelectorAll("a.group")) a.classList.toggle(name, around.has(a.getAttribute("href").slice(1)));
  }

  function light(name, ids) {
    markMates(name, false);
    lit[name] = ids;
    markMates(name, true);
  }

  function mainOf(n) { return n.launches ? n.main ?? n.launches[0] : -1; }

  function launchLink(graph, i) { return make("a", { href: "#l" + graph + "-" + i }, String(i)); }

  function wave(graph, l) {
    if (!l.beside) return undefined;
    const [first, last] = l.beside;
    return [launchLink(graph, first), last > first + 1 ? " to " : " and ", launchLink(graph, last), " run side by side"];
  }

  function tellLaunch(graph, i, but) {
    const l = launchOf(graph, i), others = l.nodes.filter((id) => id !== but), most = but === undefined ? MOST_LISTED : MOST_WITH;
    detail.append(make("h4", {}, "launch ", launchLink(graph, i), " of " + model.graphs[graph].launches.length));
    detail.append(table([["kind", l.kind], ["part", l.part], ["name", l.name], ["what", l.what], ["reads", bytes(l.reads)], ["writes", bytes(l.writes)],
      ["arena", bytes(l.alive) + " taken meanwhile"], ["beside", wave(graph, l)], ["ours", l.ours && "made by passes, of no node here"]]
      .concat(others.slice(0, most).map((id, k) => [k ? "" : but === undefined ? "nodes" : "with", link(id)]))
      .concat(others.length > most ? [["", ["and ", make("a", { href: "#l" + graph + "-" + i }, others.length - most + " more")]]] : [])));
  }

  /* Where a node runs, or why it does not. */
  function tellRuns(n) {
    const graph = graphOfNode(n.id), all = n.launches || [];
    for (const i of all.slice(0, MOST_TOLD)) tellLaunch(graph, i, n.id);
    if (all.length > MOST_TOLD)
      add("launches", [["and in", all.slice(MOST_TOLD).flatMap((i, k) => [k ? ", " : "", launchLink(graph, i)])]]);
  }

  function closer() {
    const close = make("button", { class: "close", type: "button", title: "close (Esc)" }, "\u00d7");
    close.addEventListener("click", () => choose(-1));
    return close;
  }

  function chooseLaunch(graph, i) {
    const l = launchOf(graph, i);
    choose(-1);
    if (!l) return;
    if (l.nodes.length) {
      show(pageOf[l.nodes[0]] ?? 0);
      center(drawnFor(l.nodes[0]));
    }
    detail.textContent = "";
    detail.append(closer(), make("h3", {}, l.kind));
    tellLaunch(graph, i);
    aside(true);
    light("mate", l.nodes);
    drawNow();
  }

  const byLaunch = make("button", { type: "button", title: "colour by launch (l)", "aria-pressed": "false" }, "by launch");
  byLaunch.addEventListener("click", colourByLaunch);

  function colourByLaunch() {
    byLaunch.setAttribute("aria-pressed", root.classList.toggle("by-launch"));
    mapPicture = null;
    draw();
  }

  function isByLaunch() { return root.classList.contains("by-launch"); }

  /* Lists of launches, made when they are opened. */
  function programs() {
    summary.querySelector("p").after(make("p", { class: "hues" }, "Each launch has a colour of its own; grey: nothing runs."));
    model.graphs.forEach((graph, at) => {
      if (graph.no_program) summary.append(make("p", {}, "No program is made of @" + graph.name + " before it runs: it has " + graph.no_program + "."));
      if (!graph.launches) return;
      const list = make("table", {}), fold = make("details", {}, make("summary", {}, graph.launches.length + " launches of @" + graph.name), list);
      fold.addEventListener("toggle", () => {
        if (list.firstChild) return;
        graph.launches.forEach((l, i) => list.append(make("tr", {}, make("td", {}, launchLink(at, i)), make("td", {}, l.part), make("td", {}, l.what))));
      });
      summary.append(fold);
    });
  }

  main.addEventListener("pointerover", (e) => {
    const g = e.target.closest("g.n"), n = g && g.id[0] === "n" ? nodes[+g.id.slice(1)] : null;
    light("near", n && n.launches ? matesOf(graphOfNode(n.id), n.launches) : []);
  });
  main.addEventListener("pointerleave", () => light("near", []));

  /* ---- details ---- */

  function table(rows) {
    const t = make("table", {});
    for (const [key, value, usual] of rows)
      if (value !== undefined && value !== null)
        t.append(make("tr", usual ? { class: "usual" } : {}, make("td", {}, key), make("td", {}, ...[].concat(value))));
    return t;
  }

  function add(heading, rows) {
    if (!rows.length) return;
    detail.append(make("h4", {}, heading), table(rows));
  }

  function say(v) {
    if (v === null) return "none";
    if (typeof v === "string") return v;
    if (Array.isArray(v)) return "[" + v.map(say).join(", ") + "]";
    if (typeof v === "object") return [v.type, values(v)].join(" ");
    return String(v);
  }

  function values(v) {
    if (v.init) return v.init + (v.seed !== undefined ? "(seed " + v.seed + ", scale " + say(v.scale) + ")" : "");
    if (!v.first) return "";
    return v.first.map(say).join(", ") + (elements(v.type) > v.first.length ? ", \u2026" : "");
  }

  function link(id) {
    const n = nodes[id], out = [make("a", { href: "#n" + id }, title(n)), " ", n.op === "input" || isHeld(n) ? n.op : n.op, " ", n.type];
    if (n.path) out.push(make("span", { class: "values" }, n.name));
    if (n.value) out.push(make("span", { class: "values" }, values(n.value)));
    return out;
  }

  function roleOf(card, slot) {
    return card.quant ? card.quant[Math.min(slot, card.quant.length - 1)] : undefined;
  }

  /* ---- quantizers ---- */

  function short(x) {
    return typeof x !== "number" ? String(x) : x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(2) : String(+x.toPrecision(3));
  }

  function percent(x) { return x === undefined ? undefined : String(+(100 * x).toPrecision(2)) + " %"; }

  function draw1(tag, attrs, ...children) {
    const e = document.createElementNS(SVG, tag);
    for (const k in attrs) e.setAttribute(k, attrs[k]);
    e.append(...children);
    return e;
  }

  /* How the numbers are spread, with the ends of the codes, and the codes themselves where they are few. */
  function histogram(q) {
    const W = 300, H = 96, FLOOR = 74, TOP = 12, b = q.bins, n = b.n.length, to = b.from + b.width * n, most = Math.max(...b.n, 1);
    const x = (v) => (v - b.from) / (to - b.from) * W, svg = draw1("svg", { class: "spread", viewBox: "0 0 " + W + " " + H, role: "img" });
    const s = q.scale_most, ends = s === undefined ? [] : q.codes.map((c) => (c - q.zero) * s), beyond = (v) => ends.length && (v < ends[0] - s / 2 || v > ends[1] + s / 2);
    const edge = (i) => Math.abs(b.from + i * b.width) < 1e-6 * b.width ? 0 : b.from + i * b.width;
    b.n.forEach((count, i) => {
      const h = count ? Math.max(1, Math.sqrt(count / most) * (FLOOR - TOP)) : 0, middle = b.from + (i + 0.5) * b.width;
      if (h) svg.append(draw1("rect", { class: beyond(middle) ? "bar beyond" : "bar", x: (i * W / n + 0.4).toFixed(2), y: (FLOOR - h).toFixed(2), width: (W / n - 0.8).toFixed(2), height: h.toFixed(2) },
                              draw1("title", {}, count.toLocaleString("en") + " from " + short(edge(i)) + " to " + short(edge(i + 1)))));
    });
    svg.append(draw1("path", { class: "axis", d: "M0 " + FLOOR + "H" + W }));
    if (ends.length && q.codes[1] - q.codes[0] < 32)
      for (let c = q.codes[0]; c <= q.codes[1]; c++) {
        const at = x((c - q.zero) * s);
        if (at >= 0 && at <= W) svg.append(draw1("path", { class: "code", d: "M" + at.toFixed(2) + " " + FLOOR + "v5" }));
      }
    ends.forEach((v, i) => {
      const at = x(v);
      if (at >= -0.5 && at <= W + 0.5) svg.append(draw1("path", { class: "end", d: "M" + Math.min(W - 0.75, Math.max(0.75, at)).toFixed(2) + " 2V" + (FLOOR + 6) },
                                                       draw1("title", {}, "code " + q.codes[i] + ": " + short(v))));
    });
    const word = (at, anchor, text) => draw1("text", { x: at, y: H - 4, "text-anchor": anchor }, text);
    svg.append(word(0, "start", short(b.from)), word(W, "end", short(to)));
    if (b.from < 0 && to > 0 && x(0) > 60 && x(0) < W - 60) svg.append(word(x(0).toFixed(1), "middle", "0"));
    return svg;
  }

  function tellQuantizer(q) {
    const scale = q.scale_most === undefined ? undefined : q.scale_least === q.scale_most ? short(q.scale_most) : short(q.scale_least) + " to " + short(q.scale_most) + (q.scales > 1 ? ", " + q.scales + " of them" : "");
    add("quantizer of " + q.value, [["as", q.spec], ["for", q.asked], ["remembered", q.state], ["codes", q.codes && q.codes[0] + " to " + q.codes[1] + ", " + q.bits + " bits, 0 is " + q.zero],
      ["scale", scale], ["SQNR", q.sqnr === undefined ? undefined : q.sqnr === "inf" ? "exact" : (+q.sqnr).toFixed(1) + " dB"],
      ["clipped", percent(q.clipped)], ["codes used", percent(q.codes_used)], ["of", q.numbers && q.numbers.toLocaleString("en") + " numbers"]]);
    if (q.bins) detail.append(histogram(q), make("p", { class: "spread" }, (q.bins.absolute ? "absolute values; " : "") + "heights are square roots" + (q.codes && q.scale_most !== undefined ? "; lines: the ends of the codes" + (q.scales > 1 ? " by the largest scale" : "") : "")));
  }

  function describe(id) {
    const n = nodes[id], card = model.ops[n.op];
    detail.textContent = "";
    detail.append(closer(), make("h3", { class: "c-" + card.class }, n.op),
      table([["value", title(n)], ["in the file", n.path ? n.name : undefined], ["node", n.label], ["type", n.type],
             ["leaves as", leaves[id] && leaves[id].join(", ")], ["ONNX", card.onnx && (card.domain ? card.domain + "." : "") + card.onnx],
             ["module", n.module === undefined ? undefined : make("a", { href: "#q=module:" + n.module }, n.module || "the model itself")], ["source", n.line],
             ["class", card.class], ["stored as", n.width && n.width.stored], ["computes in", n.width && n.width.computes],
             ["because", n.width && n.width.why], ["saves", n.width && n.width.saved && bytes(n.width.saved) + " against f32"],
             ["by its card", card.amp && [card.amp.f16 === card.amp.bf16 ? card.amp.f16 : "fp16 " + card.amp.f16 + ", bf16 " + card.amp.bf16,
                            make("span", { class: "values" }, card.amp.means + (card.amp.reason ? " (" + card.amp.reason + ")" : ""))]],
             ["quantized", card.quant_out && "result " + card.quant_out], ["in the model", n.source && "node " + n.source],
             ["marks", [n.ours && "ours", n.side].filter(Boolean).join(", ") || undefined],
             ["value is", n.value && values(n.value)],
             ["runs", n.one !== undefined ? ["as one with ", ...link(n.one)] : n.idle]]));
    if (n.quantizer) tellQuantizer(n.quantizer);
    tellRuns(n);
    const given = n.attributes || {}, usual = card.defaults || {};
    add("attributes", Object.keys(given).map((k) => [k, say(given[k])])
      .concat(Object.keys(usual).filter((k) => !(k in given)).map((k) => [k, say(usual[k]), true])));
    add("operands", (n.inputs || []).map((from, i) => [roleOf(card, i) ? i + " " + roleOf(card, i) : String(i), from === null ? "absent" : link(from)]));
    add("regions", (n.regions || []).map((r, i) => ["{" + i + "}", make("a", { href: "#g" + r }, pageTitle(pageAt.get("g" + r)))]));
    const more = readers[id].length - MOST_LISTED;
    add("read by", readers[id].slice(0, MOST_LISTED).map(([r, slot]) => ["as " + slot, link(r)])
      .concat(more > 0 ? [["", "and " + more + " more"]] : []));
    aside(true);
  }

  function aside(on) {
    detail.hidden = !on;
    summary.hidden = on;
  }

  function chooseResult(elementId) {
    const [at, i] = elementId.slice(1).split("-").map(Number), r = model.graphs[at] && model.graphs[at].results[i];
    if (r && r.node !== null) go("#n" + r.node);
  }

  function choose(id) {
    if (chosen >= 0) {
      const old = drawnFor(chosen);
      if (old >= 0) { mark(old, "chosen", false); markLines(old, false); }
    }
    chosen = id;
    light("mate", id < 0 ? [] : matesOf(graphOfNode(id), nodes[id].launches));
    if (id < 0) {
      aside(false);
      if (/^#[nl]/.test(location.hash)) history.replaceState(null, "", "#" + pages[here].section.id);
      return;
    }
    show(pageOf[id] ?? 0);
    center(drawnFor(id));
    describe(id);
    drawNow();
    dress();
  }

  /* ---- search ---- */

  const box = make("input", { type: "search", placeholder: "search names, or op:conv type:f16 module:h.0", "aria-label": "search" });
  const found = make("output", {});

  function search(text) {
    for (const id of hits) mark(drawnFor(id), "hit", false);
    hits = [];
    hitAt = -1;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length)
      for (const n of nodes) {
        const all = [n.name, n.path, n.label, n.module, n.op, n.type, (model.ops[n.op].onnx || "")].join("\n").toLowerCase();
        if (words.every((w) => w.startsWith("op:") ? n.op === w.slice(3) : w.startsWith("type:") ? n.type.toLowerCase().includes(w.slice(5))
                        : w.startsWith("module:") ? inModule(n, w.slice(7)) : w.startsWith("side:") ? (n.side || "forward") === w.slice(5)
                        : w.startsWith("precision:") ? precision(n) === w.slice(10) && !isHeld(n) && n.op !== "part"
                        : w.startsWith("launch:") ? (n.launches || []).includes(+w.slice(7)) : w.startsWith("class:") ? model.ops[n.op].class === w.slice(6) : all.includes(w)))
          hits.push(n.id);
      }
    isHit = new Set(hits);
    found.textContent = words.length ? (hits.length ? hits.length + " found" : "nothing found") : "";
    mapPicture = null;
    dress();
    draw();
  }

  function step(by) {
    if (!hits.length) return;
    hitAt = hitAt < 0 ? (by > 0 ? 0 : hits.length - 1) : (hitAt + by + hits.length) % hits.length;
    found.textContent = hitAt + 1 + " of " + hits.length;
    history.replaceState(null, "", "#n" + hits[hitAt]);
    choose(hits[hitAt]);
  }

  function bar() {
    const form = document.querySelector("form"), tip = (label, title, act) => {
      const b = make("button", { type: "button", title }, label);
      b.addEventListener("click", act);
      return b;
    };
    let wait = 0;
    box.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(() => search(box.value), 120); });
    form.addEventListener("submit", (e) => { e.preventDefault(); clearTimeout(wait); if (hitAt < 0) search(box.value); step(1); });
    form.append(box, tip("\u2191", "previous (p)", () => step(-1)), tip("\u2193", "next (n)", () => step(1)), found,
      tip("\u2212", "smaller (-)", () => zoom(1 / 1.3)), tip("+", "larger (+)", () => zoom(1.3)),
      tip("1:1", "actual size (1)", () => zoom(1 / pages[here].view.k)), tip("fit", "all of it (0)", () => fit(true)));
    if (model.graphs.some((g) => g.launches)) form.append(byLaunch);
  }

  /* ---- keys ---- */

  const keys = {
    "/": ["search", () => { box.focus(); box.select(); }],
    n: ["next found", () => step(1)],
    p: ["previous found", () => step(-1)],
    "[": ["first operand", () => follow((nodes[chosen].inputs || []).find((i) => i !== null))],
    "]": ["first reader", () => follow(readers[chosen].length ? readers[chosen][0][0] : undefined)],
    u: ["group or graph around", () => {
      const group = pages[here].section.id[0] === "m", w = pages[here].graph;
      if (group) go("#" + pages[around(here)].section.id);
      else if (w.within !== undefined) go("#n" + w.owner);
    }],
    l: ["colour by launch", colourByLaunch],
    "+": ["larger", () => zoom(1.3)],
    "-": ["smaller", () => zoom(1 / 1.3)],
    "0": ["all of it", () => fit(true)],
    "1": ["actual size", () => zoom(1 / pages[here].view.k)],
    ArrowUp: ["", () => pan(0, -90)], ArrowDown: ["", () => pan(0, 90)],
    ArrowLeft: ["", () => pan(-90, 0)], ArrowRight: ["", () => pan(90, 0)],
    PageUp: ["", () => pan(0, -main.clientHeight * 0.85)], PageDown: ["", () => pan(0, main.clientHeight * 0.85)],
    Home: ["top", () => { pages[here].view.y = 0; draw(); }],
    End: ["bottom", () => { const p = pages[here]; p.view.y = p.height - main.clientHeight / p.view.k; draw(); }],
    Escape: ["close", () => { if (!detail.hidden) choose(-1); else { box.value = ""; search(""); } }],
  };
  keys["="] = ["", keys["+"][1]];

  function follow(id) { if (id !== undefined) go("#n" + id); }

  document.addEventListener("keydown", (e) => {
    if (e.target === box) {
      if (e.key === "Escape") box.blur();
      if (e.key === "Enter" && e.shiftKey) { e.preventDefault(); step(-1); }
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(keys, e.key)) return;
    if ((e.key === "[" || e.key === "]") && chosen < 0) return;
    e.preventDefault();
    keys[e.key][1]();
  });

  function help() {
    const t = make("table", {});
    for (const k in keys) if (keys[k][0]) t.append(make("tr", {}, make("td", {}, make("kbd", {}, k)), make("td", {}, keys[k][0])));
    t.append(make("tr", {}, make("td", {}, "drag, wheel"), make("td", {}, "move")),
             make("tr", {}, make("td", {}, "ctrl + wheel"), make("td", {}, "larger, smaller")));
    summary.append(make("details", {}, make("summary", {}, "keys"), t));
  }

  function totals() {
    let n = 0, count = 0;
    for (const v of nodes) if (v.op === "param" || v.op === "state") { n += elements(v.type); count++; }
    if (count) summary.querySelector("p").append(", ", make("b", {}, n.toLocaleString("en")), " numbers in " + count + " parameters and states");
  }

  /* ---- the address says where one is ---- */

  function go(hash) {
    if (location.hash === hash) arrive();
    else location.hash = hash;
  }

  function arrive() {
    const hash = decodeURIComponent(location.hash);
    let m;
    if ((m = /^#n(\d+)$/.exec(hash)) && nodes[+m[1]]) choose(+m[1]);
    else if (pageAt.has(hash.slice(1))) { choose(-1); show(pageAt.get(hash.slice(1))); }
    else if ((m = /^#l(\d+)-(\d+)$/.exec(hash)) && model.graphs[+m[1]]) chooseLaunch(+m[1], +m[2]);
    else if ((m = /^#r(\d+)-(\d+)$/.exec(hash))) chooseResult(hash.slice(1));
    else if ((m = /^#q=(.*)$/.exec(hash))) { box.value = m[1]; search(m[1]); step(1); }
  }

  root.classList.add("live");
  document.body.insertBefore(map, document.querySelector("aside"));
  bar();
  totals();
  tree();
  programs();
  help();
  aside(false);
  show(0);
  arrive();
  drawNow();
  window.addEventListener("hashchange", arrive);
  window.addEventListener("resize", () => { mapPicture = null; draw(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { mapPicture = null; draw(); });
  root.dataset.nodes = nodes.length;
  root.dataset.drawn = pages[here].svg.querySelectorAll("g.n").length;
  root.dataset.ready = Math.round(performance.now() - started);
})();
