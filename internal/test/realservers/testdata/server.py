# SPDX-License-Identifier: Apache-2.0

"""Serves /quotes.Quotes/Get and /quotes.Quotes/Put by what its control plane says, and responds with its view of the
call; arguments: the addresses. It ends when its standard input does."""

import base64
import json
import os
import sys
from concurrent import futures

os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"

import grpc  # noqa: E402


def string_value(text):
    """Encodes a google.protobuf.StringValue."""
    out, size = b"\n", len(text)
    while size > 127:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size]) + text


def answer(method, context):
    seen = {}
    for key, value in context.invocation_metadata():
        value = value if isinstance(value, bytes) else value.encode()
        seen.setdefault(key, []).append(base64.b64encode(value).decode())
    return string_value(json.dumps({"Method": method, "Metadata": seen}).encode())


def serving(method):
    return grpc.unary_unary_rpc_method_handler(lambda request, context: answer("/quotes.Quotes/" + method, context))


quotes = grpc.method_handlers_generic_handler("quotes.Quotes", {name: serving(name) for name in ("Get", "Put")})


server = grpc.server(futures.ThreadPoolExecutor(8), handlers=(quotes,), xds=True)
for address in sys.argv[1:]:
    server.add_secure_port(address, grpc.xds_server_credentials(grpc.insecure_server_credentials()))
server.start()
sys.stdin.read()
os._exit(0)
