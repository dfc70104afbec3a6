# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The special ids of a Hugging Face T5.

An id in generation_config.json comes before the one in config.json, as in
transformers' `generate`.
"""

from typing import Any, NamedTuple

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import hugging_face_generation
from speculative_t5x.speculation import contracts

_END = 'eos_token_id'
_PADDING = 'pad_token_id'
# The decoder starts from the first of them that is named. transformers has no
# third and refuses to decode; T5's papers and checkpoints start from padding.
_STARTS = ('decoder_start_token_id', 'bos_token_id', _PADDING)


class _Named(NamedTuple):
  """An id as a file names it: an int, unless the file is wrong."""

  file: epath.Path
  name: str
  value: Any


def read(
    folder: epath.Path, config: dict[str, Any], vocab_size: int
) -> contracts.SpecialIds:
  """Reads the special ids that a folder's files name.

  Args:
    folder: that holds config.json and perhaps generation_config.json.
    config: from `hugging_face_config.read`.
    vocab_size: of the network.
  Raises:
    errors.CheckpointError: if generation_config.json is damaged or forces
      tokens, or if an id is missing, is one of several, or is not an id of the
      vocabulary, or if end and padding are the same.
  """
  sources = {folder / 'config.json': config}
  if (generation := hugging_face_generation.read(folder)) is not None:
    sources = {folder / hugging_face_generation.FILE: generation, **sources}
  # transformers takes all settings from the first of them.
  hugging_face_generation.check(*next(iter(sources.items())))
  end, padding, start = (
      _checked(_first(sources, names), vocab_size)
      for names in ((_END,), (_PADDING,), _STARTS)
  )
  if end == padding:
    raise errors.CheckpointError(
        f'{folder} has {end} as end of sequence and as padding. The encoder'
        ' ignores padding, so that inputs would lose their end. Write another'
        ' pad_token_id into config.json.'
    )
  return contracts.SpecialIds(end=end, padding=padding, start=start)


def _first(
    sources: dict[epath.Path, dict[str, Any]], names: tuple[str, ...]
) -> _Named:
  """Returns the first name that a file gives, from the first such file."""
  for name in names:
    for file, fields in sources.items():
      if (value := fields.get(name)) is not None:
        return _Named(file, name, value)
  raise errors.CheckpointError(
      f'{" and ".join(map(str, sources))} give no {names[-1]} (null), which'
      " decoding needs. Write the vocabulary's id into config.json."
  )


def _checked(named: _Named, vocab_size: int) -> int:
  file, name, value = named
  if isinstance(value, list):
    raise errors.CheckpointError(
        f'{file} gives several ids as {name}, {errors.shown(value)}; decoding'
        ' here knows one. Leave the one that the model was trained with.'
    )
  if type(value) is not int or not 0 <= value < vocab_size:
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(value)}, which is no id of a'
        f' vocabulary of {vocab_size}. Copy or download it again.'
    )
  return value
