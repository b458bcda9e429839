// Keeps pages that say data-live fresh: asks for the page again and puts in what has changed. Pages work
// without it; what is being typed, chosen or opened stays as it is.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const every = Number(main.dataset.live) || 2000;
  const shown = document.querySelector(".live-state");
  let failures = 0;

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
    const [mine, theirs] = [[...old.childNodes], [...fresh.childNodes]];
    theirs.forEach((node, at) => {
      if (at < mine.length) morph(mine[at], node);
      else old.append(document.importNode(node, true));
    });
    mine.slice(theirs.length).forEach((node) => node.remove());
  };

  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    // Signed out meanwhile, or the thing is gone: the page itself says so.
    if (answer.redirected || (answer.status >= 400 && answer.status < 500)) return location.reload();
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main[data-live]");
    if (!fresh) return location.reload();
    morph(main, fresh);
  };

  const turn = async () => {
    if (document.visibilityState === "visible") {
      try {
        await refresh();
        failures = 0;
      } catch {
        failures += 1;
      }
      if (shown) {
        shown.hidden = false;
        shown.textContent = failures ? "· not reached, trying again" : "· live";
      }
      document.documentElement.dataset.turns = String(Number(document.documentElement.dataset.turns || 0) + 1);
    }
    setTimeout(turn, Math.min(every * (failures + 1), 30000));
  };
  setTimeout(turn, every);
})();
