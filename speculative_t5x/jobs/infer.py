# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The infer job: lines of text in, predictions out, in constant memory."""

from collections.abc import Sequence
import contextlib
import dataclasses
import itertools
import os
from typing import Literal

from speculative_t5x.decoder import answers as answers_lib
from speculative_t5x.decoder import beam_search
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.jobs.cluster import ray_cluster
from speculative_t5x.jobs.inference import infer_on_cluster
from speculative_t5x.jobs.inference import infer_output
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.loading import drafters
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions as predictions_lib
from speculative_t5x.tasks import text_files


def infer(
    *,
    workload: workload_lib.Workload,
    drafter: drafters.Choice | None = None,
    inputs: str | Sequence[str] | None = None,
    input_field: str = 'inputs',
    input_format: str | None = None,
    hints_field: str | None = text_files.HINTS,
    on_empty: Literal['refuse', 'pass', 'skip'] = 'refuse',
    vocabulary_file: str | None = None,
    answers: answers_lib.Folder | None = None,
    output_dir: str | None = None,
    gamma: int | Literal['auto'] = 5,
    num_examples: int | None = None,
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
    draft_sampling: sampling_lib.Sampling | None = None,
    num_decodes: int = 1,
    search: beam_search.BeamSearch | None = None,
    batch_size: int | None = None,
    scores: bool = False,
    statistics: bool = False,
    tokens: bool = False,
    chunk_batches: int = 16,
    model_name: str | None = None,
    cluster: ray_cluster.RayCluster | None = None,
) -> run_record.RunRecord | None:
  """Decode lines of files or inputs of a task, in their order.

  A job that was killed resumes after the chunks that it finished.

  The arguments are explained in `configs/runs/infer.gin`, but for:

  Args:
    workload: Target, and the task if there is one.
    drafter: Drafts for the target; None to decode plainly.
    draft_sampling: Sampling of the drafter; None for the target's.
    search: Beam search in place of samples; None for none.
    batch_size: Rounded up to a multiple of the mesh's data axis.
    cluster: Decodes on its nodes; None to decode in this process.
  Returns:
    The run record; None without an output folder.
  Raises:
    ValueError: for input that cannot be decoded as configured. On a cluster,
      all other inputs are decoded and written before.
    OSError: if the folder cannot be written to, or another job uses it.
  """
  if search is not None:
    if gamma == 'auto':
      raise ranges.ArgumentError(
          "gamma 'auto' chooses drafts by what else is decoded, and all trees"
          ' of a beam search have one depth. Give a number.',
          gamma=gamma,
      )
    draft = [] if draft_sampling is None else [draft_sampling]
    workload_lib.check_search(search, workload, [sampling], draft, num_decodes)
  if gamma == 'auto':
    workload, gamma = workload_lib.by_load(workload)
  arguments.check_counts(
      gamma=gamma,
      num_decodes=num_decodes,
      batch_size=batch_size,
      chunk_batches=chunk_batches,
      num_examples=num_examples,
  )
  if answers is not None and answers.append and output_dir is None:
    raise ValueError(
        'ANSWERS_APPEND adds the predictions of an output folder to the store,'
        ' and there is none. Set INFER_OUTPUT_DIR.'
    )
  inputs_lib.check_lengths(workload.task_feature_lengths)
  paths = [inputs] if isinstance(inputs, str) else inputs
  if paths is not None:
    # A file has one name in records, also if it is given as a URL.
    paths = [os.fspath(user_paths.expand(path)) for path in paths]
    text_files.check(
        paths, input_format, input_field, hints_field, predictions_lib.TAKEN
    )
  elif workload.mixture_or_task_name is None:
    raise ValueError(
        'There is nothing to decode. Set INPUTS to files or to -, or name a'
        ' task with MIXTURE_OR_TASK_NAME.'
    )
  setup = infer_setup.Setup(
      workload=workload,
      drafter=drafter,
      paths=paths,
      input_field=input_field,
      input_format=input_format,
      hints_field=hints_field,
      on_empty=on_empty,
      vocabulary_file=vocabulary_file,
      gamma=gamma,
      num_examples=num_examples,
      sampling=sampling,
      draft_sampling=draft_sampling,
      num_decodes=num_decodes if search is None else search.beams,
      search=search,
      batch_size=batch_size,
      columns={'scores': scores, 'statistics': statistics, 'tokens': tokens},
      chunk_batches=chunk_batches,
      model_name=model_name,
  )
  if setup.is_batch:
    _check_batch(setup, answers)
    # As the server's, so that both give the same answers.
    workload = workload_lib.coupled_by_default(workload)
    setup = dataclasses.replace(setup, workload=workload)
  if cluster is not None:
    infer_on_cluster.check(setup, output_dir, answers is not None)
    with folder_lock.hold(output_dir):
      return infer_on_cluster.write(cluster, setup, output_dir)
  setup = setup.padded()
  with contextlib.ExitStack() as stack:
    if output_dir is not None:
      stack.enter_context(folder_lock.hold(output_dir))
    source = setup.source()
    read = setup.inputs(source)
    if paths is None:
      # A data set that is missing fails here, before weights are read.
      read = itertools.chain([*itertools.islice(read, 1)], read)
    num_inputs = setup.num_inputs()
    decoder, batch_size = setup.load(source)
    if draft_sampling is not None:
      pair = sampling_lib.Pair(sampling, draft_sampling)
      workload_lib.note_unread_sampling(decoder, [pair])
    finder = None
    if answers is not None:
      embedder = answers_lib.Embedder(
          decoder, source.vocabulary, workload.task_feature_lengths['inputs']
      )
      finder = answers.finder(embedder)
    shown = progress.Progress('infer', num_inputs, 'rows')
    job = setup.inference(
        source, decoder, batch_size, stack.enter_context(shown), finder
    )
    read = job.rows.read(read)
    settings = setup.record(decoder, batch_size)
    if output_dir is None:
      infer_output.print_all(job, read, settings)
      return None
    options = setup.options(decoder, source.vocabulary)
    chunks = infer_output.chunks_in(output_dir, settings, options)
    record = infer_output.write_all(
        job, read, settings, output_dir, chunks, job.rows.files
    )
    if answers is not None and answers.append:
      answers.add(embedder, text_rows.answers_in(chunks, source.vocabulary))
    return record


def _check_batch(
    setup: infer_setup.Setup, answers: answers_lib.Folder | None
) -> None:
  """Check that a batch is asked for nothing that its requests decide."""
  greedy = sampling_lib.GREEDY
  samplings = {setup.sampling, setup.draft_sampling or greedy}
  problem = None
  if samplings != {greedy} or setup.num_decodes > 1:
    problem = (
        'say how they are sampled. Leave out TEMPERATURE, TOPK, TOPP, MINP,'
        ' TYPICALP, those of the drafter, NUM_DECODES and BEAMS'
    )
  elif any(setup.columns.values()):
    problem = (
        'say what is written of them. Leave out SCORES, STATISTICS and TOKENS'
    )
  elif answers is not None and answers.append:
    problem = 'are not added to a store. Leave out ANSWERS_APPEND'
  if problem:
    raise ValueError(f'The requests of a batch {problem}.')
  ranges.check_settings(ranges.NATURAL, seed=setup.workload.seed)
