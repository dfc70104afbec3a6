# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the published T5 1.1 networks."""

from speculative_t5x.networks import t5

# Without the vocabulary size and the activations, which all sizes share.
SIZES = {
    'small': dict(emb_dim=512, num_heads=6, num_layers=8, mlp_dim=1024),
    'base': dict(emb_dim=768, num_heads=12, num_layers=12, mlp_dim=2048),
    'large': dict(emb_dim=1024, num_heads=16, num_layers=24, mlp_dim=2816),
    'xl': dict(emb_dim=2048, num_heads=32, num_layers=24, mlp_dim=5120),
    'xxl': dict(emb_dim=4096, num_heads=64, num_layers=24, mlp_dim=10240),
}
VOCAB_SIZE = 32128


def make_config(size: str, dtype: str = 'float32') -> t5.T5Config:
  """Return the config of a published T5 1.1, with the dtype of decoding.

  Raises:
    ValueError: for a size not in `SIZES`, or a dtype other than 'float32' and
      'bfloat16'.
  """
  if size not in SIZES:
    raise ValueError(
        f'There is no T5 1.1 {size!r}. Choose one of {", ".join(SIZES)}.'
    )
  sizes = dict(SIZES[size])
  num_layers = sizes.pop('num_layers')
  return t5.T5Config(
      vocab_size=VOCAB_SIZE,
      num_encoder_layers=num_layers,
      num_decoder_layers=num_layers,
      mlp_activations=('gelu', 'linear'),
      dtype=dtype,
      **sizes,
  )
