# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a file with a Ray cluster: python -m tests.cluster.run_file <file>."""

import runpy
import sys

from tests.cluster import three_nodes


def main() -> None:
  import ray

  with three_nodes.started() as nodes:
    ray.init(nodes.address, log_to_driver=False)
    try:
      runpy.run_path(sys.argv[1])
    finally:
      ray.shutdown()


if __name__ == '__main__':
  main()
