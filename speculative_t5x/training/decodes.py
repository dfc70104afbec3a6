# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a target decoded from the inputs of a task, as examples to train on."""

from collections.abc import Callable
import dataclasses

from etils import epath

from speculative_t5x import batching
from speculative_t5x import checkpoints
from speculative_t5x import run_record
from speculative_t5x.networks import t5
from speculative_t5x.outputs import chunks
from speculative_t5x.tasks import predictions
from speculative_t5x.training import batches


@dataclasses.dataclass(frozen=True)
class Decodes:
  """The predictions of an infer job, made once and kept in its folder.

  The job is resumed where it was interrupted. What is damaged is made again.

  Attributes:
    infer: an infer job that takes `output_dir`, and writes tokens.
    folder: of all decodes.
    name: of the folder of these in it.
  """

  infer: Callable[..., run_record.RunRecord]
  folder: checkpoints.Path
  name: str

  def read(
      self, target: checkpoints.Path, config: t5.T5Config
  ) -> batches.Examples:
    """Decodes what is missing, and returns all as examples.

    Args:
      target: folder of the target, as the record of a job names it.
      config: of a network that reads the examples.
    Raises:
      ValueError: if the folder has decodes of other settings, if the job has
        another target or wrote no tokens, or if a token is outside the
        network's vocabulary.
    """
    folder = epath.Path(self.folder) / self.name
    try:
      record = self.infer(output_dir=str(folder))
    except chunks.OtherSettingsError as error:
      raise ValueError(f'DECODES_DIR: {error}') from error
    if record.target.checkpoint != str(target):
      raise ValueError(
          f'The infer job of {folder} decodes {record.target.checkpoint}, and'
          f' the draft model is distilled from {target}. Give both the same'
          ' CHECKPOINT_PATH.'
      )
    path = folder / 'predictions.jsonl'
    pairs = list(predictions.read_pairs(path))
    if not pairs:
      raise ValueError(f'{path} has no decodes. Give another task or split.')
    inputs, outputs = zip(*pairs, strict=True)
    examples = batches.Examples(
        batching.pad(inputs, max(map(len, inputs))),
        batching.pad(outputs, max(map(len, outputs))),
    )
    batches.check_tokens(examples, config, str(path))
    return batches.trim_padding(examples)
