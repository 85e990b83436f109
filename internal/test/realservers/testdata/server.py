# SPDX-License-Identifier: Apache-2.0

"""Serves every unary call by what its control plane says; arguments: the addresses. It ends when its standard
input does."""

import os
import sys
from concurrent import futures

os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"

import grpc  # noqa: E402


class Any(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")


server = grpc.server(futures.ThreadPoolExecutor(8), handlers=(Any(),), xds=True)
for address in sys.argv[1:]:
    server.add_secure_port(address, grpc.xds_server_credentials(grpc.insecure_server_credentials()))
server.start()
sys.stdin.read()
os._exit(0)
