# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether a target and a draft can be used as a pair.

Pure functions of names, shapes, dtypes and vocabularies. They read neither
weights nor files; `candidates` does.
"""

from collections.abc import Callable
import dataclasses
import math
from typing import Any, Literal

import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import candidates
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.speculation import ranges

_GIB = 2**30
_UNKNOWN = '?'
_SHOWN_DIGITS = 12  # of a hash
_FACTORS = [2**n for n in range(1, 9)]  # more devices that a remedy may name
_COUNTED = (
    'Memory is estimated from parameters, caches, keys and values of the'
    ' inputs, and logits of a block. While models are loaded, memory holds'
    ' parameters and, beside them, what one of them is made from; the larger'
    ' of both counts. Activations and temporary buffers are not included.'
)

_Pair = tuple[candidates.Candidate, candidates.Candidate]
Verdict = Literal['ok', 'note', 'warning', 'error']


@dataclasses.dataclass(frozen=True)
class Finding:
  """The result of one check.

  Attributes:
    name: Name of the check.
    target: The target's value.
    draft: The draft's value.
    verdict: The verdict; a pair with an 'error' cannot be used.
    remedy: Explanation and remedy; empty if the verdict is 'ok'.
  """

  name: str
  target: str
  draft: str
  verdict: Verdict = 'ok'
  remedy: str = ''

  def judged(self, verdict: Verdict, remedy: str) -> 'Finding':
    """Return the finding with a verdict and a remedy."""
    return dataclasses.replace(self, verdict=verdict, remedy=remedy)


@dataclasses.dataclass(frozen=True)
class Report:
  """The findings about a pair, in the order in which they are shown.

  Attributes:
    checkpoints: Folders of the target's and the draft's checkpoints.
    findings: See `Finding`.
    assumptions: Assumptions of the checks, as sentences.
  """

  checkpoints: tuple[str, str]
  findings: tuple[Finding, ...]
  assumptions: tuple[str, ...]

  @property
  def errors(self) -> tuple[Finding, ...]:
    return tuple(f for f in self.findings if f.verdict == 'error')


def check(
    target: candidates.Candidate,
    draft: candidates.Candidate,
    workload: memory.Workload,
    device_memory_gib: float | None = None,
) -> Report:
  """Check a target and a draft against each other and against a device.

  Raises:
    ValueError: if `device_memory_gib` is neither None nor a number above 0.
  """
  if device_memory_gib is not None:
    ranges.check_settings(ranges.POSITIVE, device_memory_gib=device_memory_gib)
  pair = target, draft
  lengths = f'{workload.inputs_length}, {workload.targets_length}'
  findings = [
      _row('layout', pair, lambda c: c.model.checkpoint.layout.value),
      *(
          Finding(role, *shown, 'error', problem)
          for role, shown, candidate in (
              ('target', ('unusable', ''), target),
              ('draft', ('', 'unusable'), draft),
          )
          for problem in candidate.problems
      ),
      *_vocabulary_findings(pair),
      *_network_findings(pair),
      Finding('lengths of inputs, targets', lengths, lengths),
      _num_params(pair),
  ]
  assumptions = ()
  if target.config and draft.config:
    findings += _memory_findings(pair, workload, device_memory_gib)
    assumptions = _assumptions(workload)
  return Report((target.path, draft.path), tuple(findings), assumptions)


def _row(name: str, pair: _Pair, text: Callable[..., object]) -> Finding:
  """Return a row of what is known of each model."""
  return Finding(name, *(str(text(c)) if c.model else _UNKNOWN for c in pair))


def _vocabulary_findings(pair: _Pair) -> list[Finding]:
  if None in (pair[0].vocabulary, pair[1].vocabulary):
    if pair[0].problems or pair[1].problems:
      return []  # the problem may be the vocabulary
    return [
        Finding(
            'vocabulary', _UNKNOWN, _UNKNOWN, 'warning',
            'Draft tokens are ids, so both models must have the same'
            ' vocabulary, which was not checked. Give VOCABULARY_FILE, and'
            ' DRAFT_VOCABULARY_FILE if the draft has its own, or'
            ' MIXTURE_OR_TASK_NAME.',
        )
    ]  # fmt: skip
  target, draft = pair
  name = 'vocabulary: SHA-256'
  hashes = [
      vocabularies.fingerprint(c.vocabulary).sha256[:_SHOWN_DIGITS]
      for c in pair
  ]
  if draft.is_assumed:
    same = Finding(
        name, hashes[0], 'assumed equal', 'note',
        "The draft's vocabulary was not given and not compared. Give"
        ' DRAFT_VOCABULARY_FILE if the draft may have another.',
    )  # fmt: skip
  else:
    same = _checked(
        Finding(name, *hashes),
        vocabularies.check_same,
        target.vocabulary,
        draft.vocabulary,
    )
  special_ids = [f'{c.vocabulary.pad_id}, {c.vocabulary.eos_id}' for c in pair]
  fits = Finding('vocabulary: ids', *(str(c.vocabulary.num_ids) for c in pair))
  if target.model:
    drafts = (draft.model,) if draft.model else ()
    fit = models.fit_vocabulary
    fits = _checked(fits, fit, target.vocabulary, target.model, drafts)
  return [same, Finding('vocabulary: pad, end id', *special_ids), fits]


def _checked(finding: Finding, check: Callable[..., Any], *args) -> Finding:
  """Return a finding, as an error if a check raises one."""
  try:
    check(*args)
  except ValueError as error:
    return finding.judged('error', str(error))
  return finding


def _network_findings(pair: _Pair) -> list[Finding]:
  source = _row('sizes from', pair, lambda c: c.config_source)
  if candidates.FROM_PARAMETERS in (source.target, source.draft):
    source = source.judged(
        'note',
        'Shapes do not determine the activation functions, which are assumed as'
        ' docs/checkpoints.md says. Set TARGET_CONFIG or DRAFT_CONFIG if they'
        ' are others.',
    )
  sizes = lambda c: getattr(c.config, 'sizes', {})
  return [
      source,
      _logits_width(pair),
      *(
          _row(name, pair, lambda c, name=name: sizes(c).get(name, '-'))
          for name in sizes(pair[0]) | sizes(pair[1])
      ),
      _encoders(pair),
      _row('dtype stored', pair, _stored_dtypes),
      _row(
          'dtype to decode in', pair, lambda c: jnp.dtype(c.config.dtype).name
      ),
  ]


def _stored_dtypes(candidate: candidates.Candidate) -> str:
  specs = candidate.model.checkpoint.specs.values()
  return ', '.join(sorted({x.dtype.name for x in specs}))


def _encoders(pair: _Pair) -> Finding:
  target, draft = (c.config for c in pair)
  finding = _row(
      'encoder',
      pair,
      lambda c: "the target's" if c.config.reads_features else 'its own',
  )
  if target and target.reads_features:
    return finding.judged(
        'error', 'The target has no encoder. Pass an encoder-decoder.'
    )
  if not draft or not draft.reads_features:
    return finding
  finding = finding.judged(
      'note',
      "The draft has no encoder and shares the target's: draft with"
      ' configs/drafters/shared_encoder.gin.',
  )
  if not target:
    return finding
  return _checked(finding, pairing.check_width, target, draft)


def _logits_width(pair: _Pair) -> Finding:
  finding = _row('logits', pair, lambda c: c.config.vocab_size)
  widths = [c.config.vocab_size for c in pair if c.config]
  if len(set(widths)) < 2:
    return finding
  what = (
      'The draft never proposes the ids for which it has no logit.'
      if widths[1] < widths[0]
      else "The draft's further logits are dropped."
  )
  return finding.judged(
      'note', f"{what} Outputs still follow the target's distribution."
  )


def _num_params(pair: _Pair) -> Finding:
  count = lambda c: sum(
      math.prod(x.shape) for x in c.model.checkpoint.specs.values()
  )
  finding = _row('parameters', pair, lambda c: f'{count(c):,}')
  counts = [count(c) for c in pair if c.model]
  if len(counts) < 2 or counts[1] < counts[0]:
    return finding
  return finding.judged(
      'warning',
      'The draft is not smaller than the target, so decoding will be slower.'
      ' Check that the two are not swapped.',
  )


def _memory_findings(
    pair: _Pair, workload: memory.Workload, device_memory_gib: float | None
) -> list[Finding]:
  sizes = _sizes(pair, workload)
  fields = {
      'memory: parameters': 'params',
      'memory: caches': 'cache',
      'memory: cross keys, values': 'cross',
      'memory: logits of a block': 'logits',
      'memory: while loaded': 'loading',
      'memory per device': 'total',
  }
  *findings, total = (
      Finding(name, *(memory.text(getattr(size, field)) for size in sizes))
      for name, field in fields.items()
  )
  peak = memory.peak_bytes(sizes)
  verdict, remedy = 'note', f'{memory.text(peak)} in total, '
  if device_memory_gib is None:
    remedy += 'not compared with a device. Give DEVICE_MEMORY_GIB to compare.'
  else:
    remedy += f'of {device_memory_gib:g} GiB.'
    if peak > device_memory_gib * _GIB:
      verdict = 'error'
      limit = device_memory_gib * _GIB
      remedy += (
          f' {memory.text(math.ceil(peak - limit))} are missing.'
          f'{_mesh_remedy(pair, workload, limit)} Or decode in bfloat16, or, if'
          ' the parameters alone fit, lower BATCH_SIZE or'
          ' TASK_FEATURE_LENGTHS.'
      )
  return [*findings, total.judged(verdict, remedy)]


def _sizes(
    pair: _Pair, workload: memory.Workload
) -> tuple[memory.DeviceBytes, memory.DeviceBytes]:
  target, draft = (c.config for c in pair)
  return (
      memory.target_bytes(target, workload),
      memory.draft_bytes(draft, workload, target.vocab_size),
  )


def _mesh_remedy(pair: _Pair, workload: memory.Workload, limit: float) -> str:
  """Return a sentence on the smallest mesh that would do, if there is one."""
  data, model = workload.mesh_shape
  for factor in _FACTORS:
    shape = data, model * factor
    larger = dataclasses.replace(workload, mesh_shape=shape)
    if memory.peak_bytes(_sizes(pair, larger)) <= limit:
      return f' MESH_SHAPE={shape} would do.'
  return ''


def _assumptions(workload: memory.Workload) -> tuple[str, ...]:
  data, model = workload.mesh_shape
  if (data, model) == (1, 1):
    return (_COUNTED,)
  is_parallel = workload.draft_model_parallel
  way = 'partitioned likewise' if is_parallel else 'replicated'
  return (
      _COUNTED,
      f'A mesh of {data} (data) by {model} (model) devices: examples are'
      " partitioned over 'data'; the target's heads, vocabulary and"
      " feed-forward units are partitioned over 'model' if their numbers are"
      f' divisible, and otherwise replicated; the draft is {way}.',
  )
