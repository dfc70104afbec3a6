# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding for T5-family models in JAX and Flax.

Implements Leviathan, Kalman and Matias, "Fast Inference from Transformers via
Speculative Decoding", ICML 2023, arXiv:2211.17192v2.

  import speculative_t5x as st

  decoder = st.load('<target>', '<draft>')
  print(decoder.decode(['...']).texts)

The names in `__all__` are public; `docs/python.md` explains them. Each is
imported when it is first used. All other modules may change without notice.
"""

from etils import epy

from speculative_t5x.version import VERSION as __version__  # noqa: F401

__all__ = [
    # Decoding.
    'Engine',
    'Model',
    'Options',
    'Output',
    'Requests',
    'Result',
    'Row',
    'Sampling',
    'TextDecoder',
    'TokenDecoder',
    'answers',
    'embedded',
    'enable_compilation_cache',
    'load',
    'load_model',
    'load_vocabulary',
    'sharding',
    # Ways to draft.
    'DraftModel',
    'Drafting',
    'EarlyExit',
    'InOrder',
    'Lookup',
    'NGrams',
    # Rules by which draft tokens are accepted.
    'block',
    'exact_match',
    'lenience',
    'rejection_sampling',
    'typical_acceptance',
    # Draft length policies.
    'confidence',
    'expected_speed',
    'marginal_gain',
    'schedule',
    # For rules, policies, drafters and networks of your own.
    'contracts',
    'draft_length',
    'sampling',
    'testing',
    'verification',
]

with epy.lazy_api_imports(globals()):
  from speculative_t5x import embedded
  from speculative_t5x import testing
  from speculative_t5x.decoder import answers
  from speculative_t5x.decoder.compilation_cache import (
    enable as enable_compilation_cache,
  )
  from speculative_t5x.decoder.engine import Engine
  from speculative_t5x.decoder.options import Options
  from speculative_t5x.decoder.requests import Requests
  from speculative_t5x.decoder.requests import Row
  from speculative_t5x.decoder.results import Output
  from speculative_t5x.decoder.results import Result
  from speculative_t5x.decoder.text_decoder import TextDecoder
  from speculative_t5x.decoder.text_decoder import load
  from speculative_t5x.decoder.token_decoder import TokenDecoder
  from speculative_t5x.loading.drafters import Drafting
  from speculative_t5x.loading.drafters import DraftModel
  from speculative_t5x.loading.drafters import EarlyExit
  from speculative_t5x.loading.drafters import InOrder
  from speculative_t5x.loading.drafters import Lookup
  from speculative_t5x.loading.drafters import NGrams
  from speculative_t5x.loading.models import Model
  from speculative_t5x.loading.models import load_model
  from speculative_t5x.loading.vocabularies import load as load_vocabulary
  from speculative_t5x.networks import sharding
  from speculative_t5x.policies import confidence
  from speculative_t5x.policies import expected_speed
  from speculative_t5x.policies import marginal_gain
  from speculative_t5x.policies import schedule
  from speculative_t5x.rules import block
  from speculative_t5x.rules import exact_match
  from speculative_t5x.rules import lenience
  from speculative_t5x.rules import rejection_sampling
  from speculative_t5x.rules import typical_acceptance
  from speculative_t5x.speculation import contracts
  from speculative_t5x.speculation import draft_length
  from speculative_t5x.speculation import sampling
  from speculative_t5x.speculation import verification
  from speculative_t5x.speculation.sampling import Sampling


def __dir__() -> list[str]:
  return __all__
