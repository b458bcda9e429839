// What scenarios work with: a browser and its page, the REST interface of a server, clients to be told. Waits for
// conditions, never for a time.
"use strict";
const assert = require("node:assert");
const http = require("node:http");
const path = require("node:path");
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;

// Only a scenario that fails waits for so long.
const PATIENCE = Number(process.env.PATIENCE ?? 45_000);

exports.open = async (name, pictures, server) => {
  const browser = await chromium.launch({
    executablePath: process.env.FLARE_CHROMIUM,
    args: [
      "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
      "--disable-quic", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
    ],
  });
  const world = new World(browser, pictures, server);
  await world.visit({});
  return world;
};

class World {
  constructor(browser, pictures, server) {
    Object.assign(this, { browser, pictures, server, said: [], elsewhere: [], clients: [], contexts: [] });
  }

  // A browser of somebody else: no cookies, and set up as asked.
  async visit(settings) {
    this.context = await this.browser.newContext({ viewport: { width: 1200, height: 800 }, ...settings });
    this.context.setDefaultTimeout(PATIENCE);
    this.contexts.push(this.context);
    if (settings.javaScriptEnabled !== false) {
      await this.context.addInitScript(() => {
        document.addEventListener("securitypolicyviolation", (it) => {
          console.error(`CSP: ${it.violatedDirective} ${it.blockedURI} ${it.sample}`);
        });
      });
    }
    this.page = await this.context.newPage();
    this.page.on("console", (message) => {
      // An answer that is an error is no mistake of a page; what it shows is looked at.
      const failed = /Failed to load resource: the server responded/.test(message.text());
      if (message.type() === "error" && !failed) this.said.push(message.text());
    });
    this.page.on("pageerror", (error) => this.said.push(String(error)));
    this.page.on("request", (request) => {
      if (!this.isOurs(request.url())) this.elsewhere.push(request.url());
    });
    return this.page;
  }

  isOurs(url) {
    return url.startsWith(this.server) || url.startsWith("data:") || (this.allowed ?? []).some((it) => url.startsWith(it));
  }

  // What has to hold of every scenario.
  check() {
    assert.deepStrictEqual(this.said, [], "errors on pages");
    assert.deepStrictEqual(this.elsewhere, [], "requests to elsewhere");
  }

  async close() {
    for (const context of this.contexts) await context.close().catch(() => {});
    await this.browser.close();
    this.clients.forEach((client) => { client.closeAllConnections(); client.close(); });
  }

  async go(where) {
    const answer = await this.page.goto(`${this.server}/console/${where}`);
    const policy = answer.headers()["content-security-policy"] ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|http:|https:/);
    return answer;
  }

  picture(name) {
    return this.page.screenshot({ path: path.join(this.pictures, `${name}.png`), fullPage: true });
  }

  // Waits until there is such a text; tells what there is instead if not.
  async sees(text, where = "main") {
    await this.page.locator(where).filter({ hasText: text }).first().waitFor();
  }

  async press(name) {
    await this.page.getByRole("button", { name, exact: true }).click();
  }

  async follow(name) {
    await this.page.getByRole("link", { name, exact: true }).first().click();
  }

  // Nothing that keeps people out, by axe.
  async judge(what, rules) {
    const settings = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
    const found = await this.page.evaluate(`${axe}; axe.run(document, ${JSON.stringify(settings)})`);
    const grave = found.violations.filter((it) => ["serious", "critical"].includes(it.impact));
    const told = grave.map((it) => `${it.id}: ${it.nodes.map((node) => `${node.html}\n${node.failureSummary}`).join("\n")}`);
    assert.deepStrictEqual(told, [], `accessibility of ${what}`);
  }

  // The page is no wider than the window.
  async fits(what) {
    const page = await this.page.evaluate(() => document.documentElement.scrollWidth);
    // Not what the page says its window is: a phone's grows with what is too wide.
    const { width } = this.page.viewportSize();
    assert.ok(page <= width, `${what} is ${page} wide in a window of ${width}`);
  }

  async rest(method, path, body, headers = {}) {
    const answer = await fetch(`${this.server}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  async resource(endpoint = "http://api.example.com/users/{id}", headers = {}) {
    return (await this.rest("POST", "/resources", { endpoint, change: { field: "rev" } }, headers)).id;
  }

  async subscription(resource, url, more = {}) {
    return (await this.rest("POST", `/resources/${resource}/subscriptions`, { endpoint: { url }, ...more })).id;
  }

  put(id, rev, more = {}) {
    return this.rest("PUT", `/documents/http://api.example.com/users/${id}`, { rev, ...more });
  }

  // A client to be told: it answers what its `answer` is, when its `gate` lets it, and remembers what it was sent.
  async client() {
    const client = http.createServer((request, response) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", async () => {
        client.told.push(Buffer.concat(parts).toString());
        await client.gate;
        response.writeHead(client.answer).end(client.answer < 300 ? "" : "the database is away");
      });
    });
    Object.assign(client, { told: [], answer: 204, gate: undefined });
    await new Promise((done) => client.listen(0, "127.0.0.1", done));
    client.url = `http://127.0.0.1:${client.address().port}`;
    this.clients.push(client);
    return client;
  }
}
