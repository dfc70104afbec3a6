# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's own sampler as a third way of decoding, where T5X can be imported."""

import dataclasses
import functools
import importlib.util
import sys
import types

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading import quiet
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.networks import t5
from speculative_t5x.research.measurement import walltimes

# The target, T5X's copy, and all that a measurement holds beside them.
_TIMES_THE_WEIGHTS = 3


def prepare(target: models.Found) -> models.Found:
  """Return a target as it is to be loaded for `of`.

  T5X reads the kernels that decoding merges one by one, and gets a copy of
  them. Where that may not fit, as XXL on a TPU v4, they are not merged.
  """
  if not _is_timed(target.config, target.mesh) or not target.merged:
    return target
  num_bytes = sum(
      x.size * jnp.dtype(target.config.dtype).itemsize
      for x in jax.tree.leaves(models.abstract_params(target.config))
  )
  if _TIMES_THE_WEIGHTS * num_bytes <= memory.available_bytes():
    return target
  print(
      'A copy of the weights for T5X may not fit: T5X reads the same arrays,'
      ' and no kernels are merged.',
      file=sys.stderr,
  )
  return dataclasses.replace(target, merged=False)


def of(decoder: token_decoder.TokenDecoder) -> walltimes.Reference | None:
  """Return T5X's sampler with a decoder's target; None where it has no such."""
  if not _is_timed(decoder.target.config, decoder.mesh):
    return None
  return _guest().reference(decoder)


def _is_timed(config: object, mesh: jax.sharding.Mesh | None) -> bool:
  is_t5 = type(config) is t5.T5Config and not config.reads_features
  return is_t5 and mesh is None and _guest() is not None


@functools.cache
def _guest() -> types.ModuleType | None:
  """Import what calls T5X; None, with a line on stderr, where it fails."""
  if importlib.util.find_spec('t5x') is None:
    return None
  try:
    with quiet.quiet_stderr():
      from speculative_t5x.research import t5x_sampler
  except ImportError as error:
    print(
        f'T5X cannot be imported, so its sampler is not timed: {error}',
        file=sys.stderr,
    )
    return None
  return t5x_sampler
