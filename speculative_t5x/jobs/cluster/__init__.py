# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks of a job, decoded by other processes.

  driver (ray_cluster)             worker processes (ray_worker)
  checks each node             ->  description of the job there, or an error
  numbers of chunks, by Ray    ->  inputs from the files, decoded
  finished chunk files         <-  rows, or an error
        attempts: what ended a worker twice is not begun a third time
"""
