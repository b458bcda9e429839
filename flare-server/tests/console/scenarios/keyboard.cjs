// Everything by keys alone: what is reached is seen to be, in the order of reading.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const client = await world.client();
  const focused = () => page.evaluate(() => {
    const it = document.activeElement;
    return it.labels?.[0]?.innerText ?? it.getAttribute("aria-label") ?? it.innerText;
  });
  // Tabs until something of that name is reached.
  const reach = async (name) => {
    for (let tabs = 0; tabs < 60; tabs += 1) {
      await page.keyboard.press("Tab");
      if ((await focused())?.trim().startsWith(name)) {
        const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
        assert.notStrictEqual(outline, "none", `${name} is not seen to be reached`);
        return;
      }
    }
    assert.fail(`${name} is not reached`);
  };
  const enter = async (name) => {
    await reach(name);
    await page.keyboard.press("Enter");
  };
  await world.go("overview");
  await page.keyboard.press("Tab");
  assert.strictEqual(await focused(), "Skip to the content");
  await world.picture("1-skip");
  await page.keyboard.press("Enter");
  await enter("Create the first resource");
  await page.waitForURL(/resources\/new/);
  await reach("Endpoint");
  await page.keyboard.type("http://api.example.com/users/{id}");
  await reach("Revision field");
  await page.keyboard.type("rev");
  await page.keyboard.press("Enter");
  await world.sees("Nobody is subscribed yet");
  await enter("New subscription");
  await page.waitForURL(/subscriptions\/new/);
  await reach("URL that is told");
  await page.keyboard.type(`${client.url}/`);
  await world.picture("2-form");
  await page.keyboard.press("Enter");
  await world.sees("The client has the newest version");
  await enter("Pause");
  await page.waitForURL(/pause$/);
  await enter("Pause");
  await world.sees("paused", "#state");
  await world.picture("3-paused");
};
