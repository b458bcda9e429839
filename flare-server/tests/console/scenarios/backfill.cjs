// A client that comes late is given what is there, under one's eyes; and one that lost its data.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const client = await world.client();
  const resource = await world.resource();
  for (let id = 1; id <= 60; id += 1) await world.put(id, 1);
  const id = await world.subscription(resource, `${client.url}/late`, { delivery: { concurrency: 2 } });
  let release;
  client.gate = new Promise((done) => { release = done; });
  await world.go(`subscriptions/${id}`);
  await world.follow("Backfill");
  await world.sees("Every document that is there and that the client does not hold");
  await world.picture("1-backfill");
  await world.press("Backfill");
  await world.sees("Backfill under way");
  await page.waitForFunction(() => document.querySelector("#lag").textContent !== "0");
  assert.strictEqual(await page.getByRole("link", { name: "Backfill", exact: true }).count(), 0);
  await world.picture("2-under-way");
  await world.go(`subscriptions/${id}/backfill`);
  await world.sees("A backfill is under way.");
  await world.go(`subscriptions/${id}`);
  release();
  client.gate = undefined;
  await world.sees("Backfill done");
  await world.sees("60", "#delivered");
  await world.picture("3-done");

  await world.follow("Resync");
  await page.getByLabel("Only URLs that begin with").fill("http://api.example.com/users/5");
  await world.picture("4-resync");
  await world.press("Resync");
  await world.sees("Resync done");
  await world.sees("71", "#delivered");

  await world.follow("Pin");
  await world.press("Pin");
  await world.sees("Pinned.");
  await page.getByRole("link", { name: "Unpin" }).waitFor();
  await world.follow("Unpin");
  await world.press("Unpin");
  await page.getByRole("link", { name: "Pin", exact: true }).waitFor();
};
