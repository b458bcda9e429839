// Every page with something on it: nobody is kept out, nothing is wider than a phone, names do no harm; light and dark.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const failing = await world.client();
  failing.answer = 503;
  const resource = await world.resource();
  const long = "a-very-long-name-that-goes-on-and-on".repeat(5);
  const hostile = "%3Cscript%3Ealert(1)%3C/script%3E";
  const never = { delivery: { retry: { numRetries: 0 } } };
  const id = await world.subscription(resource, `${failing.url}/${hostile}${long}`, never);
  await world.subscription(resource, `${failing.url}/other`, { filter: "document.a == '<img src=x onerror=alert(1)>'" });
  await world.rest("POST", `/resources/${resource}/subscriptions`, { mode: "passive" });
  const document = `http://api.example.com/users/${long}`;
  const script = '<script>alert(1)</script>"\'&';
  await world.rest("PUT", `/documents/${document}`, { rev: 1, name: script });
  await world.go(`subscriptions/${id}`);
  await world.sees("1", "#dead-letters");

  await world.rest("POST", `/resources/${resource}/subscriptions/${id}/resync`);

  const pages = [
    "overview", "subscriptions", `subscriptions?search=${encodeURIComponent(script)}`, `subscriptions/${id}`,
    `subscriptions/${id}/dead-letters`, `subscriptions/${id}/edit`, `subscriptions/${id}/delete`,
    `subscriptions/${id}/replay`, `subscriptions/${id}/resync`, "resources", "resources/new", `resources/${resource}`,
    `resources/${resource}/delete`, `resources/${resource}/subscriptions/new`, "documents",
    `documents?url=${encodeURIComponent(document)}`, `documents?url=${encodeURIComponent(script)}`,
    `documents/put?url=${encodeURIComponent(document)}`, `documents/delete?url=${encodeURIComponent(document)}`,
    "consumers", "consumers/new", "nodes", "slots", "slots/0/pin", "jobs", "log",
    `log?subject=subscription/${id}`, `log?subject=${encodeURIComponent(script)}`, "try", "nothing-here",
    `nodes/${encodeURIComponent(script)}/drain`,
  ];
  const called = (where) => where.replaceAll(/[0-9a-f-]{36}/g, "id").replaceAll(/[^a-z-]+/g, "_").slice(0, 50);
  for (const [look, settings] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["phone", { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
  ]) {
    const page = await world.visit(settings);
    let alerted = false;
    page.on("dialog", (dialog) => { alerted = true; dialog.dismiss(); });
    for (const [number, where] of pages.entries()) {
      await world.go(where);
      const name = `${look}-${String(number).padStart(2, "0")}-${called(where)}`;
      await world.picture(name);
      await world.fits(name);
      if (look === "light") await world.judge(name);
      // The same page in other colours.
      if (look === "dark") await world.judge(name, ["color-contrast"]);
    }
    assert.ok(!alerted, "a name was run as a script");
  }
  // A choice of colours beats the system's, and is kept.
  const page = await world.visit({ colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await world.go("nodes");
  const light = await ground();
  await page.getByRole("button", { name: "Colours: dark" }).click();
  await world.sees("Nodes");
  assert.match(page.url(), /\/console\/nodes$/);
  const dark = await ground();
  assert.notStrictEqual(dark, light);
  await world.go("overview");
  assert.strictEqual(await ground(), dark);
  await page.getByRole("button", { name: "Colours: system" }).click();
  await world.sees("Overview");
  assert.strictEqual(await ground(), light);
  const systems = await world.visit({ colorScheme: "dark" });
  await world.go("overview");
  assert.strictEqual(await systems.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
};
