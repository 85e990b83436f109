// SPDX-License-Identifier: Apache-2.0

// Calls what it is asked to, each a line of JSON on the standard input, and reports
// the results; see package grpccall.
'use strict';

const grpc = require('@grpc/grpc-js');
const readline = require('node:readline');

const xds = require('@grpc/grpc-js-xds');
xds.register();

const bytes = (b) => b;
const clients = new Map();
const report = (answer) => process.stdout.write(JSON.stringify(answer) + '\n');

function clientOf(target) {
  if (!clients.has(target)) {
    clients.set(target, new grpc.Client(target, new xds.XdsChannelCredentials(grpc.credentials.createInsecure())));
  }
  return clients.get(target);
}

function call({ id, target, path, headers, timeout, waits }) {
  const metadata = new grpc.Metadata({ waitForReady: Boolean(waits) });
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
  one.on('metadata', (m) => { backend = String(m.get('backend')[0] || ''); });
}

const input = readline.createInterface({ input: process.stdin });
input.on('line', (line) => call(JSON.parse(line)));
input.on('close', () => process.exit(0));
