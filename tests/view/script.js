/* node script.js VIEW_FILE STEP.qir QCC MODEL.onnx: runs a page's script over as much of a document as it asks for, and looks at what the
 * page has become: which sheet is shown, what the pane says, what is marked.  No browser is needed.  The page of the model
 * is one of its training step, with what engines run of it. */
"use strict";
const { execFileSync } = require("child_process");
const { runInNewContext } = require("vm");

const decoded = (text) => text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(+code));
const COMMENT = 8, ELEMENT = 1;
const EMPTY = new Set(["meta", "tr", "td", "th", "thead", "tbody"]); /* that the page leaves open, or that hold nothing */

class Element {
  constructor(tag) {
    this.tagName = tag;
    this.nodeType = ELEMENT;
    this.attributes = {};
    this.children = [];
    this.parent = null;
    this.clientWidth = 1000;
    this.clientHeight = 800;
    const words = () => new Set((this.attributes.class || "").split(" ").filter(Boolean));
    const toggle = (word, on) => {
      const all = words();
      if (on === undefined ? !all.has(word) : on) all.add(word);
      else all.delete(word);
      this.attributes.class = [...all].join(" ");
      return all.has(word);
    };
    this.classList = { toggle, contains: (word) => words().has(word), add: (word) => toggle(word, true), remove: (word) => toggle(word, false), has: (word) => words().has(word) };
    this.dataset = new Proxy({}, { get: (_, key) => this.attributes["data-" + key], set: (_, key, value) => { this.attributes["data-" + key] = String(value); return true; } });
  }
  get id() { return this.attributes.id || ""; }
  get firstChild() { return this.children[0]; }
  get textContent() { return this.children.map((c) => (typeof c === "string" ? c : c.nodeType === COMMENT ? "" : c.textContent)).join(""); }
  set textContent(text) { this.children = text ? [text] : []; }
  set innerHTML(text) { this.children = []; read(text, this); }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  getAttribute(key) { return key in this.attributes ? this.attributes[key] : null; }
  append(...all) {
    for (const child of all) {
      if (child instanceof Element) child.parent = this;
      this.children.push(child);
    }
  }
  after(child) { child.parent = this.parent; this.parent.children.splice(this.parent.children.indexOf(this) + 1, 0, child); }
  insertBefore(child, before) { child.parent = this; this.children.splice(this.children.indexOf(before), 0, child); }
  addEventListener(kind, act) { (this.heard = this.heard || {})[kind] = act; }
  closest(selector) { for (let e = this; e; e = e.parent) if (e.is(selector)) return e; return null; }
  getContext() { return new Proxy({}, { get: () => () => ({}) }); }
  *all() {
    for (const child of this.children)
      if (child instanceof Element) {
        yield child;
        yield* child.all();
      }
  }
  is(selector) {
    const [, tag, id, word] = /^([a-z0-9]*)(?:#([\w-]+))?(?:\.([\w-]+))?$/.exec(selector);
    return (!tag || this.tagName === tag) && (!id || this.id === id) && (!word || this.classList.has(word));
  }
  querySelectorAll(selector) {
    const steps = selector.split(/\s*>\s*|\s+/), last = steps.pop(), around = steps.pop(), found = [];
    for (const e of this.all()) {
      let outer = e.parent;
      while (around && outer && !outer.is(around)) outer = outer.parent;
      if (e.is(last) && (!around || outer)) found.push(e);
    }
    return found;
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] || null; }
}

/* Adds what a text says below an element. */
function read(text, root) {
  const words = /<!--([\s\S]*?)-->|<(\/?)([a-zA-Z0-9]+)((?:\s+[\w-]+(?:="[^"]*")?)*)\s*(\/?)>|<![^>]*>|([^<]+)/g;
  let at = root;
  for (let m; (m = words.exec(text)); ) {
    const [, comment, end, tag, attributes, closed, plain] = m;
    if (comment !== undefined) at.children.push({ nodeType: COMMENT, data: comment });
    else if (plain !== undefined) at.children.push(decoded(plain));
    else if (tag && end) {
      let open = at;
      while (open && open.tagName !== tag) open = open.parent;
      if (open) at = open.parent || root;
    } else if (tag) {
      const e = new Element(tag);
      for (const [, key, value] of attributes.matchAll(/([\w-]+)(?:="([^"]*)")?/g)) e.attributes[key] = decoded(value || "");
      at.append(e);
      if (tag === "script" || tag === "style") {
        const stop = text.indexOf("</" + tag + ">", words.lastIndex);
        e.textContent = text.slice(words.lastIndex, stop);
        words.lastIndex = stop + tag.length + 3;
      } else if (!closed && !EMPTY.has(tag)) at = e;
    }
  }
}

/* The page at an address, its script run, then a key pressed and the pointer moved to an element. */
function visit(html, hash, key, over) {
  const page = new Element("document");
  read(html, page);
  const root = page.querySelector("html"), scripts = page.querySelectorAll("script");
  const document = {
    documentElement: root, body: page.querySelector("body"), addEventListener(kind, act) { page.addEventListener(kind, act); },
    getElementById: (id) => { for (const e of page.all()) if (e.id === id) return e; return null; },
    querySelector: (s) => page.querySelector(s), querySelectorAll: (s) => page.querySelectorAll(s),
    createElement: (tag) => new Element(tag), createElementNS: (space, tag) => new Element(tag),
  };
  runInNewContext(scripts[scripts.length - 1].textContent, {
    document, performance, location: { hash }, history: { replaceState() {} }, Node: { COMMENT_NODE: COMMENT },
    window: { addEventListener() {}, matchMedia: () => ({ addEventListener() {} }) },
    getComputedStyle: () => ({ getPropertyValue: () => "red" }), requestAnimationFrame: (draw) => draw(), setTimeout, clearTimeout,
  });
  const event = (target) => ({ key, target, preventDefault() {} }), main = page.querySelector("main");
  if (key) page.heard.keydown(event(root));
  if (over) main.heard.pointerover(event(document.getElementById(over).firstChild));
  return {
    colours: root.classList.has("by-launch") + " " + page.querySelectorAll("form > button").map((b) => b.getAttribute("aria-pressed")).filter(Boolean),
    near: [...page.all()].filter((e) => e.classList.has("near")).map((e) => e.id).join(" "),
    shown: page.querySelectorAll("main > section").filter((s) => s.classList.has("shown")).map((s) => s.id).join(" "),
    way: page.querySelector("nav").textContent,
    pane: page.querySelector("#detail").textContent,
    found: page.querySelector("output").textContent,
    chosen: [...page.all()].filter((e) => e.classList.has("chosen")).map((e) => e.id).join(" "),
    mates: [...page.all()].filter((e) => e.classList.has("mate")).map((e) => e.id).join(" "),
    launches: page.querySelectorAll("details > summary").map((e) => e.textContent).filter((t) => /launches/.test(t)).join(", "),
    bars: ["bar", "code", "end"].map((word) => [...page.all()].filter((e) => e.classList.has(word)).length).join(" "),
    shape: page.querySelectorAll("g.chosen").map((e) => e.getAttribute("class") + ": " + e.textContent).join(),
    groups: page.querySelectorAll("a.group").filter((e) => e.classList.has("hit")).map((e) => e.getAttribute("href")).join(" "),
  };
}

const visits = [
  ["", { shown: "g0", way: "step", pane: "", chosen: "" }],
  ["#m0-2", { shown: "m0-2", way: "step \u203a forward \u203a h.0" }],
  ["#q=op:quantize_linear", { shown: "m0-1", found: "1 of 1", groups: "#m0-1", pane: /quantize_linear.*module.*the model itself/ }],
  ["#q=module:h.1 op:matmul", { found: "1 of 2", shown: "m0-3", pane: /bf16\[8,4\].*moduleh\.1\.fc/ }],
  ["#q=side:update", { found: "1 of 8", groups: "#m0-8", way: /^step \u203a update/ }],
  ["#q=precision:f64", { found: "1 of 1", pane: /^\u00d7cast/ }],
  ["#q=nothing of the kind", { shown: "g0", found: "nothing found", groups: "" }],
  ["#n2", { shown: "m0-2", chosen: /^n\d+$/, pane: /^\u00d7state.*h\.0\.fc\.weight/ }],
];

/* Of the step of tests/command/models/mlp.onnx. */
const launched = [
  ["", { mates: "", launches: "18 launches of @step, 4 launches of @eval" }],
  ["#n14", { chosen: "n14", mates: "n13 n14 n15", pane: /launch 0 of 18kindcontractpartforward.*reads92 byteswrites48 bytes.*withm matmul.*a abs/ }],
  ["#n19", { pane: /runsas one with loss mse.*launch 2 of 18/ }],
  ["#n30", { mates: "", pane: /runsnothing runs: it shows elements that lie elsewhere/ }],
  ["#n57", { pane: /launch 13 of 18.*launch 14 of 18.*launch 17 of 18.*beside15 to 17 run side by side/ }],
  ["#l0-16", { mates: "n53", chosen: "", shown: "g0", pane: /^.regionlaunch 16 of 18.*nodes%35 update_adam/ }],
  ["#l1-0", { shown: "g1", mates: "n67 n68 n69", pane: /launch 0 of 4/ }],
  ["#l0-99", { pane: "", mates: "" }],
  ["", { colours: "false false", near: "" }],
  ["", { colours: "true true" }, "l"],
  ["", { near: "n24 n25 n28", mates: "" }, "", "n25"],
  ["#n14", { near: "", mates: "n13 n14 n15" }, "", "n30"],
  ["#l0-16", { mates: "", chosen: "" }, "Escape"],
  ["#q=launch:5", { found: "1 of 3", chosen: "n24", mates: "n24 n25 n28" }],
];

/* Of the same step, its weights in four bits: the pane of their quantizer has figures, and bars with the ends of the codes. */
const quantized = [
  ["#q=fc1.weight.codes", { pane: /quantizer of fc1\.weightasint4:channel:minmax.*fornode 1 \/fc1\/MatMulcodes-7 to 7, 4 bits, 0 is 0scale0\.107 to 0\.143, 3 of themSQNR\d+\.\d dBclipped0 %codes used67 %of12 numbers/,
                            bars: "10 15 2", shape: /quant p-i4.*Q f32 \u2192 i4/ }],
  ["#q=precision:i4", { found: /^1 of \d+$/, shape: /p-i4/ }],
  ["#q=x.codes", { pane: /quantizer of xasuint8:tensor:ema.*rememberedin qcc\.range\/x/, bars: "0 0 0" }],
];

let failed = 0;
function look(html, all) {
  for (const [hash, wanted, key, over] of all) {
    const got = visit(html, hash, key, over);
    for (const key in wanted) {
      const ok = wanted[key] instanceof RegExp ? wanted[key].test(got[key]) : got[key] === wanted[key];
      if (!ok) console.log("%s: %s is %j, not %s", hash, key, got[key], wanted[key]);
      failed += !ok;
    }
  }
}

const [, , viewFile, step, qcc, model] = process.argv, page = { encoding: "utf8", maxBuffer: 1 << 28 };
look(execFileSync(viewFile, ["html", step], page), visits);
look(execFileSync(qcc, [model, "--batch", "2", "--loss", "mse", "--emit", "html"], page), launched);
look(execFileSync(qcc, [model, "--batch", "2", "--loss", "mse", "--quant", "w8a8,w=int4:channel", "--emit", "html"], page), quantized);
console.log("%d visits, %d failed", visits.length + launched.length + quantized.length, failed);
process.exit(failed ? 1 : 0);
