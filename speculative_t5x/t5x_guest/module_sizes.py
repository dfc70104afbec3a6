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
from speculative_t5x.networks import t5

ENCODER_DECODER = t5x_network.Transformer
DECODER = t5x_decoder_network.DecoderWrapper


# Per module of T5X, the network and what makes one of the module's sizes.
_NETWORKS = {
    ENCODER_DECODER: (t5.T5Config, t5.T5Config),
    DECODER: (decoder_only.DecoderOnly, decoder_only.DecoderOnly.of_t5x),
}


def read(role: str, module: nn.Module, *kinds: type[nn.Module]) -> Any:
  """Return the network with the sizes of a module of T5X.

  It may be of some kinds, or of any that can be decoded. Messages name its
  role, 'target' or 'draft'.

  Raises:
    ValueError: for another module, or a setting that the network does not have.
  """
  kinds = kinds or tuple(_NETWORKS)
  name = lambda kind: f'{kind.__module__}.{kind.__name__}'
  # A subclass may compute anything else.
  if type(module) not in kinds:
    raise ValueError(
        f'The {role} is a {name(type(module))}; only'
        f' {" or ".join(map(name, kinds))} itself can be decoded here.'
    )
  config = module.config
  is_wide = getattr(config, 'float32_attention_logits', False)
  if is_wide and jnp.dtype(config.dtype) != jnp.float32:
    raise ValueError(
        f"The {role}'s float32_attention_logits is not supported in narrower"
        ' dtypes. Set it to False, or dtype to float32.'
    )
  network, make = _NETWORKS[type(module)]
  names = {field.name for field in dataclasses.fields(network)}
  return make(**{k: v for k, v in vars(config).items() if k in names})
