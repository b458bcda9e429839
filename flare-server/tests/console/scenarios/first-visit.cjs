// From nothing to a delivery that arrives while one looks.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const client = await world.client();
  await page.goto(`${world.server}/console`);
  assert.match(page.url(), /\/console\/overview$/);
  await world.sees("Nothing is set up yet");
  await world.sees("green", "#health");
  await world.picture("1-overview-empty");

  await world.follow("Create the first resource");
  await page.getByLabel("Endpoint").fill("http://api.example.com/users");
  await page.getByLabel("Revision field").fill("rev");
  await world.press("Create");
  await world.sees("wildcard", "#problem");
  await world.picture("2-resource-refused");
  await page.getByLabel("Endpoint").fill("http://api.example.com/users/{id}");
  await world.press("Create");
  await world.sees("Nobody is subscribed yet");
  await world.picture("3-resource-empty");

  await world.follow("New subscription");
  await page.getByLabel("URL that is told").fill(`${client.url}/{nothing}`);
  await world.press("Create");
  await world.sees("{nothing}, which the resource does not", "#problem");
  await page.getByLabel("URL that is told").fill(`${client.url}/hook/{id}`);
  await page.getByText("Further settings, as JSON").click();
  await page.getByLabel("Further settings", { exact: true }).fill('{"delivery": {"concurrency": 4}}');
  await world.picture("4-subscription-form");
  await world.press("Create");
  await world.sees("The client has the newest version of every document.");
  await world.sees("0", "#delivered");
  await world.picture("5-subscription");

  // Nothing is loaded again from here on: what changes, changes on the page.
  await page.evaluate(() => { window.theSame = true; });
  await world.put(1, 1);
  await world.sees("1", "#delivered");
  assert.strictEqual(await page.evaluate(() => window.theSame), true);
  assert.strictEqual(client.told.length, 1);
  await world.picture("6-delivered");

  await page.getByText("Settings", { exact: true }).click();
  await world.sees('"concurrency": 4');
  await world.follow("Edit");
  await page.getByLabel("Filter", { exact: true }).fill("document.vip == true");
  await world.picture("7-edit");
  await world.press("Save");
  await world.sees("Changed.");
  await page.getByText("Settings", { exact: true }).click();
  await world.sees("document.vip == true");
  // What is open stays open while the page keeps itself fresh.
  const turns = await page.evaluate(() => Number(document.documentElement.dataset.turns ?? 0));
  await page.waitForFunction((turns) => Number(document.documentElement.dataset.turns) >= turns + 2, turns);
  assert.ok(await page.getByText('"concurrency": 4').isVisible());

  await world.go("overview");
  await world.sees("Nobody: nothing waits for any client.");
  await world.picture("8-overview");
  await world.go("resources");
  await world.picture("9-resources");

  // A resource that is in use says why it stays; without subscriptions it goes.
  await world.follow("http://api.example.com/users/{id}");
  await world.follow("Delete");
  await world.sees("It has 1 subscription and 0 consumers: delete these first.");
  assert.strictEqual(await page.getByRole("button", { name: "Delete the resource" }).count(), 0);
  await world.picture("10-delete-impossible");
  await world.follow("Back");
  await page.locator("main table a").first().click();
  await world.follow("Delete");
  await world.sees("There is no way back.");
  await world.picture("11-delete-subscription");
  await world.press("Delete the subscription");
  await world.sees("Deleted.");
  await world.go("resources");
  await world.follow("http://api.example.com/users/{id}");
  await world.follow("Delete");
  await world.press("Delete the resource");
  await world.sees("There is no resource yet.");
  await world.picture("12-resources-empty");
};
