# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The languages of a translation, where a model is told them by tokens.

The source's code begins every input, and the target's ends what the decoder
begins with, as in M2M-100 and NLLB.
"""

from collections.abc import Sequence
import copy
import dataclasses
from typing import TypeVar

from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import network
from speculative_t5x.speculation import ranges

_Model = TypeVar('_Model')


def choose(
    target: _Model,
    vocabulary: vocabularies.Vocabulary,
    languages: Sequence[str] | None,
) -> _Model:
  """Return a target, loaded or not, with its vocabulary, for languages.

  These are codes of the source and of the target language, as the vocabulary
  has them, for example ('eng_Latn', 'deu_Latn'); None for those that the files
  of both name.

  Raises:
    ValueError: if a language is needed and not given, or given and not needed,
      or the vocabulary does not have it as a special or added token.
  """
  if languages is None:
    network.check_decoder_prompt(target.config)
    return dataclasses.replace(target, vocabulary=vocabulary)
  if not network.offers(target.config, *network.PROMPTS_DECODER):
    raise ranges.ArgumentError(
        f'languages are {languages!r}, and {target.config.name} is not told any'
        ' by a token. Give None.',
        languages=languages,
    )
  if isinstance(languages, str) or len(languages) != 2:
    raise ranges.ArgumentError(
        f"languages must be two, ('<source>', '<target>'), got {languages!r}.",
        languages=languages,
    )
  source_id, target_id = (_find(vocabulary, x) for x in languages)
  prompt = target.special_ids.start, target_id
  vocabulary = copy.copy(vocabulary)
  vocabulary.begin_ids = (source_id,)
  config = target.config.with_decoder_prompt(prompt)
  return dataclasses.replace(target, config=config, vocabulary=vocabulary)


def _find(vocabulary: vocabularies.Vocabulary, language: str) -> int:
  # A word that is one piece, as NLLB's `de`, would stand for any language.
  others = vocabulary.pad_id, vocabulary.eos_id, vocabulary.unk_id
  special = vocabulary.special_tokens()
  codes = {x: i for x, i in special.items() if i not in others}
  if language in codes:
    return codes[language]
  raise ranges.ArgumentError(
      f'languages have {language!r}, not a special token of the vocabulary'
      f' {vocabulary.name}. Give a code that it has, as deu_Latn of NLLB or'
      ' __de__ of M2M-100.',
      languages=language,
  )
