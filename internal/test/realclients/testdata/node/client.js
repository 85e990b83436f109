// SPDX-License-Identifier: Apache-2.0

// Calls an xds:/// target without pause and reports each call as a line of JSON;
// see startProgram.
'use strict';

const grpc = require('@grpc/grpc-js');
const readline = require('node:readline');
const timers = require('node:timers/promises');

require('@grpc/grpc-js-xds').register();

const [target, timeout, pause] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const bytes = (b) => b;
const Health = grpc.makeGenericClientConstructor({
  Check: {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  },
}, 'Health');
const client = new Health(target, grpc.credentials.createInsecure());

const report = (outcome) => process.stdout.write(JSON.stringify(outcome) + '\n');

function call() {
  return new Promise((resolve) => {
    let backend = '';
    const check = client.Check(Buffer.alloc(0), new grpc.Metadata(), { deadline: Date.now() + timeout }, (error) => {
      report(error ? { error: error.message } : { backend });
      resolve();
    });
    check.on('metadata', (metadata) => { backend = String(metadata.get('backend')[0]); });
  });
}

const marks = [];
const input = readline.createInterface({ input: process.stdin });
input.on('line', (line) => marks.push(line));
input.on('close', () => process.exit(0));

(async () => {
  report({ mark: 'start' });
  for (;;) {
    while (marks.length > 0) {
      report({ mark: marks.shift() });
    }
    await call();
    await timers.setTimeout(pause);
  }
})();
