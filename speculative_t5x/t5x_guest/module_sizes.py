# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The modules of T5X that can be decoded, as networks of this package."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from t5x.examples.decoder_only import network as t5x_decoder_network
from t5x.examples.t5 import network as t5x_network

from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network
from speculative_t5x.networks import t5

ENCODER_DECODER = t5x_network.Transformer
DECODER = t5x_decoder_network.DecoderWrapper


def read(role: str, module: nn.Module, *kinds: type[nn.Module]) -> Any:
  """Return the network with the sizes of a module of T5X.

  Args:
    role: 'target' or 'draft', for messages.
    module: One of T5X.
    *kinds: Of which it may be; none for any that can be decoded.
  Raises:
    ValueError: for another module, or a setting that the network does not have.
  """
  # A subclass may compute anything else.
  if type(module) not in (kinds or (ENCODER_DECODER, DECODER)):
    names = ' or '.join(
        f'{x.__module__}.{x.__name__}'
        for x in kinds or (ENCODER_DECODER, DECODER)
    )
    raise ValueError(
        f'The {role} is a {type(module).__module__}.{type(module).__name__};'
        f' only {names} itself can be decoded here. Scanned layers, experts and'
        ' other networks are not supported.'
    )
  config = module.config
  dtype = jnp.dtype(config.dtype)
  if getattr(config, 'float32_attention_logits', False):
    if dtype != jnp.float32:
      raise ValueError(
          f"The {role}'s float32_attention_logits is not supported with dtype"
          f' {dtype.name}. Set it to False, or dtype to float32.'
      )
  kind, make = t5.T5Config, t5.T5Config
  if type(module) is DECODER:
    kind, make = decoder_only.DecoderOnly, decoder_only.DecoderOnly.of_t5x
  names = {field.name for field in dataclasses.fields(kind)}
  return make(
      **{
          field.name: getattr(config, field.name)
          for field in dataclasses.fields(config)
          if field.name in names
      }
  )


def reading_as(
    config: network.Network, target: network.Network
) -> network.Network:
  """Return a draft's network that reads a prompt as its target does.

  T5X states that beside the module, once for a job.
  """
  if not isinstance(config, decoder_only.DecoderOnly):
    return config
  is_prefix = getattr(target, 'prefix_bidirectional', False)
  return dataclasses.replace(config, prefix_bidirectional=is_prefix)
