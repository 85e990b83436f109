# SPDX-License-Identifier: Apache-2.0

"""Calls an xds:/// target without pause and reports each call as a line of JSON;
see startProgram."""

import json
import os
import queue
import sys
import threading
import time

# While no call is in progress, and calls that fail at once are none, the C-core
# reads what its server sends only so often; by default every 5 seconds.
os.environ["GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"] = "50"

import grpc  # noqa: E402

target, timeout, pause = sys.argv[1], int(sys.argv[2]) / 1000, int(sys.argv[3]) / 1000
marks = queue.SimpleQueue()


def read_marks():
    for line in sys.stdin:
        marks.put(line.strip())
    os._exit(0)


def report(**outcome):
    print(json.dumps(outcome), flush=True)


def call(check):
    try:
        _, done = check.with_call(b"", timeout=timeout)
    except grpc.RpcError as error:
        report(error=f"{error.code().name}: {error.details()}")
    else:
        report(backend=dict(done.initial_metadata())["backend"])


def main():
    threading.Thread(target=read_marks, daemon=True).start()
    channel = grpc.insecure_channel(target)
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=lambda b: b,
        response_deserializer=lambda b: b,
    )
    report(mark="start")
    while True:
        while not marks.empty():
            report(mark=marks.get())
        call(check)
        time.sleep(pause)


main()
