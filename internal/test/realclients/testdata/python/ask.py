# SPDX-License-Identifier: Apache-2.0

"""Calls what it is asked to, each a line of JSON on the standard input, and reports
the results; see package grpccall."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"

import grpc  # noqa: E402
import grpc.experimental  # noqa: E402

CREDENTIALS = grpc.xds_channel_credentials(grpc.experimental.insecure_channel_credentials())

channels = {}


def call(ask, channel):
    start = time.monotonic()
    answer = {"id": ask["id"], "backend": "", "code": 0, "error": ""}
    one = channel.unary_unary(ask["path"], request_serializer=lambda b: b, response_deserializer=lambda b: b)
    try:
        _, done = one.with_call(b"", timeout=ask["timeout"] / 1000, wait_for_ready=ask.get("waits"), metadata=list((ask.get("headers") or {}).items()))
        answer["backend"] = dict(done.initial_metadata()).get("backend", "")
    except grpc.RpcError as error:
        answer["code"], answer["error"] = error.code().value[0], error.details()
    answer["micros"] = int((time.monotonic() - start) * 1e6)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main():
    pool = ThreadPoolExecutor(max_workers=64)
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["target"] not in channels:
            channels[ask["target"]] = grpc.secure_channel(ask["target"], CREDENTIALS)
        pool.submit(call, ask, channels[ask["target"]])
    os._exit(0)


main()
