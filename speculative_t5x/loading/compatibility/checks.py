# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether a target and a draft can be used as a pair.

Pure functions of names, shapes, dtypes and vocabularies. They read neither
weights nor files; `candidates` does.
"""

from collections.abc import Callable, Sequence
import math

import jax.numpy as jnp

from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import facts
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.networks import layers

_MIB, _GIB = 2**20, 2**30
_UNKNOWN = '?'
_SHOWN_DIGITS = 12  # of a hash


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
  _check_memory(device_memory_gib)
  findings = [
      *_checkpoint_findings(target, draft),
      *_vocabulary_findings(target, draft),
      *_size_findings(target, draft),
      _lengths(workload),
      _num_params(target, draft),
  ]
  assumptions = ()
  if target.config and draft.config:
    findings += _memory_findings(target, draft, workload, device_memory_gib)
    assumptions = _assumptions(workload)
  return facts.Report(
      (target.checkpoint, draft.checkpoint), tuple(findings), assumptions
  )


def _check_memory(device_memory_gib: float | None) -> None:
  if device_memory_gib is None:
    return
  is_number = isinstance(device_memory_gib, (int, float))
  if not is_number or not device_memory_gib > 0:
    raise ValueError(
        'device_memory_gib must be a number above 0 or None, got'
        f' {device_memory_gib!r}.'
    )


def _checkpoint_findings(
    target: facts.Candidate, draft: facts.Candidate
) -> list[facts.Finding]:
  return [
      facts.Finding(
          'layout', target.layout or _UNKNOWN, draft.layout or _UNKNOWN
      ),
      *(
          facts.Finding('target', 'unusable', '', 'error', problem)
          for problem in target.problems
      ),
      *(
          facts.Finding('draft', '', 'unusable', 'error', problem)
          for problem in draft.problems
      ),
  ]


def _vocabulary_findings(
    target: facts.Candidate, draft: facts.Candidate
) -> list[facts.Finding]:
  if target.vocabulary is None or draft.vocabulary is None:
    if target.problems or draft.problems:
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
  both = target.vocabulary, draft.vocabulary
  special_ids = [f'{v.pieces.pad_id}, {v.pieces.eos_id}' for v in both]
  return [
      _same_vocabulary(*both),
      facts.Finding('vocabulary: pad, end id', *special_ids),
      _vocabulary_fits(target, draft),
  ]


def _same_vocabulary(
    target: facts.Vocabulary, draft: facts.Vocabulary
) -> facts.Finding:
  hashes = [v.sha256[:_SHOWN_DIGITS] for v in (target, draft)]
  if draft.is_assumed:
    finding = facts.Finding('vocabulary: SHA-256', hashes[0], 'assumed equal')
    return finding.judged(
        'note',
        "The draft's vocabulary was not given and not compared. Give"
        ' DRAFT_VOCABULARY_FILE if the draft may have another.',
    )
  finding = facts.Finding('vocabulary: SHA-256', *hashes)
  if target.sha256 == draft.sha256:
    return finding
  try:
    vocabularies.check_same(target.pieces, draft.pieces)
  except vocabularies.VocabularyError as error:
    return finding.judged('error', str(error))
  return finding.judged(
      'note',
      'The files differ but have the same pieces, which suffices: only the'
      " target's vocabulary tokenizes texts.",
  )


def _vocabulary_fits(
    target: facts.Candidate, draft: facts.Candidate
) -> facts.Finding:
  num_ids = [c.vocabulary.num_ids for c in (target, draft)]
  finding = facts.Finding('vocabulary: ids', *map(str, num_ids))
  needed = num_ids[0], target.vocabulary.pieces.num_pieces  # as in `loading`
  too_narrow = [
      f'The {name} has only {c.config.vocab_size} logits.'
      for name, c, size in zip(('target', 'draft'), (target, draft), needed)
      if c.config and size > c.config.vocab_size
  ]
  if not too_narrow:
    return finding
  remedy = 'Pass the vocabulary that both models were trained with.'
  return finding.judged('error', ' '.join([*too_narrow, remedy]))


def _size_findings(
    target: facts.Candidate, draft: facts.Candidate
) -> list[facts.Finding]:
  row = lambda name, text: _row(name, target, draft, text)
  return [
      facts.Finding(
          'sizes from',
          target.config_source or _UNKNOWN,
          draft.config_source or _UNKNOWN,
      ),
      _logits_width(target, draft),
      row('emb_dim', lambda c: c.config.emb_dim),
      row('heads', lambda c: f'{c.config.num_heads} x {c.config.head_dim}'),
      _num_layers(target, draft),
      row('mlp_dim', lambda c: c.config.mlp_dim),
      _activations(target, draft),
      row('output head', _head),
      row(
          'relative positions',
          lambda c: f'{c.config.num_heads} heads, {layers.NUM_BUCKETS} buckets',
      ),
      row('dtype stored', _stored_dtypes),
      row('dtype to decode in', lambda c: jnp.dtype(c.config.dtype).name),
  ]


def _num_layers(
    target: facts.Candidate, draft: facts.Candidate
) -> facts.Finding:
  finding = _row(
      'layers: encoder + decoder',
      target,
      draft,
      lambda c: (
          f'{c.config.num_encoder_layers} + {c.config.num_decoder_layers}'
      ),
  )
  if target.config and not target.config.num_encoder_layers:
    return finding.judged(
        'error', 'The target has no encoder. Pass an encoder-decoder.'
    )
  if not draft.config or draft.config.num_encoder_layers:
    return finding
  if target.config:
    try:
      pairing.check_width(target.config, draft.config)
    except ValueError as error:
      return finding.judged('error', str(error))
  return finding.judged(
      'note',
      "The draft has no encoder and shares the target's: draft with"
      ' configs/drafters/shared_encoder.gin.',
  )


def _row(
    name: str,
    target: facts.Candidate,
    draft: facts.Candidate,
    text: Callable[[facts.Candidate], object],
) -> facts.Finding:
  values = [str(text(c)) if c.config else _UNKNOWN for c in (target, draft)]
  return facts.Finding(name, *values)


def _logits_width(
    target: facts.Candidate, draft: facts.Candidate
) -> facts.Finding:
  finding = _row('logits', target, draft, lambda c: c.config.vocab_size)
  if _UNKNOWN in (finding.target, finding.draft):
    return finding
  missing = target.config.vocab_size - draft.config.vocab_size
  if missing == 0:
    return finding
  remedy = (
      'The draft never proposes the ids for which it has no logit.'
      if missing > 0
      else "The draft's further logits are dropped."
  )
  return finding.judged(
      'note',
      f"{remedy} Outputs still follow the target's distribution.",
  )


def _activations(
    target: facts.Candidate, draft: facts.Candidate
) -> facts.Finding:
  finding = _row(
      'mlp_activations',
      target,
      draft,
      lambda c: ', '.join(c.config.mlp_activations),
  )
  if facts.FROM_PARAMETERS not in (target.config_source, draft.config_source):
    return finding
  return finding.judged(
      'note',
      'Parameters do not determine them: the activations of T5 with the same'
      ' number of input projections are assumed. Set TARGET_CONFIG or'
      ' DRAFT_CONFIG if they are others.',
  )


def _head(candidate: facts.Candidate) -> str:
  tied = candidate.config.logits_via_embedding
  return 'the embedding' if tied else 'separate'


def _stored_dtypes(candidate: facts.Candidate) -> str:
  names = {x.dtype.name for x in candidate.specs.values()}
  return ', '.join(sorted(names)) or _UNKNOWN


def _lengths(workload: memory.Workload) -> facts.Finding:
  longest = max(workload.inputs_length, workload.targets_length)
  lengths = f'{workload.inputs_length}, {workload.targets_length}'
  finding = facts.Finding('lengths of inputs, targets', lengths, lengths)
  if longest <= layers.MAX_DISTANCE:
    return finding
  return finding.judged(
      'note',
      'T5 has no limit on lengths, but distances of'
      f' {layers.MAX_DISTANCE} tokens and more share a position bucket.',
  )


def _num_params(
    target: facts.Candidate, draft: facts.Candidate
) -> facts.Finding:
  counts = [
      sum(math.prod(x.shape) for x in c.specs.values()) for c in (target, draft)
  ]
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
    target: facts.Candidate,
    draft: facts.Candidate,
    workload: memory.Workload,
    device_memory_gib: float | None,
) -> list[facts.Finding]:
  sizes = (
      memory.target_bytes(target.config, workload),
      memory.draft_bytes(draft.config, workload, target.config.vocab_size),
  )
  row = lambda name, field: facts.Finding(
      name, *(_text(getattr(size, field)) for size in sizes)
  )
  return [
      row('memory: parameters', 'params'),
      row('memory: caches', 'cache'),
      row('memory: cross keys, values', 'cross'),
      row('memory: logits of a block', 'logits'),
      row('memory: while loaded', 'loading'),
      _device_memory(sizes, device_memory_gib),
  ]


def _device_memory(
    sizes: Sequence[memory.DeviceBytes], device_memory_gib: float | None
) -> facts.Finding:
  finding = facts.Finding(
      'memory per device', *(_text(size.total) for size in sizes)
  )
  peak = memory.peak_bytes(sizes)
  if device_memory_gib is None:
    return finding.judged(
        'note',
        f'{_text(peak)} in total, not compared with a device. Give'
        ' DEVICE_MEMORY_GIB to compare.',
    )
  remedy = f'{_text(peak)} in total, of {device_memory_gib:g} GiB.'
  if peak <= device_memory_gib * _GIB:
    return finding.judged('note', remedy)
  return finding.judged(
      'error',
      f'{remedy} Decode in bfloat16, partition the target over more devices by'
      ' MESH_SHAPE, or, if the parameters alone fit, lower BATCH_SIZE or'
      ' TASK_FEATURE_LENGTHS.',
  )


def _text(num_bytes: int) -> str:
  """Formats bytes in MiB, or in GiB from 1 GiB on."""
  if num_bytes < _GIB:
    return f'{num_bytes / _MIB:.2f} MiB'
  return f'{num_bytes / _GIB:,.2f} GiB'


def _assumptions(workload: memory.Workload) -> tuple[str, ...]:
  data, model = workload.mesh_shape
  counted = (
      'Memory is estimated from parameters, caches, keys and values of the'
      ' inputs, and logits of a block. While models are loaded, memory holds'
      ' parameters and, beside them, what one of them is made from; the larger'
      ' of both counts. Activations and temporary buffers are not included.'
  )
  if (data, model) == (1, 1):
    return (counted,)
  draft = 'partitioned likewise'
  if not workload.draft_model_parallel:
    draft = 'replicated'
  return (
      counted,
      f'A mesh of {data} (data) by {model} (model) devices: examples are'
      " partitioned over 'data'; the target's heads, vocabulary and"
      " feed-forward units are partitioned over 'model' if their numbers are"
      f' divisible, and otherwise replicated; the draft is {draft}.',
  )
