# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The names that expressions in the pages can use."""

import inspect
import pathlib
from typing import Any

from scripts.pages import benchmark_tables
from scripts.pages import formats
from scripts.pages import records
from scripts.pages import tpu_tables
from scripts.pages import training_tables
from scripts.pages import walltime_tables
from speculative_t5x.loading import token_counts
from speculative_t5x.research.reports import readings

_FILES = {
    'demo': 'eval_bulletins.jsonl',
    'quality': 'quality_bulletins.jsonl',
    'demo_summary': 'eval_summary.jsonl',
    'quality_summary': 'quality_summary.jsonl',
    'bulletins': 'walltime_bulletins.jsonl',
    'multi30k': 'walltime_multi30k.jsonl',
    'multi30k_earlier': 'earlier/walltime_multi30k.jsonl',
    'deep': 'multi30k/walltime.jsonl',
    'deep_policy': 'multi30k/walltime_policy.jsonl',
    'deep_quality': 'multi30k/quality.jsonl',
    'base': 'simulate_base.jsonl',
    'xl': 'simulate_xl.jsonl',
    'large': 'paper/table2.jsonl',
    'base_bigram': 'simulate_base_bigram.jsonl',
}
_BENCHMARKS = {
    'beside_deep': 'multi30k/side_by_side.json',
    'divergence_plain': 'divergence_multi30k_plain.json',
    'divergence_speculative': 'divergence_multi30k_speculative.json',
    'beside_base': 'side_by_side_base.json',
    'beside_multi30k': 'side_by_side_oracle.json',
    'row_products': 'row_products.json',
    'caches_2': 'shared_caches_gamma_2.json',
    'caches_5': 'shared_caches_gamma_5.json',
    'earlier_answers': 'earlier_answers.json',
    'throughput': 'training_throughput.json',
}
_BENCHMARK_SERIES = {
    'draft_lengths': 'draft_lengths.ndjson',
    'recipes': 'multi30k/recipes.ndjson',
    'losses': 'multi30k/losses.ndjson',
}
_TRAININGS = (
    'bulletins_target', 'bulletins_draft', 'bulletins_summary_target',
    'bulletins_summary_draft', 'multi30k_target', 'multi30k_decoder',
)  # fmt: skip
_TASKS = 'translation', 'summaries', 'post-editing'
_MODULES = (
    benchmark_tables, formats, tpu_tables, training_tables, walltime_tables
)  # fmt: skip


def make(results: pathlib.Path) -> dict[str, Any]:
  """Returns the records of a folder and the functions of this package, by name.

  A job's file is a `records.Records`; a benchmark's is its record, or a list of
  them. `tpu` has the tpu-preflight records by folder name, `methods` those of
  the methods job by task, and `trained` the best checkpoint's measures of each
  training, and `cut_history` those of all checkpoints of the recipe `cut`.
  `token_counts` are those of the embedded corpus, by the make-table job.
  """
  found = {name: records.read(results / path) for name, path in _FILES.items()}
  for name, path in _BENCHMARKS.items():
    found[name] = records.read_entry(results / path)
  found['tpu'] = records.Entry(
      (path.parent.name, records.read_entry(path))
      for path in results.glob('tpu_preflight/*/tpu_preflight.json')
  )
  found['methods'] = {
      task: records.read(results / 'methods' / f'{task}.jsonl')
      for task in _TASKS
  }
  for name, path in _BENCHMARK_SERIES.items():
    found[name] = records.read_entries(results / path)
  found['trained'] = {
      name: records.read_best_point(results / 'training' / name)
      for name in _TRAININGS
  }
  found['cut_history'] = records.read_history(
      results / 'multi30k/recipes/cut/seed_0'
  )
  found['token_counts'] = token_counts.load(results / 'token_counts')
  found['interleaving_factor'] = readings.interleaving_factor
  for module in _MODULES:
    found |= {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and not name.startswith('_')
    }
  return found
