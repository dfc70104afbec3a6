# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding for T5-family models in JAX and Flax.

Implements Leviathan, Kalman and Matias, "Fast Inference from Transformers via
Speculative Decoding", ICML 2023, arXiv:2211.17192v2.

  import speculative_t5x as st

  decoder = st.load('<target>', '<draft>')
  print(decoder.decode('...').text)

The names in `__all__`, and those that its rooms list, are public;
`docs/python.md` explains them. Each is imported when it is first used. All
other modules may change without notice.
"""

from etils import epy

import speculative_t5x.drafters
from speculative_t5x.version import VERSION as __version__  # noqa: F401

__all__ = [
    # Decoding.
    'Engine',
    'Model',
    'Options',
    'Output',
    'Request',
    'Result',
    'Sampling',
    'Service',
    'TextDecoder',
    'TokenDecoder',
    'enable_compilation_cache',
    'load',
    'load_model',
    'load_vocabulary',
    'make_mesh',
    # Rooms.
    'drafters',
    'embedded',
    'networks',
    'policies',
    'rules',
    'testing',
]

with epy.lazy_api_imports(globals()):
  from speculative_t5x import embedded
  from speculative_t5x import networks
  from speculative_t5x import policies
  from speculative_t5x import rules
  from speculative_t5x import testing
  from speculative_t5x.decoder.compilation_cache import (
      enable as enable_compilation_cache,
  )
  from speculative_t5x.decoder.engine import Engine
  from speculative_t5x.decoder.options import Options
  from speculative_t5x.decoder.request import Request
  from speculative_t5x.decoder.results import Output
  from speculative_t5x.decoder.results import Result
  from speculative_t5x.decoder.service import Service
  from speculative_t5x.decoder.text_decoder import TextDecoder
  from speculative_t5x.decoder.text_decoder import load
  from speculative_t5x.decoder.token_decoder import TokenDecoder
  from speculative_t5x.loading.models import Model
  from speculative_t5x.loading.models import load_model
  from speculative_t5x.loading.vocabularies import load as load_vocabulary
  from speculative_t5x.networks.sharding import make_mesh
  from speculative_t5x.speculation.sampling import Sampling


def __dir__() -> list[str]:
  return __all__


# The room `drafters` has what the loop calls; a user finds there what loads it.
speculative_t5x.drafters.__all__ = [
    'CandidateTree', 'DraftModel', 'Drafting', 'EarlyExit', 'InOrder', 'Lookup',
    'NGrams',
]  # fmt: skip


def _drafter(name: str) -> object:
  """Return a name of `st.drafters` when it is first used."""
  if name not in speculative_t5x.drafters.__all__:
    raise AttributeError(f'module speculative_t5x.drafters has no {name!r}')
  from speculative_t5x.loading import drafters

  return getattr(drafters, name)


speculative_t5x.drafters.__getattr__ = _drafter
speculative_t5x.drafters.__dir__ = lambda: speculative_t5x.drafters.__all__
