# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding for T5-family models in JAX and Flax.

Implements Leviathan, Kalman and Matias, "Fast Inference from Transformers via
Speculative Decoding", ICML 2023, arXiv:2211.17192v2.

  text_decoder   strings in; texts, scores and statistics out
  token_decoder  token ids in, token ids out
  speculation    contracts, Algorithm 1, the compiled loop, the theory
  drafters       one file per way to draft
  rules          one file per rule by which draft tokens are accepted
  testing        judges rules, drafters and policies, by enumeration
  networks       T5 whose decoder takes a block of tokens
  checkpoints    T5X's two layouts and Hugging Face's, read one way
  measurement    walltimes, parts, acceptance rates, the run record
  reports        tables and advice made of records
  paper          the paper's tables and figures
  jobs           what the command line runs, set up by gin
"""

import speculative_t5x.loading.files.file_urls  # noqa: F401 (everywhere)

__version__ = '0.1.0'
