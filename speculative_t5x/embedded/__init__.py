# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two trained pairs that come with the package.

  translation      bulletins, English to German
  summarization    German reports to summaries of one or two sentences

`MODEL_CARD.md` beside this file says how they were made and what they are
worth.
"""

import dataclasses
import pathlib

from speculative_t5x.decoder import text_decoder
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.tasks import bulletins

_FOLDER = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class _Pair:
  """A pair of models.

  Attributes:
    target: Name of the target's folder.
    draft: Name of the draft model's folder.
    inputs_length: Most tokens per input, the end of sequence included.
    targets_length: Likewise, per output.
  """

  target: str
  draft: str
  inputs_length: int
  targets_length: int


_PAIRS = {
    'translation': _Pair('target', 'draft', 96, 96),
    'summarization': _Pair('summary_target', 'summary_draft', 160, 64),
}
TASKS = tuple(_PAIRS)
VOCABULARY_FILE = bulletins.VOCABULARY_FILE  # of all of them


def target_checkpoint(task: str = 'translation') -> str:
  """Return the folder of a target's checkpoint.

  Args:
    task: One of TASKS.
  Raises:
    ValueError: for another task.
  """
  return str(_FOLDER / _pair(task).target)


def draft_checkpoint(task: str = 'translation') -> str:
  """Return the folder of a draft model; see `target_checkpoint`."""
  return str(_FOLDER / _pair(task).draft)


def load_decoder(
    gamma: int = 5,
    task: str = 'translation',
    *,
    inputs_length: int | None = None,
    targets_length: int | None = None,
    hints_length: int | None = None,
    num_decodes: int = 1,
    policy: contracts.DraftLengthPolicy = draft_length.Fixed(),  # noqa: B008
    rescale_log_probs: bool = True,
    mask_padded_ids: bool = False,
    matmul_precision: str | None = None,
) -> text_decoder.TextDecoder:
  """Load target and draft model, ready to decode texts of their task.

  Args:
    gamma: Draft tokens per block, at least 1.
    task: One of TASKS.
    inputs_length: See `text_decoder.TextDecoder`, as for all that follow; None
      for that of the task.
    targets_length: Likewise.
    hints_length: Hints of an example are cut to this many tokens.
    num_decodes: Samples per text.
    policy: Draft length policy.
    rescale_log_probs: Whether to score under the distribution sampled from.
    mask_padded_ids: Whether ids beyond the vocabulary are forbidden.
    matmul_precision: JAX's setting for matrix products.
  Raises:
    ValueError: for another task.
  """
  pair = _pair(task)
  if inputs_length is None:
    inputs_length = pair.inputs_length
  if targets_length is None:
    targets_length = pair.targets_length
  return text_decoder.load(
      target_checkpoint(task),
      draft_checkpoint(task),
      gamma=gamma,
      vocabulary=VOCABULARY_FILE,
      inputs_length=inputs_length,
      targets_length=targets_length,
      hints_length=hints_length,
      num_decodes=num_decodes,
      policy=policy,
      rescale_log_probs=rescale_log_probs,
      mask_padded_ids=mask_padded_ids,
      matmul_precision=matmul_precision,
  )


def _pair(task: str) -> _Pair:
  if task not in _PAIRS:
    raise ValueError(f'task must be one of {TASKS}. Got {task!r}.')
  return _PAIRS[task]
