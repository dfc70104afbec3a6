# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server of `stub` in a process of its own: python -m ... <port>.

It takes a little time per step, so that a signal comes while it decodes.
"""

import sys
import time

from speculative_t5x.decoder import service as service_lib
from speculative_t5x.serving import app
from speculative_t5x.serving import server as server_lib
from tests.serving import stub


class _SlowRows(stub.Rows):

  def advance(self, returns_early: bool, limit: int) -> None:
    super().advance(returns_early, limit)
    time.sleep(0.02)


class _SlowEngine(stub.Engine):

  def new_runs(self) -> stub.Rows:
    return _SlowRows(self)


def main() -> None:
  bound = server_lib.bind('127.0.0.1', int(sys.argv[1]))
  server_lib.listen(bound)
  with service_lib.Service(_SlowEngine(tokens_per_step=1)) as service:
    server = app.Server(stub.Decoder(), service, 'echo', 'fp_0')
    print(bound.getsockname()[1], flush=True)
    server_lib.serve(server, bound, grace_s=30)


if __name__ == '__main__':
  main()
