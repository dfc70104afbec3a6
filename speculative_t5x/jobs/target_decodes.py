# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outputs of a target for the inputs of a task, as examples to train on."""

import dataclasses

from speculative_t5x.jobs import infer
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.outputs import chunks
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import network
from speculative_t5x.tasks import predictions
from speculative_t5x.training import batches


@dataclasses.dataclass(frozen=True)
class Decodes:
  """The predictions of an infer job, made once and kept in its folder.

  The job is resumed where it was interrupted. What is damaged is made again.
  """

  setup: infer_setup.InferSetup  # of a job that writes tokens
  folder: checkpoints.Path  # of all decodes
  name: str  # of the folder of these decodes in it

  def read(
      self, target: checkpoints.Path, config: network.Network
  ) -> batches.TokenPairs:
    """Decode what is missing, and return all as examples."""
    folder = user_paths.expand(self.folder) / self.name
    with errors.prefixed('DECODES_DIR', chunks.OtherSettingsError):
      setup = dataclasses.replace(self.setup, output_dir=str(folder))
      record = infer.infer(setup)
    if record.target.checkpoint != str(target):
      raise ValueError(
          f'The infer job of {folder} decodes {record.target.checkpoint}, and'
          f' the draft model is distilled from {target}. Give both the same'
          ' CHECKPOINT_PATH.'
      )
    path = folder / 'predictions.jsonl'
    with folder_lock.hold(folder):  # another training's job rewrites the file
      pairs = predictions.read_pairs(path)
    inputs, outputs = zip(*pairs, strict=True)
    return batches.pad(inputs, outputs, config, str(path))
