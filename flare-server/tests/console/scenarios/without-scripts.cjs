// Scripts off: everything is links and forms.
"use strict";

module.exports = async (world) => {
  const client = await world.client();
  const page = await world.visit({ javaScriptEnabled: false, colorScheme: "dark" });
  await world.go("resources/new");
  await page.getByLabel("Endpoint").fill("http://api.example.com/users/{id}");
  await page.getByLabel("Revision field").fill("rev");
  await world.press("Create");
  await world.sees("Nobody is subscribed yet");
  await world.follow("New subscription");
  await page.getByLabel("URL that is told").fill(`${client.url}/`);
  await world.press("Create");
  await world.sees("0", "#delivered");
  await world.put(1, 1);
  for (;;) {
    await page.reload();
    if ((await page.locator("#delivered").textContent()) === "1") break;
  }
  await world.picture("1-delivered");
  await world.follow("Pause");
  await world.press("Pause");
  await world.sees("paused", "#state");
  await world.follow("Resume");
  await world.press("Resume");
  await world.sees("active", "#state");
  await world.go("documents/put?url=http%3A%2F%2Fapi.example.com%2Fusers%2F1");
  await page.getByLabel("Content").fill('{"rev": 2}');
  await world.press("Put");
  await world.sees("Stored: updated.");
  await world.go("documents/put?url=http%3A%2F%2Fapi.example.com%2Fusers%2F1");
  await page.getByLabel("Content").fill("[]");
  await world.press("Put");
  await world.sees("This was not done.");
  await world.picture("2-put-refused");
  await world.go("documents?url=http%3A%2F%2Fapi.example.com%2Fusers%2F1");
  await world.follow("Delete");
  await world.press("Delete the document");
  await world.sees("No such document is there now");
  await world.picture("3-deleted");
};
