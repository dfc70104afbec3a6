# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The convert job: any checkpoint that is read here, written as T5X's Orbax."""

import math

from speculative_t5x import checkpoints
from speculative_t5x import loading
from speculative_t5x.jobs import folder_lock

_SIZES = (
    'vocab_size', 'emb_dim', 'num_heads', 'num_encoder_layers',
    'num_decoder_layers', 'head_dim', 'mlp_dim', 'mlp_activations',
    'logits_via_embedding',
)  # fmt: skip


def convert(
    *,
    checkpoint_path: checkpoints.Path,
    output_dir: checkpoints.Path,
    dtype: str | None = None,
) -> None:
  """Writes the parameters of a checkpoint as `checkpoint_<step>` for T5X.

  Sizes are the checkpoint's own, so none are to be configured. Parameters pass
  through memory some at a time: 64 MB of them or the largest one, and a few
  times that for Orbax to write it. Optimizer state is left out.

  Args:
    checkpoint_path: a T5X checkpoint of either layout (a `checkpoint_<step>` or
      a folder of several, of which the newest is taken), or a Hugging Face
      folder, whose step is 0.
    output_dir: folder that will hold `checkpoint_<step>`, which appears whole
      or not at all.
    dtype: what is written, float32 or bfloat16; None for what is stored.
  Raises:
    checkpoints.CheckpointError: if the checkpoint cannot be read or is of
      another network than T5, or if there is such an output already.
  """
  folder = checkpoints.find(checkpoint_path)
  config = loading.read_config(folder)
  checkpoints.check_shapes(folder, loading.abstract_params(config))
  with folder_lock.hold(output_dir):
    written = checkpoints.save_each(
        output_dir,
        checkpoints.read_step(folder),
        checkpoints.read_params(folder, dtype),
    )
  specs = checkpoints.read_specs(written).values()
  size = sum(math.prod(spec.shape) for spec in specs)
  dtypes = {str(spec.dtype) for spec in specs}
  print(
      f'Wrote {written}: {size:,} parameters in {len(specs)} tensors,'
      f' {" and ".join(sorted(dtypes))}.'
  )
  print(
      'Its sizes, to put under target/t5.T5Config: or draft/t5.T5Config: in a'
      " gin file, or under network.T5Config: in one of T5X's:"
  )
  for name in _SIZES:
    print(f'  {name} = {getattr(config, name)!r}')
