# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE in two files, `vocab.json` and `merges.txt`, as CodeT5 has it.

Newer folders have the same in one tokenizer.json. What these files do not say,
how texts are split and what stands around them, is known by the class of the
tokenizer that tokenizer_config.json names.
"""

from collections.abc import Iterable, Mapping
import math
from typing import Any

from etils import epath
import tokenizers
from tokenizers import decoders
from tokenizers import models
from tokenizers import pre_tokenizers
from tokenizers import processors

from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.vocabularies import special_tokens

VOCABULARY, MERGES = 'vocab.json', 'merges.txt'
# Whether a text stands between a beginning and an end, by the class.
_HAS_ENDS = {
    'RobertaTokenizer': True,
    'BartTokenizer': True,
    'GPT2Tokenizer': False,
}
_BEGIN, _END = '<s>', '</s>'
_SPECIAL = _BEGIN, '<pad>', _END, '<unk>', '<mask>'
_FLAGS = 'single_word', 'lstrip', 'rstrip'


def read(
    folder: epath.Path,
    config: Mapping[str, Any],
    added: Iterable[tuple[Any, int | None]],
) -> tokenizers.Tokenizer:
  """Return the tokenizer of a folder, which encodes as transformers' does.

  Args:
    folder: Holds both files.
    config: The tokenizer_config.json beside them.
    added: Special tokens that files beside them name, as texts or with how they
      are matched, and their ids. Those that `vocab.json` lacks get the next
      ids, first those that have one, in its order.
  Raises:
    ValueError: for a class whose way to split texts is not known here.
  """
  name = str(config.get('tokenizer_class')).removesuffix('Fast')
  if name not in _HAS_ENDS:
    raise ValueError(
        f'the tokenizer_class in tokenizer_config.json is {name}, and'
        f' {MERGES} is read as of {" or ".join(_HAS_ENDS)}; transformers writes'
        ' a tokenizer.json, which is read for every class'
    )
  merges = (folder / MERGES).read_text(encoding='utf-8').splitlines()
  if merges and merges[0].startswith('#version'):
    merges = merges[1:]
  vocabulary = json_files.read(folder / VOCABULARY)
  tokenizer = tokenizers.Tokenizer(
      models.BPE(vocabulary, [tuple(x.split(' ')) for x in merges if x])
  )
  adds_space = bool(config.get('add_prefix_space', False))
  tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(adds_space)
  tokenizer.decoder = decoders.ByteLevel()
  special = [
      (x, None) for x in _SPECIAL if _HAS_ENDS[name] and x in vocabulary
  ]
  tokenizer.add_special_tokens(_in_order([*special, *added]))
  if _HAS_ENDS[name]:
    begin, end = (
        special_tokens.content(config.get(role) or default)
        for role, default in (('cls_token', _BEGIN), ('sep_token', _END))
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[begin, '$A', end],
        special_tokens=[
            (x, tokenizer.token_to_id(x)) for x in dict.fromkeys((begin, end))
        ],
    )
  return tokenizer


def _in_order(
    tokens: Iterable[tuple[Any, int | None]],
) -> list[tokenizers.AddedToken]:
  """Return tokens once each, by their ids, and then those without one."""
  flags, ids = {}, {}
  for token, i in tokens:
    content = special_tokens.content(token)
    ids[content] = min(ids.get(content, math.inf), math.inf if i is None else i)
    found = token if isinstance(token, dict) else {}
    flags.setdefault(content, {}).update(
        {x: found[x] for x in _FLAGS if x in found}
    )
  return [
      tokenizers.AddedToken(x, normalized=False, special=True, **flags[x])
      for x in sorted(ids, key=ids.get)
  ]
