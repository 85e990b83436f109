// SPDX-License-Identifier: Apache-2.0

// Calls what it is asked to, each a line of JSON on the standard input, and reports
// the results; see asker in ask_test.go.
'use strict';

const grpc = require('@grpc/grpc-js');
const readline = require('node:readline');

require('@grpc/grpc-js-xds').register();

const bytes = (b) => b;
const clients = new Map();
const report = (answer) => process.stdout.write(JSON.stringify(answer) + '\n');

function clientOf(target) {
  if (!clients.has(target)) {
    clients.set(target, new grpc.Client(target, grpc.credentials.createInsecure()));
  }
  return clients.get(target);
}

function call({ id, target, path, headers, timeout }) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers || {})) {
    metadata.set(name, value);
  }
  const start = process.hrtime.bigint();
  let backend = '';
  const done = (error) => report({
    id, backend: error ? '' : backend, code: error ? error.code : 0, error: error ? error.message : '',
    micros: Number((process.hrtime.bigint() - start) / 1000n),
  });
  const one = clientOf(target).makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), metadata, { deadline: Date.now() + timeout }, done);
  one.on('metadata', (m) => { backend = String(m.get('backend')[0]); });
}

const input = readline.createInterface({ input: process.stdin });
input.on('line', (line) => call(JSON.parse(line)));
input.on('close', () => process.exit(0));
