# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The infer job: lines of text in, predictions out, in constant memory."""

import contextlib
import itertools

from speculative_t5x.jobs.inference import infer_on_cluster
from speculative_t5x.jobs.inference import infer_output
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import inference
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import progress
from speculative_t5x.research import run_record


def infer(setup: infer_setup.InferSetup) -> run_record.RunRecord | None:
  """Decode lines of files or inputs of a task, in their order.

  A job that was killed resumes after the chunks that it finished.

  Returns:
    The run record; None without an output folder.
  Raises:
    ValueError: for input that cannot be decoded as configured. On a cluster,
      all other inputs are decoded and written before.
    OSError: if the folder cannot be written to, or another job uses it.
  """
  setup = setup.resolved()
  with contextlib.ExitStack() as stack:
    if setup.output_dir is not None:
      stack.enter_context(folder_lock.hold(setup.output_dir))
    if setup.cluster is not None:
      return infer_on_cluster.write(setup)
    source = infer_setup.find_source(setup)
    read = source.inputs()
    if setup.inputs is None:
      # A data set that is missing fails here, before weights are read.
      read = itertools.chain([*itertools.islice(read, 1)], read)
    shown = progress.Progress('infer', None, 'inputs')
    stack.enter_context(shown)
    job = inference.find(setup, source, shown)
    read = job.rows.read(read)
    if setup.output_dir is None:
      infer_output.print_all(job, read)
      return None
    settings = job.record()
    chunks = infer_output.chunks_in(setup.output_dir, settings, job.options())
    return infer_output.write_all(
        job.take_all(read, chunks),
        shown,
        settings,
        setup.output_dir,
        chunks,
        job.rows.files,
    )
