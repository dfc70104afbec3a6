# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Special tokens of a vocabulary, as the files beside it name them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.vocabularies import vocabulary as vocabulary_lib

_CONFIG, _ADDED = 'tokenizer_config.json', 'added_tokens.json'
# By their roles (`eos_token`), the first file first, and in lists.
_ROLES = _CONFIG, 'special_tokens_map.json'
_LISTS = (
    *('additional_special_tokens', 'extra_special_tokens'),
    'model_specific_special_tokens',
)
_Find = Callable[[str], int | None]  # the id of a piece, if there is one


def _content(token: Any) -> str:
  """Return a token's text; some are written with how they are matched."""
  return str(token['content'] if isinstance(token, dict) else token)


class SpecialTokens:
  """The special tokens that files beside a vocabulary name; read once.

  Attributes:
    FILES: Names of the files; there may be none of them.
    path: The vocabulary's.
    tokens: Tokens that the files name, each with its file and its id, or None.
  """

  FILES = *_ROLES, _ADDED

  def __init__(self, path: epath.Path):
    self.path = path
    self._fields, self.tokens = {}, []
    for name in self.FILES:
      file = path.parent / name
      with errors.reading(file, vocabulary_lib.VocabularyError):
        fields = json_files.read(file) if file.is_file() else {}
        self._fields[name] = fields
        self.tokens += [
            (file, _content(token), i) for token, i in _tokens(name, fields)
        ]

  def named(self, role: str) -> str | None:
    """Return the token that is named for a role."""
    tokens = [self._fields[name].get(role) for name in _ROLES]
    return next((_content(x) for x in tokens if x), None)

  def id_of(self, role: str, find: _Find, default: int | None) -> int:
    """Return the id of the token that is named for a role, or the default.

    The default is the vocabulary's own; None if it has none and needs one.
    """
    named = self.named(role)
    i = default if named is None else find(named)
    if i is None:
      token = '' if named is None else f', which is named {named!r}'
      raise vocabulary_lib.VocabularyError(
          f'{self.path} has no {role}{token}. Put the {_CONFIG} of its model'
          ' beside it.'
      )
    return i

  def num_sentinels(self, default: int) -> int:
    """Return how many sentinels tokenizer_config.json says."""
    return int(self._fields[_CONFIG].get('extra_ids', default))

  def check_held(self, find: _Find) -> None:
    """Check that a vocabulary has the tokens that were added to its model.

    transformers keeps them in files beside it too, and adds those that it
    lacks; here they would be split into ordinary pieces.
    """
    for file, token, i in self.tokens:
      ids = [find(x) for x in (token, f'▁{token}')]
      if ids == [None, None] or i not in (None, *ids):
        raise vocabulary_lib.VocabularyError(
            f'{file} adds the token {errors.shown(token)}, which'
            f' {self.path} lacks{"" if i is None else f" as id {i}"}. Save the'
            ' tokenizer again by transformers 5, which writes all tokens to'
            ' tokenizer.json.'
        )


def _tokens(
    name: str, fields: Mapping[str, Any]
) -> Iterator[tuple[Any, int | None]]:
  """Yield tokens that transformers adds, and the ids of those that have one."""
  if name == _ADDED:
    yield from ((token, int(i)) for token, i in fields.items())
  if name not in _ROLES:
    return
  for i, token in fields.get('added_tokens_decoder', {}).items():
    yield token, int(i)
  for field, value in fields.items():
    if field in _LISTS and value:
      values = value.values() if isinstance(value, dict) else value
      yield from ((token, None) for token in values)
    elif field.endswith('_token') and value:  # 'add_bos_token' is a bool
      if not isinstance(value, bool):
        yield value, None
