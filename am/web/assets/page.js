"use strict";
// Updates the parts of the page that are marked with data-live when the job has changed.
// The page is whole without this script.
(() => {
  const body = document.body;
  let shown = new Map(); // what each live part was last
  let busy = false, again = false, timer = 0;
  let drag = null; // what is being selected with a pointer

  const remember = (from) => {
    for (const part of from.querySelectorAll("[data-live]")) shown.set(part.id, part.innerHTML);
  };

  // A part in which text is selected stays as it is.
  const selecting = (part) => {
    const s = getSelection();
    return s && !s.isCollapsed && part.contains(s.anchorNode);
  };

  // Whether a node can become another: an element with an id, and a link, is itself only.
  const alike = (a, b) => a.nodeName === b.nodeName && (!a.attributes || ["id", "href"].every((name) => a.getAttribute(name) === b.getAttribute(name)));

  // Gives a node the attributes, text and children of another. What both have stays the same
  // node, so that a click ends on what it began on; what a person has opened stays open.
  const become = (node, next) => {
    if (!node.attributes) {
      if (node.nodeValue !== next.nodeValue) node.nodeValue = next.nodeValue;
      return;
    }
    const theirs = (name) => name === "open" && node.nodeName === "DETAILS";
    for (const { name } of [...node.attributes]) if (!next.hasAttribute(name) && !theirs(name)) node.removeAttribute(name);
    for (const { name, value } of next.attributes) if (node.getAttribute(name) !== value && !theirs(name)) node.setAttribute(name, value);
    children(node, next);
  };

  const children = (node, next) => {
    const stay = new Set([...next.children].map((c) => c.id).filter(Boolean));
    const drop = (gone) => {
      const after = gone.nextSibling;
      gone.remove();
      return after;
    };
    let at = node.firstChild;
    for (const wanted of [...next.childNodes]) {
      while (at?.id && !stay.has(at.id)) at = drop(at);
      let same = at && alike(at, wanted) ? at : null;
      if (!same && wanted.id) same = [...node.children].find((c) => alike(c, wanted));
      if (same) become(same, wanted);
      if (same && same === at) at = at.nextSibling;
      else node.insertBefore(same ?? wanted, at);
    }
    while (at) at = drop(at);
  };

  const replace = (part, next) => {
    if (shown.get(part.id) === next.innerHTML || selecting(part) || (drag && part.contains(drag.part))) return;
    const active = document.activeElement;
    const focused = part.contains(active) ? (active.id || active.closest("[id]").id) : "";
    const href = focused && active.getAttribute("href");
    const log = part.querySelector("pre.log");
    const at = log && (log.scrollHeight - log.scrollTop - log.clientHeight < 20 ? Infinity : log.scrollTop);
    shown.set(part.id, next.innerHTML);
    children(part, next);
    // What is read at its end goes on there.
    if (log) part.querySelector("pre.log")?.scrollTo(0, at === Infinity ? 1e9 : at);
    if (!focused || document.activeElement === active) return;
    const target = document.getElementById(focused);
    const to = href ? [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === href) : target?.querySelector("summary") ?? target;
    to?.focus({ preventScroll: true });
  };

  // What a proxy answers in place of a page, as one to log in on, is none.
  const parse = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    return page.body.dataset.updates === undefined ? null : page;
  };

  const update = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(30000) });
      const page = answer.ok && parse(await answer.text());
      if (!page) throw new Error(answer.statusText);
      document.title = page.title;
      body.dataset.updates = page.body.dataset.updates;
      body.dataset.pace = page.body.dataset.pace;
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = page.getElementById(part.id);
        if (next) replace(part, next);
      }
      document.getElementById("connection").hidden = true;
    } catch {
      document.getElementById("connection").hidden = false;
    }
    busy = false;
    if (again) { again = false; update(); }
  };

  const poll = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      if (!document.hidden) await update();
      if (body.dataset.updates) poll();
    }, Math.max(3000, Number(body.dataset.pace)));
  };

  // Only a page that can be seen has a connection of its own, since browsers open few to a host.
  let events = null;
  const listen = () => {
    events = new EventSource("changes");
    events.addEventListener("change", update);
    events.addEventListener("end", () => { leave(); update(); });
    events.addEventListener("error", () => {
      document.getElementById("connection").hidden = false;
      // It was refused; otherwise the browser connects again by itself.
      if (events?.readyState === EventSource.CLOSED) poll();
    });
    events.addEventListener("open", () => { document.getElementById("connection").hidden = true; });
  };

  const leave = () => {
    events?.close();
    events = null;
  };

  document.querySelector("pre.log")?.scrollTo(0, 1e9);
  remember(document);
  if (body.dataset.updates === "events" && !document.hidden) listen();
  if (body.dataset.updates === "poll") poll();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return leave();
    if (body.dataset.updates === "events" && !events && !timer) listen();
    if (body.dataset.updates) update();
  });

  // A link to something that is closed opens it.
  const reveal = () => {
    const at = location.hash && document.getElementById(location.hash.slice(1)); // ids are of letters that addresses have
    if (at instanceof HTMLDetailsElement) {
      at.open = true;
      at.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Dragging over the timeline or a chart shows that part of the job's life.
  body.classList.add("scripted");
  const xOf = (e) => {
    const r = drag.svg.getBoundingClientRect();
    return Math.min(Math.max((e.clientX - r.left) / r.width, 0), 1);
  };
  const drop = () => {
    drag?.mark?.remove();
    drag = null;
  };
  document.addEventListener("pointerdown", (e) => {
    const part = e.button === 0 && e.isPrimary && e.target.closest("[data-from]");
    let svg = part && e.target.closest("svg");
    while (svg?.ownerSVGElement) svg = svg.ownerSVGElement;
    if (!svg) return;
    drag = { part, svg, id: e.pointerId, at: e.clientX };
    drag.from = xOf(e);
  });
  document.addEventListener("pointermove", (e) => {
    if (!drag || e.pointerId !== drag.id || (!drag.mark && Math.abs(e.clientX - drag.at) < 6)) return;
    if (!drag.mark) {
      drag.mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      drag.mark.setAttribute("class", "select");
      drag.mark.setAttribute("height", "100%");
      drag.svg.append(drag.mark);
      getSelection()?.removeAllRanges();
    }
    const to = xOf(e);
    drag.mark.setAttribute("x", Math.min(drag.from, to) * 100 + "%");
    drag.mark.setAttribute("width", Math.abs(to - drag.from) * 100 + "%");
  });
  document.addEventListener("pointerup", (e) => {
    if (!drag || e.pointerId !== drag.id) return;
    const { part, mark, from } = drag, to = xOf(e);
    drop();
    if (!mark) return;
    // The click that follows is none of what is below.
    addEventListener("click", (c) => { c.preventDefault(); c.stopPropagation(); }, { capture: true, once: true });
    const begin = Number(part.dataset.from), width = Number(part.dataset.to) - begin;
    const second = (x, round) => new Date(round((begin + x * width) / 1000) * 1000).toISOString().replace(".000", "");
    const query = new URLSearchParams(location.search);
    query.delete("span");
    query.set("from", second(Math.min(from, to), Math.floor));
    query.set("to", second(Math.max(from, to), Math.ceil));
    location.assign("?" + query + (part.closest("[data-live]") ? "#" + part.closest("[data-live]").id : ""));
  });
  document.addEventListener("pointercancel", drop);
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") drop(); });
  document.addEventListener("dragstart", (e) => { if (drag) e.preventDefault(); });

  // A change is sent with PUT, which YARN's proxy passes on, and in a type that the proxy does
  // not read as a form. What has come of it replaces the plan.
  document.addEventListener("submit", async (e) => {
    const form = e.target.closest("form[data-change]");
    if (!form) return;
    e.preventDefault();
    const button = form.querySelector("button"), main = document.querySelector("main");
    button.disabled = true;
    const told = document.createElement("p");
    told.className = "why";
    told.setAttribute("role", "status");
    told.textContent = "It is being done; this can take a while.";
    form.append(told);
    try {
      const answer = await fetch(form.action, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: new URLSearchParams(new FormData(form)).toString() });
      const text = await answer.text();
      const outcome = parse(text)?.querySelector("main");
      if (outcome) main.replaceChildren(...outcome.childNodes);
      else if (answer.ok) throw new Error("it is another page");
      else told.textContent = text || answer.statusText;
    } catch {
      told.textContent = "The page does not answer: whether it was done, the list of checkpoints says.";
    }
  });

  // The filter of tasks applies as it is typed.
  let typing = 0;
  const filter = document.getElementById("filter");
  const apply = () => {
    const given = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value));
    history.replaceState(null, "", "?" + given);
    update();
  };
  filter?.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(apply, 200); });
  filter?.addEventListener("submit", (e) => { e.preventDefault(); apply(); });
})();
