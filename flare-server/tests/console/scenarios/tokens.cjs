// Who may what: no token, a wrong one, one that may only look, one that may do everything; and pages of others.
"use strict";
const assert = require("node:assert");
const http = require("node:http");

module.exports = async (world, read, admin) => {
  let { page } = world;
  const as = { authorization: `Bearer ${admin}` };
  const resource = await world.resource("http://api.example.com/users/{id}", as);
  await world.go(`resources/${resource}?search=x`);
  assert.match(page.url(), /\/console\/sign-in\?/);
  await world.picture("1-sign-in");
  await page.getByLabel("API token").fill("a-token-that-nobody-has");
  await world.press("Sign in");
  await world.sees("This token is not known.");
  await world.picture("2-wrong");
  await page.getByLabel("API token").fill(read);
  await world.press("Sign in");
  // Where one wanted to go.
  await world.sees("None is like that.");
  assert.match(page.url(), /search=x$/);
  const [cookie] = await world.context.cookies();
  assert.deepStrictEqual(
    [cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path, cookie.expires],
    ["flare-token", true, "Strict", "/console", -1],
  );
  assert.ok(!(await page.content()).includes(read), "no page shows a token");

  // One that may only look is offered nothing, and refused everything.
  await world.go(`resources/${resource}`);
  await world.sees("Nobody is subscribed yet");
  for (const name of ["Delete", "New subscription"]) {
    assert.strictEqual(await page.getByRole("link", { name }).count(), 0, name);
  }
  await world.picture("3-read-only");
  assert.strictEqual((await world.go(`resources/${resource}/delete`)).status(), 403);
  await world.sees("Your token allows read, and this needs a token that allows admin.");
  await world.picture("4-not-allowed");
  const refused = await page.request.post(`${world.server}/console/resources/${resource}/delete`, {
    headers: { origin: world.server }, form: {},
  });
  assert.strictEqual(refused.status(), 403);
  await world.follow("Back to the overview");
  await world.press("Sign out");
  await page.waitForURL(/sign-in/);
  assert.deepStrictEqual(await world.context.cookies(), []);

  // A token that is not known any more.
  await world.context.addCookies([{ ...cookie, value: "a-token-of-yesterday" }]);
  await world.go("nodes");
  await world.sees("Your token is not known any more.");
  await world.picture("5-expired");

  await page.getByLabel("API token").fill(admin);
  await world.press("Sign in");
  await world.sees("Drain");
  assert.match(page.url(), /\/console\/nodes$/);

  // A page of somebody else that sends our form, in the browser of one who is signed in.
  const target = `${world.server}/console/resources/${resource}/delete`;
  const evil = http.createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end(`<form method="post" action="${target}"><button>Win a prize</button></form>`);
  });
  await new Promise((done) => evil.listen(0, "127.0.0.1", done));
  world.clients.push(evil);
  const other = `http://localhost:${evil.address().port}`;
  world.allowed = [other];
  await page.goto(other);
  await world.press("Win a prize");
  await page.getByText("was not sent from a page of this console").waitFor();
  await world.picture("6-forged");
  // Whatever cookies it may have brought along.
  const forged = await page.request.post(target, { headers: { origin: other }, form: {} });
  assert.strictEqual(forged.status(), 403);
  const crossSite = { "sec-fetch-site": "cross-site", origin: world.server };
  assert.strictEqual((await page.request.post(target, { headers: crossSite, form: {} })).status(), 403);
  await world.rest("GET", `/resources/${resource}`, undefined, as);
  // The same from our own page is done.
  await world.go(`resources/${resource}/delete`);
  await world.press("Delete the resource");
  await world.sees("There is no resource yet.");

  // Who it was is told, by the name of the token; so is who was not let in.
  await world.follow("Log");
  for (const told of ["ann", "deleted", "created", "refused", "unknown-token"]) await world.sees(told);
  await world.picture("7-log");
  await page.locator("tr", { hasText: "deleted" }).getByRole("link", { name: "only this" }).click();
  await world.sees(`Only what was done to resource/${resource}.`);
  assert.strictEqual(await page.locator("tbody tr").count(), 2);
  assert.ok(!(await page.content()).includes("unknown-token"));
};
