// SPDX-License-Identifier: Apache-2.0

// Serves /quotes.Quotes/Get and /quotes.Quotes/Put by what its control plane says, and responds with its view of the
// call; arguments: the addresses. It ends when its standard input does.
'use strict';

const modules = process.env.NODE_MODULES;
const grpc = require(modules + '/@grpc/grpc-js');
const xds = require(modules + '/@grpc/grpc-js-xds');
xds.register();

const bytes = (b) => b;
const method = (path) => ({
  path, requestStream: false, responseStream: false, requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes,
});
// stringValue encodes a google.protobuf.StringValue.
const stringValue = (text) => {
  const data = Buffer.from(text), head = [10];
  let size = data.length;
  for (; size > 127; size >>= 7) head.push(size & 127 | 128);
  return Buffer.concat([Buffer.from([...head, size]), data]);
};
const answer = (Method) => (call, callback) => {
  const Metadata = {};
  for (const [key, values] of Object.entries(call.metadata.toJSON())) {
    Metadata[key] = values.map((v) => Buffer.from(v).toString('base64'));
  }
  callback(null, stringValue(JSON.stringify({ Method, Metadata })));
};
const server = new xds.XdsServer();
server.addService({ Get: method('/quotes.Quotes/Get'), Put: method('/quotes.Quotes/Put') }, { Get: answer('/quotes.Quotes/Get'), Put: answer('/quotes.Quotes/Put') });
for (const address of process.argv.slice(2)) {
  server.bindAsync(address, new xds.XdsServerCredentials(grpc.ServerCredentials.createInsecure()), (error) => {
    if (error) console.error(error);
  });
}
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
