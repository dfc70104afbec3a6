# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Has a cluster decode the inputs of an infer job."""

import dataclasses

from speculative_t5x.jobs.cluster import infer_chunks
from speculative_t5x.jobs.cluster import ray_cluster
from speculative_t5x.jobs.inference import infer_output
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.tasks import text_files


def check(
    setup: infer_setup.Setup, output_dir: str | None, has_answers: bool
) -> None:
  """Check that other processes can do the job."""
  problem = None
  if output_dir is None:
    problem = 'writes files, and there is no folder. Set INFER_OUTPUT_DIR'
  elif text_files.STANDARD_INPUT in (setup.paths or ()):
    problem = 'reads files on its nodes. Write the standard input to a file'
  elif has_answers:
    problem = 'does not look for earlier answers. Leave out ANSWERS'
  elif setup.is_batch:  # whether a name is there already, all lines decide
    problem = "does not read OpenAI's batches. Leave out CLUSTER"
  if problem:
    raise ValueError(f'A cluster (CLUSTER) {problem}.')


def write(
    cluster: ray_cluster.RayCluster, setup: infer_setup.Setup, output_dir: str
) -> run_record.RunRecord:
  """Have a cluster decode the inputs into an output folder.

  Raises:
    ValueError: for inputs without a prediction, once all else is written.
  """
  taken = *setup.taken, infer_chunks.ERROR
  setup = dataclasses.replace(setup, taken=taken)
  source = setup.source()
  job = infer_chunks.InferChunks(setup)
  with progress.Progress('infer', setup.num_inputs(), 'rows') as shown:
    with cluster.connect(job) as workers:
      settings, options = workers.description
      chunks = infer_output.chunks_in(output_dir, settings, options)
      driver = infer_chunks.Driver(setup, settings.batch_size, shown)
      driver.decode_missing(workers, source, chunks)
    # All chunks are there, and are taken as a job that resumes takes them.
    inputs = setup.inputs(source)
    record = infer_output.write_all(
        driver, inputs, settings, output_dir, chunks
    )
  if driver.num_failed:
    raise ValueError(
        f'{driver.num_failed} of {record.num_examples} inputs have no'
        f' prediction; their rows have the key {infer_chunks.ERROR!r}. The same'
        ' command decodes their chunks again.'
    )
  return record
