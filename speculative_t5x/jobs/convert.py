# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The convert job: converts a checkpoint to T5X's Orbax layout."""

import math
from typing import Literal

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.networks import t5


def convert(
    *,
    checkpoint_path: checkpoints.Path,
    output_dir: checkpoints.Path,
    dtype: Literal['float32', 'bfloat16'] | None = None,
    role: pairing.Role | None = None,
) -> None:
  """Write the parameters of a checkpoint as `checkpoint_<step>` for T5X.

  The sizes are read from the checkpoint. Parameters are converted in groups of
  64 MB, or one at a time if larger; Orbax needs a few times the memory of a
  group. Optimizer state is not copied.

  The arguments are explained in `configs/runs/convert.gin`.

  Raises:
    checkpoints.CheckpointError: if the checkpoint cannot be read or is of a
      network that T5X does not have, or if the output exists already.
  """
  checkpoint = checkpoints.open(checkpoint_path)
  if role is not None:
    checkpoint = checkpoint.of(role)
  config = checkpoint.network()
  is_t5 = isinstance(config, t5.T5Config)
  is_elsewhere = checkpoint.layout is checkpoints.Layout.HUGGING_FACE
  if config.bias_per_layer if is_t5 else is_elsewhere:
    name = 'umT5' if is_t5 else config.name
    raise checkpoints.CheckpointError(
        f'{checkpoint.source} is of a {name}, and the networks of T5X read only'
        ' their own layouts. Use the folder as it is.'
    )
  checkpoint.check_shapes(models.abstract_params(config))
  with folder_lock.hold(output_dir):
    params = checkpoint.read_params(dtype)
    written = checkpoints.save_each(output_dir, checkpoint.step, params)
  specs = checkpoints.open(written).specs.values()
  size = sum(math.prod(spec.shape) for spec in specs)
  dtypes = {str(spec.dtype) for spec in specs}
  print(
      f'Wrote {written}: {size:,} parameters in {len(specs)} tensors,'
      f' {" and ".join(sorted(dtypes))}.'
  )
  print(f'Its network, whose sizes a gin file sets: {config}')
