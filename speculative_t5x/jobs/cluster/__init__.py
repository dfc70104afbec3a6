# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks of a job, decoded by other processes.

  driver (ray_cluster)             worker processes (ray_worker)
  asks one node                ->  description of the job there
  numbers of chunks, by Ray    ->  inputs from the files, decoded
  finished chunk files         <-  rows, or an error
        Ray starts a worker that ended anew, and repeats its chunk
"""
