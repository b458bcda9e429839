// Runs one scenario: node run.cjs NAME FOLDER-FOR-PICTURES URL-OF-A-SERVER [MORE]. Fails with the first thing that is
// not as it should be, with a picture of the page then.
"use strict";
const { open } = require("./world.cjs");

const [name, pictures, server, ...more] = process.argv.slice(2);
const scenario = require("./scenarios/" + name.replaceAll("_", "-") + ".cjs");

(async () => {
  const world = await open(name, pictures, server);
  try {
    await scenario(world, ...more);
    world.check();
  } catch (error) {
    await world.picture("failed").catch(() => {});
    console.error(error.stack);
    console.error(`the page was ${world.page?.url()}\n${world.said.join("\n")}`);
    process.exitCode = 1;
  } finally {
    await world.close();
  }
})();
