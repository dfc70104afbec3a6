# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding for T5-family models in JAX and Flax.

Implements Leviathan, Kalman and Matias, "Fast Inference from Transformers via
Speculative Decoding", ICML 2023, arXiv:2211.17192v2.

  sampling       Section 2.2: logits to the distribution that is sampled from
  verification   Section 2.3 and Algorithm 1: which guesses to keep
  speculation    the batched, compiled loop, and plain decoding beside it
  drafters       ways to guess
  networks       T5 whose decoder takes a block of tokens
  pair           strings in; texts, scores and statistics out
  analysis       Section 3: what speculation should gain
  acceptance     Corollary 3.6: alpha on text that the target wrote
  dialled        pairs of any size without their weights
  walltime       what decoding costs, as a whole and part by part
  paper          the paper's tables and figures
  jobs           what the command line runs, set up by gin
"""

from speculative_t5x import sampling
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x import verification

__version__ = '0.1.0'

__all__ = ['sampling', 'seam', 'speculation', 'verification', '__version__']
