// Keeps pages that say data-live fresh: asks for the page again and puts in what has changed. Pages work
// without it; what is being typed, chosen or opened stays as it is.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const every = Number(main.dataset.live) || 2000;
  const shown = document.querySelector(".live-state");
  const pause = document.querySelector(".live-pause");
  let [failures, busy, paused, next] = [0, false, false, undefined];

  // Rows that something is chosen of say which they are: what is ticked stays ticked, whichever rows come and go.
  const key = (node) => node.dataset?.key;

  // Brings what there is of a name, or of none, to a place among its siblings; nothing if there is none.
  const find = (parent, at, name) => {
    const here = () => parent.childNodes[at];
    if (name === undefined) return here() && key(here()) === undefined ? here() : undefined;
    const found = [...parent.childNodes].slice(at).find((node) => key(node) === name);
    if (!found) return undefined;
    // Whatever has focus keeps it where it need not be moved.
    while (here() !== found && key(here()) === undefined) here().remove();
    if (here() !== found) parent.insertBefore(found, here());
    return found;
  };

  // Makes one node what the other is, changing as little as possible.
  const morph = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(document.importNode(fresh, true));
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.dataset.keep !== undefined) return;
    const field = /^(INPUT|TEXTAREA|SELECT|OPTION)$/.test(old.nodeName);
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
      if (field && (name === "value" || name === "checked" || name === "selected")) continue;
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.nodeName === "TEXTAREA") return;
    const theirs = [...fresh.childNodes];
    const stay = new Set(theirs.map(key));
    [...old.childNodes].forEach((node) => { if (key(node) !== undefined && !stay.has(key(node))) node.remove(); });
    theirs.forEach((node, at) => {
      const mine = find(old, at, key(node));
      if (mine) morph(mine, node);
      else old.insertBefore(document.importNode(node, true), old.childNodes[at] ?? null);
    });
    [...old.childNodes].slice(theirs.length).forEach((node) => node.remove());
  };

  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    const text = await answer.text();
    // What was asked for before a pause is not shown in it.
    if (paused) return;
    // Signed out meanwhile, or the thing is gone: the page itself says so.
    if (answer.redirected || (answer.status >= 400 && answer.status < 500)) return location.reload();
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main[data-live]");
    if (!fresh) return location.reload();
    morph(main, fresh);
  };

  const say = () => {
    if (!shown) return;
    shown.hidden = false;
    shown.textContent = paused ? "· paused" : failures ? "· not reached, trying again" : "· live";
  };

  const turn = async () => {
    // One that is under way goes on by itself.
    if (busy) return;
    busy = true;
    if (document.visibilityState === "visible") {
      try {
        await refresh();
        failures = 0;
      } catch {
        failures += 1;
      }
      say();
      document.documentElement.dataset.turns = String(Number(document.documentElement.dataset.turns || 0) + 1);
    }
    busy = false;
    clearTimeout(next);
    if (!paused) next = setTimeout(turn, Math.min(every * (failures + 1), 30000));
  };
  next = setTimeout(turn, every);

  // Until the page is left: who reads, or has it read aloud, is not interrupted.
  if (!pause) return;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    say();
    if (paused) clearTimeout(next);
    else turn();
  });
})();
