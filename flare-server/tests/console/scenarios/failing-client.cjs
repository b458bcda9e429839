// A client that fails: seen, explained, given up, mended and told again.
"use strict";
const assert = require("node:assert");

module.exports = async (world) => {
  const { page } = world;
  const [well, failing, down] = [await world.client(), await world.client(), await world.client()];
  [failing.answer, down.answer] = [500, 500];
  const resource = await world.resource();
  await world.subscription(resource, `${well.url}/well`);
  const never = { delivery: { retry: { numRetries: 1, minDelayTarget: 1, maxDelayTarget: 1 } } };
  const given = await world.subscription(resource, `${failing.url}/given-up`, never);
  const later = { delivery: { retry: { numRetries: 9, minDelayTarget: 900, maxDelayTarget: 900 } } };
  const tried = await world.subscription(resource, `${down.url}/tried-again`, later);
  for (let id = 1; id <= 3; id += 1) await world.put(id, 1);

  await world.go(`subscriptions/${given}`);
  await world.sees("3", "#dead-letters");
  await world.sees("answered 500", "#last-error");
  await world.sees(/failing|probing/, "#state");
  await world.picture("1-failing");
  await world.go("overview");
  await world.sees("tried-again");
  await world.sees("the database is away");
  await world.picture("2-overview");

  await world.go("documents?url=http://api.example.com/users/1");
  await world.sees("given up");
  await world.sees("An attempt failed; it is tried again.");
  await world.sees("has it");
  await world.picture("3-who-has-it");

  await world.go(`subscriptions/${given}/dead-letters`);
  await world.sees("http://api.example.com/users/3");
  await world.picture("4-dead-letters");
  await world.press("Replay the chosen");
  await world.sees("None is chosen");
  await page.goBack();
  await page.getByLabel("Choose http://api.example.com/users/2").check();
  failing.answer = 204;
  await world.press("Replay the chosen");
  await world.sees("1 notification is tried again now");
  await world.picture("5-replay");
  await world.press("Replay");
  await world.sees("Replayed");
  await page.getByText("users/1").waitFor();
  assert.strictEqual(await page.getByText("users/2").count(), 0);
  await world.follow("Replay all");
  await world.sees("2 notifications");
  await world.press("Replay");
  await world.sees("nothing was given up");
  await world.go(`subscriptions/${given}`);
  await world.sees("3", "#delivered");

  // The other one waits for its next attempt; it need not.
  await world.go(`subscriptions/${tried}`);
  await world.sees("3", "#lag");
  down.answer = 204;
  await world.follow("Retry now");
  await world.press("Retry now");
  await world.sees("0", "#lag");
  await world.sees("active", "#state");

  await world.follow("Pause");
  await world.sees("Nothing is sent from then on");
  await world.picture("6-pause");
  await world.press("Pause");
  await world.sees("paused", "#state");
  await world.put(1, 2);
  await world.sees("1", "#lag");
  await world.picture("7-paused");
  await world.go("documents?url=http://api.example.com/users/1");
  await world.sees("The subscription is paused: resume it.");
  await world.go(`subscriptions/${tried}`);
  await world.follow("Resume");
  await world.press("Resume");
  await world.sees("0", "#lag");
  await world.go("subscriptions?search=given");
  assert.strictEqual(await page.locator("main tbody tr").count(), 1);
  await world.go("subscriptions?status=suspended");
  await world.sees("None is like that.");
  await world.go("subscriptions");
  await world.picture("8-subscriptions");
};
