# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether a target and a draft can be used as a pair.

Pure functions of names, shapes, dtypes and vocabularies. They read neither
weights nor files; `candidates` does.
"""

from collections.abc import Callable
import math

import jax.numpy as jnp

from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import facts
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.networks import layers
from speculative_t5x.speculation import ranges

_MIB, _GIB = 2**20, 2**30
_UNKNOWN = '?'
_SHOWN_DIGITS = 12  # of a hash
_COUNTED = (
    'Memory is estimated from parameters, caches, keys and values of the'
    ' inputs, and logits of a block. While models are loaded, memory holds'
    ' parameters and, beside them, what one of them is made from; the larger'
    ' of both counts. Activations and temporary buffers are not included.'
)

_Pair = tuple[facts.Candidate, facts.Candidate]


def check(
    target: facts.Candidate,
    draft: facts.Candidate,
    workload: memory.Workload,
    device_memory_gib: float | None = None,
) -> facts.Report:
  """Checks a target and a draft against each other and against a device.

  Args:
    target: the target model.
    draft: the draft model.
    workload: the batch to decode, and the devices.
    device_memory_gib: memory per device, GiB; None for no check.
  Raises:
    ValueError: if `device_memory_gib` is neither None nor a number above 0.
  """
  if device_memory_gib is not None:
    ranges.check_settings(ranges.POSITIVE, device_memory_gib=device_memory_gib)
  pair = target, draft
  findings = [
      facts.Finding('layout', *(c.layout or _UNKNOWN for c in pair)),
      *(
          facts.Finding('target', 'unusable', '', 'error', problem)
          for problem in target.problems
      ),
      *(
          facts.Finding('draft', '', 'unusable', 'error', problem)
          for problem in draft.problems
      ),
      *_vocabulary_findings(pair),
      *_size_findings(pair),
      _lengths(workload),
      _num_params(pair),
  ]
  assumptions = ()
  if target.config and draft.config:
    findings += _memory_findings(pair, workload, device_memory_gib)
    assumptions = _assumptions(workload)
  return facts.Report(
      (target.checkpoint, draft.checkpoint), tuple(findings), assumptions
  )


def _vocabulary_findings(pair: _Pair) -> list[facts.Finding]:
  if None in (pair[0].vocabulary, pair[1].vocabulary):
    if pair[0].problems or pair[1].problems:
      return []  # the problem may be the vocabulary
    return [
        facts.Finding(
            'vocabulary', _UNKNOWN, _UNKNOWN, 'warning',
            'Draft tokens are ids, so both models must have the same'
            ' vocabulary, which was not checked. Give VOCABULARY_FILE, and'
            ' DRAFT_VOCABULARY_FILE if the draft has its own, or'
            ' MIXTURE_OR_TASK_NAME.',
        )
    ]  # fmt: skip
  special_ids = [f'{c.vocabulary.pad_id}, {c.vocabulary.eos_id}' for c in pair]
  return [
      _same_vocabulary(*pair),
      facts.Finding('vocabulary: pad, end id', *special_ids),
      _vocabulary_fits(pair),
  ]


def _same_vocabulary(
    target: facts.Candidate, draft: facts.Candidate
) -> facts.Finding:
  name = 'vocabulary: SHA-256'
  hashes = [
      vocabularies.fingerprint(c.vocabulary).sha256[:_SHOWN_DIGITS]
      for c in (target, draft)
  ]
  if draft.is_assumed:
    return facts.Finding(
        name, hashes[0], 'assumed equal', 'note',
        "The draft's vocabulary was not given and not compared. Give"
        ' DRAFT_VOCABULARY_FILE if the draft may have another.',
    )  # fmt: skip
  try:
    vocabularies.check_same(target.vocabulary, draft.vocabulary)
  except vocabularies.VocabularyError as error:
    return facts.Finding(name, *hashes, 'error', str(error))
  return facts.Finding(name, *hashes)


def _vocabulary_fits(pair: _Pair) -> facts.Finding:
  num_ids = [c.vocabulary.num_ids for c in pair]
  finding = facts.Finding('vocabulary: ids', *map(str, num_ids))
  # As in `models.fit_vocabulary`, drafts need no logits for sentinels.
  needed = num_ids[0], pair[0].vocabulary.num_pieces
  too_narrow = [
      f'The {name} has only {c.config.vocab_size} logits.'
      for name, c, size in zip(('target', 'draft'), pair, needed)
      if c.config and size > c.config.vocab_size
  ]
  if not too_narrow:
    return finding
  remedy = 'Pass the vocabulary that both models were trained with.'
  return finding.judged('error', ' '.join([*too_narrow, remedy]))


def _size_findings(pair: _Pair) -> list[facts.Finding]:
  row = lambda name, text: _row(name, pair, text)
  return [
      facts.Finding('sizes from', *(c.config_source or _UNKNOWN for c in pair)),
      _logits_width(pair),
      row('emb_dim', lambda c: c.config.emb_dim),
      row('heads', lambda c: f'{c.config.num_heads} x {c.config.head_dim}'),
      _num_layers(pair),
      row('mlp_dim', lambda c: c.config.mlp_dim),
      _activations(pair),
      row(
          'output head',
          lambda c: (
              'the embedding' if c.config.logits_via_embedding else 'separate'
          ),
      ),
      row(
          'relative positions',
          lambda c: f'{c.config.num_heads} heads, {layers.NUM_BUCKETS} buckets',
      ),
      row(
          'dtype stored',
          lambda c: ', '.join(sorted({x.dtype.name for x in c.specs.values()})),
      ),
      row('dtype to decode in', lambda c: jnp.dtype(c.config.dtype).name),
  ]


def _row(
    name: str, pair: _Pair, text: Callable[[facts.Candidate], object]
) -> facts.Finding:
  values = [str(text(c)) if c.config else _UNKNOWN for c in pair]
  return facts.Finding(name, *values)


def _num_layers(pair: _Pair) -> facts.Finding:
  target, draft = (c.config for c in pair)
  finding = _row(
      'layers: encoder + decoder',
      pair,
      lambda c: (
          f'{c.config.num_encoder_layers} + {c.config.num_decoder_layers}'
      ),
  )
  if target and not target.num_encoder_layers:
    return finding.judged(
        'error', 'The target has no encoder. Pass an encoder-decoder.'
    )
  if not draft or draft.num_encoder_layers:
    return finding
  if target:
    try:
      pairing.check_width(target, draft)
    except ValueError as error:
      return finding.judged('error', str(error))
  return finding.judged(
      'note',
      "The draft has no encoder and shares the target's: draft with"
      ' configs/drafters/shared_encoder.gin.',
  )


def _logits_width(pair: _Pair) -> facts.Finding:
  finding = _row('logits', pair, lambda c: c.config.vocab_size)
  if finding.target == finding.draft or _UNKNOWN in (
      finding.target, finding.draft
  ):  # fmt: skip
    return finding
  is_narrower = pair[1].config.vocab_size < pair[0].config.vocab_size
  what = (
      'The draft never proposes the ids for which it has no logit.'
      if is_narrower
      else "The draft's further logits are dropped."
  )
  return finding.judged(
      'note', f"{what} Outputs still follow the target's distribution."
  )


def _activations(pair: _Pair) -> facts.Finding:
  finding = _row(
      'mlp_activations', pair, lambda c: ', '.join(c.config.mlp_activations)
  )
  if facts.FROM_PARAMETERS not in (c.config_source for c in pair):
    return finding
  return finding.judged(
      'note',
      'Parameters do not determine them: the activations of T5 with the same'
      ' number of input projections are assumed. Set TARGET_CONFIG or'
      ' DRAFT_CONFIG if they are others.',
  )


def _lengths(workload: memory.Workload) -> facts.Finding:
  lengths = f'{workload.inputs_length}, {workload.targets_length}'
  finding = facts.Finding('lengths of inputs, targets', lengths, lengths)
  longest = max(workload.inputs_length, workload.targets_length)
  if longest <= layers.MAX_DISTANCE:
    return finding
  return finding.judged(
      'note',
      'There is no limit on lengths, but distances of'
      f' {layers.MAX_DISTANCE} tokens and more share a position bucket.',
  )


def _num_params(pair: _Pair) -> facts.Finding:
  counts = [sum(math.prod(x.shape) for x in c.specs.values()) for c in pair]
  texts = [f'{count:,}' if count else _UNKNOWN for count in counts]
  finding = facts.Finding('parameters', *texts)
  if not all(counts) or counts[1] < counts[0]:
    return finding
  return finding.judged(
      'warning',
      'The draft is not smaller than the target, so decoding will be slower.'
      ' Check that the two are not swapped.',
  )


def _memory_findings(
    pair: _Pair, workload: memory.Workload, device_memory_gib: float | None
) -> list[facts.Finding]:
  target, draft = (c.config for c in pair)
  sizes = (
      memory.target_bytes(target, workload),
      memory.draft_bytes(draft, workload, target.vocab_size),
  )
  fields = {
      'memory: parameters': 'params',
      'memory: caches': 'cache',
      'memory: cross keys, values': 'cross',
      'memory: logits of a block': 'logits',
      'memory: while loaded': 'loading',
      'memory per device': 'total',
  }
  *findings, total = (
      facts.Finding(name, *(_text(getattr(size, field)) for size in sizes))
      for name, field in fields.items()
  )
  peak = memory.peak_bytes(sizes)
  verdict, remedy = 'note', f'{_text(peak)} in total, '
  if device_memory_gib is None:
    remedy += 'not compared with a device. Give DEVICE_MEMORY_GIB to compare.'
  else:
    remedy += f'of {device_memory_gib:g} GiB.'
    if peak > device_memory_gib * _GIB:
      verdict = 'error'
      remedy += (
          ' Decode in bfloat16, partition the target over more devices by'
          ' MESH_SHAPE, or, if the parameters alone fit, lower BATCH_SIZE or'
          ' TASK_FEATURE_LENGTHS.'
      )
  return [*findings, total.judged(verdict, remedy)]


def _text(num_bytes: int) -> str:
  """Formats bytes in MiB, or in GiB from 1 GiB on."""
  if num_bytes < _GIB:
    return f'{num_bytes / _MIB:.2f} MiB'
  return f'{num_bytes / _GIB:,.2f} GiB'


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
