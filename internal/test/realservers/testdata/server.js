// SPDX-License-Identifier: Apache-2.0

// Serves /quotes.Quotes/Get and /quotes.Quotes/Put by what its control plane says; arguments: the addresses. It ends
// when its standard input does.
'use strict';

const modules = process.env.NODE_MODULES;
const grpc = require(modules + '/@grpc/grpc-js');
const xds = require(modules + '/@grpc/grpc-js-xds');
xds.register();

const bytes = (b) => b;
const method = (path) => ({
  path, requestStream: false, responseStream: false, requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes,
});
const answer = (call, callback) => callback(null, Buffer.alloc(0));
const server = new xds.XdsServer();
server.addService({ Get: method('/quotes.Quotes/Get'), Put: method('/quotes.Quotes/Put') }, { Get: answer, Put: answer });
for (const address of process.argv.slice(2)) {
  server.bindAsync(address, new xds.XdsServerCredentials(grpc.ServerCredentials.createInsecure()), (error) => {
    if (error) console.error(error);
  });
}
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
