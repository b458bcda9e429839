// A consumer whose broker is away; a mapping and a filter that are tried first.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const resource = await world.resource();
  await world.go("consumers");
  await world.sees("There is none.");
  await world.picture("1-none");
  await world.follow("Try how a message becomes a document");
  await world.press("Try the mapping");
  await world.sees("http://api.example.com/users/7 put at revision 1");
  await world.picture("2-mapping");
  await page.getByLabel("Message").fill("{}");
  await world.press("Try the mapping");
  await world.sees("Rejected: missing");
  await world.press("Try the filter");
  await world.sees("Yes: the client should have this document.", "#filter-says");
  await page.getByLabel("Filter (CEL)").fill("document.status ==");
  await world.press("Try the filter");
  await world.sees("filter", "#problem");
  await world.picture("3-filter-refused");

  await world.go(`consumers/new?resource=${resource}`);
  await world.picture("4-form");
  await world.press("Create");
  await world.sees("active", "#state");
  await page.getByText("Settings", { exact: true }).click();
  await world.picture("5-consumer");
  await world.follow("Edit");
  const json = JSON.parse(await page.getByLabel("As JSON").inputValue());
  assert.deepStrictEqual(json.sqs, { queue: "users" });
  json.sqs = { queue: "accounts", endpoint: "http://127.0.0.1:1" };
  await page.getByLabel("As JSON").fill(JSON.stringify(json));
  await world.press("Save");
  await world.sees("accounts");
  await world.sees("Last error");
  await world.picture("6-broker-away");
  await world.follow("Pause");
  await world.press("Pause");
  await world.sees("paused", "#state");
  await world.follow("Resume");
  await world.press("Resume");
  await world.sees("active", "#state");
  await world.go("consumers");
  // The list says by itself what goes wrong, and the overview how many it does with.
  await world.sees("failing");
  await world.sees("Last error");
  await world.picture("7-consumers");
  await world.go("overview");
  await world.sees("1 failing", "#failing-consumers");
  await world.go("consumers");
  await page.locator("main table a").first().click();
  await world.follow("Delete");
  await world.press("Delete the consumer");
  await world.sees("There is none.");
};
