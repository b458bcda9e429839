// Two nodes, of which one is asked to leave; a slot that belongs to the other.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const client = await world.client();
  const resource = await world.resource();
  const id = await world.subscription(resource, `${client.url}/`);
  const shared = () => {
    const slots = [...document.querySelectorAll("main tbody td[data-label=Slots]")].map((it) => parseInt(it.textContent.replace(",", ""), 10));
    return slots.length === 2 && slots.every((it) => it > 0);
  };
  await world.go("nodes");
  await page.waitForFunction(shared);
  await world.sees("green", "#health");
  await world.picture("1-nodes");

  await world.go("slots");
  await world.picture("2-slots");
  await world.go("slots/7/pin");
  await page.getByLabel("Node").selectOption("second");
  await world.picture("3-pin");
  await world.press("Pin");
  await world.sees("Pinned.");
  await page.waitForFunction(() => document.querySelector("main tbody td[data-label='Worked by']").textContent.trim() === "second");
  await world.picture("4-pinned");
  await world.go("slots/7/pin");
  await page.getByLabel("Node").selectOption("(none: as the plan says)");
  await world.press("Pin");
  await world.sees("The pin is taken back.");

  await world.go("nodes");
  await page.locator("tbody tr").filter({ hasText: "second" }).getByRole("link", { name: "Drain" }).click();
  await world.sees("hands its");
  await world.picture("5-drain");
  await world.press("Drain the node");
  await world.sees("The node was asked to hand over and leave.");
  await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 1);
  await world.sees("green", "#health");
  await world.picture("6-left");
  // What is put is delivered by the one that is left; it cannot leave, too.
  await world.put(1, 1);
  await world.go(`subscriptions/${id}`);
  await world.sees("1", "#delivered");
  await world.go("nodes");
  await world.follow("Drain");
  await world.sees("It is the only node that works");
  assert.strictEqual(await page.getByRole("button", { name: "Drain the node" }).count(), 0);
  await world.picture("7-last");
};
