# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The numbers that Leviathan et al. (2023) print, arXiv:2211.17192v2.

Tasks are 'EnDe' (WMT English to German), 'CNNDM' (CNN/DailyMail summaries),
'lm1b' (unconditional text) and 'dialog'. Factors are relative to plain
decoding.

Legend: alpha (mean probability that a draft token is accepted); gamma (draft
tokens per target call); cost_coefficient, c (time of a draft step over that of
a target step).
"""

import dataclasses
import math

# Of Tables 2 and 4: T5-XXL on one TPU-v4, over the decoding of T5X.
BATCH_SIZE = 1


@dataclasses.dataclass(frozen=True)
class Factors:
  """A row of Table 1, printed with two decimals, for c and c-hat of 0."""

  alpha: float
  gamma: int
  operations: float
  speed: float


TABLE_1 = (
    Factors(0.6, 2, operations=1.53, speed=1.96),
    Factors(0.7, 3, operations=1.58, speed=2.53),
    Factors(0.8, 2, operations=1.23, speed=2.44),
    Factors(0.8, 5, operations=1.63, speed=3.69),
    Factors(0.9, 2, operations=1.11, speed=2.71),
    Factors(0.9, 10, operations=1.60, speed=6.86),
)


@dataclasses.dataclass(frozen=True)
class Row:
  """A row of Tables 2 and 4: T5-XXL with a smaller T5 as draft model."""

  task: str
  draft: str
  temperature: int
  gamma: int
  alpha: float  # by Corollary 3.6 on text of the target; two decimals
  cost_coefficient: float  # c, from the authors' traces; two decimals
  predicted: float  # EXP, by Theorem 3.8 with unrounded alpha and c
  measured: float  # EMP, of walltimes that include both encoders
  is_best: bool = False  # starred: fastest of its task and temperature


TABLES_2_AND_4 = (
    Row('EnDe', 'small', 0, 7, 0.75, 0.02, 3.2, 3.4, is_best=True),
    Row('EnDe', 'base', 0, 7, 0.80, 0.04, 3.3, 2.8),
    Row('EnDe', 'large', 0, 7, 0.82, 0.11, 2.5, 1.7),
    Row('EnDe', 'small', 1, 7, 0.62, 0.02, 2.3, 2.6, is_best=True),
    Row('EnDe', 'base', 1, 5, 0.68, 0.04, 2.4, 2.4),
    Row('EnDe', 'large', 1, 3, 0.71, 0.11, 2.0, 1.4),
    Row('CNNDM', 'small', 0, 5, 0.65, 0.02, 2.4, 3.1, is_best=True),
    Row('CNNDM', 'base', 0, 5, 0.73, 0.04, 2.6, 3.0),
    Row('CNNDM', 'large', 0, 3, 0.74, 0.11, 2.0, 2.2),
    Row('CNNDM', 'small', 1, 5, 0.53, 0.02, 1.9, 2.3, is_best=True),
    Row('CNNDM', 'base', 1, 3, 0.55, 0.04, 1.8, 2.2),
    Row('CNNDM', 'large', 1, 3, 0.56, 0.11, 1.6, 1.7),
)


def find_row(task: str, draft: str, temperature: float) -> Row | None:
  """Return the row of Tables 2 and 4 with this task, draft and temperature."""
  wanted = task, draft, temperature
  rows = {(x.task, x.draft, x.temperature): x for x in TABLES_2_AND_4}
  return rows.get(wanted)


@dataclasses.dataclass(frozen=True)
class Alphas:
  """A row of Table 3: alpha by Corollary 3.6 on 10K tokens of the target.

  At temperature 1, LaMDA's is after top-k 40.
  """

  target: str
  task: str
  draft: str
  at_temperature_0: float
  at_temperature_1: float


TABLE_3 = (
    Alphas('GPT-like 97M', 'lm1b', 'unigram', 0.03, 0.03),
    Alphas('GPT-like 97M', 'lm1b', 'bigram', 0.05, 0.05),
    Alphas('GPT-like 97M', 'lm1b', 'GPT-like 6M', 0.88, 0.89),
    Alphas('T5-XXL', 'EnDe', 'unigram', 0.08, 0.07),
    Alphas('T5-XXL', 'EnDe', 'bigram', 0.20, 0.19),
    Alphas('T5-XXL', 'EnDe', 'small', 0.75, 0.62),
    Alphas('T5-XXL', 'EnDe', 'base', 0.80, 0.68),
    Alphas('T5-XXL', 'EnDe', 'large', 0.82, 0.71),
    Alphas('T5-XXL', 'CNNDM', 'unigram', 0.13, 0.08),
    Alphas('T5-XXL', 'CNNDM', 'bigram', 0.23, 0.16),
    Alphas('T5-XXL', 'CNNDM', 'small', 0.65, 0.53),
    Alphas('T5-XXL', 'CNNDM', 'base', 0.73, 0.55),
    Alphas('T5-XXL', 'CNNDM', 'large', 0.74, 0.56),
    Alphas('LaMDA 137B', 'dialog', 'LaMDA 100M', 0.61, 0.57),
    Alphas('LaMDA 137B', 'dialog', 'LaMDA 2B', 0.71, 0.71),
    Alphas('LaMDA 137B', 'dialog', 'LaMDA 8B', 0.75, 0.74),
)


# T5-XXL on EnDe by lenience. Of each draft model and temperature: alpha, from
# Table 5 at temperature 1, and from Appendix A.5 at temperature 0.
LENIENT_ALPHAS = {
    ('unigram', 1): {1.0: 0.07, 0.5: 0.10, 0.3: 0.11, 0.1: 0.16},
    ('bigram', 1): {1.0: 0.19, 0.5: 0.23, 0.3: 0.25, 0.1: 0.32},
    ('small', 1): {1.0: 0.62, 0.5: 0.71, 0.3: 0.76, 0.1: 0.84},
    ('base', 1): {1.0: 0.68, 0.5: 0.80, 0.3: 0.83, 0.1: 0.90},
    ('small', 0): {1.0: 0.75, 0.5: 0.75, 0.3: 0.80, 0.1: 0.87},
}
# Expected speedups that Appendix A.5 gives for T5-small, by temperature, at c =
# 0.015; with gamma 8 at temperature 0, and no gamma given at temperature 1.
LENIENT_FACTORS = {
    1: {1.0: 2.5, 0.5: 3.1, 0.3: 3.6, 0.1: 5.0},
    0: {1.0: 3.3, 0.5: 3.3, 0.3: 3.9, 0.1: 4.9},
}
LENIENT_COST_COEFFICIENT, LENIENT_GAMMA = 0.015, 8

# Figures 2 to 4 are closed forms over this range of alpha.
FIGURE_ALPHAS = (0.5, 0.9)
FIGURE_2_GAMMAS = (1, 3, 5, 7, math.inf)  # and plain decoding, 1
FIGURE_3_COST_COEFFICIENTS = (0.01, 0.02, 0.05, 0.1)
FIGURE_4_GAMMAS = (1, 3, 5, 7, 10)  # c and c-hat are 0
