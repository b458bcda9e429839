// Pages keep themselves fresh: what is ticked stays ticked whichever rows go, and nothing moves while it is paused.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const client = await world.client();
  client.answer = 500;
  const resource = await world.resource();
  const never = { delivery: { retry: { numRetries: 0 } } };
  const id = await world.subscription(resource, `${client.url}/{id}`, never);
  for (const user of ["a", "b", "c"]) await world.put(user, 1);
  await world.go(`subscriptions/${id}`);
  await world.sees("3", "#dead-letters");

  await world.go(`subscriptions/${id}/dead-letters`);
  const user = (name) => page.getByLabel(`Choose http://api.example.com/users/${name}`);
  await user("b").check();
  await user("c").focus();
  client.answer = 204;
  const letters = `/resources/${resource}/subscriptions/${id}/dead-letters`;
  const listed = (await world.rest("GET", letters)).deadLetters;
  const first = listed.find((it) => it.document.endsWith("/a"));
  await world.rest("POST", `/resources/${resource}/subscriptions/${id}/replay`, { deadLetters: [first.id] });
  await user("a").waitFor({ state: "detached" });
  assert.ok(await user("b").isChecked(), "what was ticked is");
  assert.ok(!(await user("c").isChecked()), "nothing else is");
  assert.ok(await user("c").evaluate((it) => it === document.activeElement), "keys are where they were");
  await world.press("Replay the chosen");
  await world.sees("1 notification is tried again now");
  await world.press("Replay");
  await user("b").waitFor({ state: "detached" });
  await user("c").waitFor();

  // Time is the test's from here on.
  await page.clock.install();
  await world.go("resources");
  const pause = page.getByRole("button", { name: "Pause updates" });
  assert.strictEqual(await pause.getAttribute("aria-pressed"), "false");
  await pause.click();
  await world.sees("paused", ".live-state");
  assert.strictEqual(await pause.getAttribute("aria-pressed"), "true");
  await world.picture("1-paused");
  await world.judge("a page that is paused");
  await world.resource("http://api.example.com/orders/{id}");
  let asked = 0;
  page.on("request", () => { asked += 1; });
  await page.clock.runFor(60_000);
  assert.strictEqual(asked, 0, "nothing is asked for in a minute of pause");
  await pause.click();
  await world.sees("orders");
  await world.sees("live", ".live-state");
  await world.resource("http://api.example.com/shops/{id}");
  await page.clock.runFor(5_000);
  await world.sees("shops");
  // A page that does not change by itself has nothing to pause.
  await world.go("resources/new");
  assert.strictEqual(await page.getByRole("button", { name: "Pause updates" }).count(), 0);
};
