# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check-pair job: whether two checkpoints can work as a pair.

Reads vocabularies, and the names, shapes and dtypes of parameters: no weights.
"""

from collections.abc import Mapping

from speculative_t5x.loading import quiet
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import candidates
from speculative_t5x.loading.compatibility import checks
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.networks import network
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import pair_report


class PairError(ValueError):
  """A target and a draft that cannot work together."""


def check_pair(
    *,
    checkpoint_path: str,
    draft_checkpoint_path: str,
    task_feature_lengths: Mapping[str, int],
    gamma: int,
    batch_size: int | None = None,
    num_decodes: int = 1,
    dtype: str | None = None,
    vocabulary_file: str | None = None,
    draft_vocabulary_file: str | None = None,
    mixture_or_task_name: str | None = None,
    target_config: network.Network | None = None,
    draft_config: network.Network | None = None,
    device_memory_gib: float | None = None,
    mesh_shape: tuple[int, int] | None = None,
    draft_model_parallel: bool = False,
    output_dir: str | None = None,
) -> checks.Report:
  """Print a report on a pair, before any accelerator is busy.

  The arguments are explained in `configs/runs/check_pair.gin`.

  Returns:
    The findings that are printed.
  Raises:
    PairError: if they cannot work together, after the report is printed and
      written.
    ValueError: for an invalid length, count or dtype, or an unknown task.
    OSError: if the output folder cannot be written to.
  """
  workload = memory.Workload(
      batch_size=1 if batch_size is None else batch_size,
      num_decodes=num_decodes,
      inputs_length=task_feature_lengths.get('inputs', 0),
      targets_length=task_feature_lengths.get('targets', 0),
      gamma=gamma,
      mesh_shape=mesh_shape or (1, 1),
      draft_model_parallel=draft_model_parallel,
  )
  vocabulary = vocabulary_file or _task_vocabulary(mixture_or_task_name)
  pair = candidates.read_pair(
      candidates.Given(checkpoint_path, target_config, vocabulary),
      candidates.Given(
          draft_checkpoint_path, draft_config, draft_vocabulary_file
      ),
      dtype=dtype or 'float32',
  )
  report = checks.check(*pair, workload, device_memory_gib)
  table = pair_report.render(report)
  conclusion = pair_report.conclude(report)
  console.show(table)
  if output_dir is not None:
    text = f'{console.to_text(table)}\n{conclusion}'
    whole_files.write(user_paths.expand(output_dir), 'check_pair.txt', [text])
  if report.errors:
    raise PairError(conclusion)
  print(conclusion)
  return report


def _task_vocabulary(name: str | None) -> vocabularies.Vocabulary | None:
  """Return the vocabulary of a registered seqio task or mixture, if any."""
  if name is None:
    return None
  with quiet.quiet_stderr():  # TensorFlow, which comes along, writes there
    import seqio  # the one thing here that needs it

    from speculative_t5x.tasks import examples
    from speculative_t5x.tasks import task_vocabulary
  try:
    task = seqio.get_mixture_or_task(name)
  except ValueError as error:
    raise ValueError(
        f'There is no task named {name}. A gin file that imports the module of'
        ' a task registers it.'
    ) from error
  return task_vocabulary.TaskVocabulary(examples.vocabulary_of(task))
