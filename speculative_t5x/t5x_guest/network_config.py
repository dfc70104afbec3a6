# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sizes of T5X's network, as this package's network takes them."""

import dataclasses

import flax.linen as nn
import jax.numpy as jnp
from t5x.examples.t5 import network

from speculative_t5x.networks import t5


def read(role: str, module: nn.Module) -> t5.T5Config:
  """Returns the sizes of a module.

  Args:
    role: of the module, for messages: 'target' or 'draft'.
    module: of T5X.
  Raises:
    ValueError: for a module of another class, or settings that are not
      supported.
  """
  # A subclass may compute anything else.
  if type(module) is not network.Transformer:
    raise ValueError(
        f'The {role} is a {type(module).__module__}.{type(module).__name__};'
        ' only t5x.examples.t5.network.Transformer itself can be decoded.'
        ' Scanned layers, decoder-only and other networks are not supported.'
    )
  config = module.config
  for name in config.mlp_activations:
    if not isinstance(name, str):
      raise ValueError(
          f"The {role}'s mlp_activations hold {name!r}; give the names of"
          ' functions in flax.linen.'
      )
  dtype = jnp.dtype(config.dtype)
  if config.float32_attention_logits and dtype != jnp.float32:
    raise ValueError(
        f"The {role}'s float32_attention_logits is not supported with dtype"
        f' {dtype.name}. Set it to False, or dtype to float32.'
    )
  names = {field.name for field in dataclasses.fields(t5.T5Config)}
  sizes = {
      field.name: getattr(config, field.name)
      for field in dataclasses.fields(config)
      if field.name in names
  }
  return t5.T5Config(**sizes)
