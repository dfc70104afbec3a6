# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabularies: texts to ids and back, with one interface for every kind.

  path --> `load` --> a kind, by the file that counts:
                        sentence_piece
                        tokenizer_file
                        byte_vocabulary
                        marian_vocabulary
                          |
                          +--> special_tokens  named by the files beside it
                          v
                      vocabulary      the interface; whether two are the same

SentencePiece's files and Hugging Face's tokenizers give the same ids where they
were made from one another. `tasks.task_vocabulary` has those of seqio tasks.
"""

from collections.abc import Callable
import itertools
import os

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import hub
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import public_t5
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.vocabularies import byte_vocabulary
from speculative_t5x.loading.vocabularies import marian_vocabulary
from speculative_t5x.loading.vocabularies.byte_vocabulary import ByteVocabulary
from speculative_t5x.loading.vocabularies.sentence_piece import (
    SentencePieceVocabulary,
)
from speculative_t5x.loading.vocabularies.sentence_piece import with_sentinels
from speculative_t5x.loading.vocabularies.special_tokens import SpecialTokens
from speculative_t5x.loading.vocabularies.tokenizer_file import (
    TokenizerVocabulary,
)
from speculative_t5x.loading.vocabularies.vocabulary import Fingerprint
from speculative_t5x.loading.vocabularies.vocabulary import Vocabulary
from speculative_t5x.loading.vocabularies.vocabulary import VocabularyError
from speculative_t5x.loading.vocabularies.vocabulary import check_pieces
from speculative_t5x.loading.vocabularies.vocabulary import check_same
from speculative_t5x.loading.vocabularies.vocabulary import digest
from speculative_t5x.loading.vocabularies.vocabulary import fingerprint

_CONFIGS = 'tokenizer_config.json', 'config.json'  # name the tokenizer's class
# In the folder of a model; transformers reads the first where it finds several.
_FILES = 'tokenizer.json', 'spiece.model', 'source.spm'
_KINDS = {
    '.json': TokenizerVocabulary,
    '.model': SentencePieceVocabulary,
    '.spm': marian_vocabulary.MarianVocabulary,
}


def load(path: epath.PathLike) -> Vocabulary:
  """Read a vocabulary.

  Args:
    path: A SentencePiece .model file, a tokenizer.json, the source.spm of a
      Marian model, or a folder that holds one of them; as in transformers, the
      first counts if it holds several. A folder whose tokenizer is ByT5's needs
      none; without a folder, 'bytes' is ByT5's vocabulary. Or the name of a
      public model, as `checkpoints.open` takes it.
  Raises:
    errors.CheckpointError: if the Hugging Face hub does not give that model.
    VocabularyError: if there is no vocabulary, or if it is damaged, names no
      padding or end of sequence, or lacks a token that was added to it.
  """
  if (vocabulary := load_any(path)) is None:
    raise VocabularyError(
        f'There is no vocabulary at {user_paths.expand(path)}. Give one as'
        ' vocabulary: a SentencePiece .model file, a'
        " tokenizer.json, as transformers' save_pretrained writes it, or a"
        f' folder that holds {" or ".join(_FILES)}; of ByT5,'
        f' {byte_vocabulary.NAME!r}.'
    )
  return vocabulary


def load_any(path: epath.PathLike) -> Vocabulary | None:
  """Read a vocabulary as `load` does; return None where there is none."""
  if os.fspath(path) == byte_vocabulary.NAME:
    return ByteVocabulary()
  if (name := hub.find(path)) is not None:
    beside = marian_vocabulary.BESIDE, SpecialTokens.FILES, _CONFIGS
    path = hub.fetch(name, tuple(itertools.chain(_FILES, *beside)))
  path = user_paths.expand(public_t5.vocabulary(path))
  files = [path]
  if not path.is_file():
    files = [path / name for name in (*_FILES, *_CONFIGS)]
  for file in files:
    if file.is_file() and (kind := _kind(file)) is not None:
      vocabulary = kind(beside := SpecialTokens(file))
      beside.check_held(vocabulary.find)
      return vocabulary
  return None


def _kind(file: epath.Path) -> Callable[..., Vocabulary] | None:
  """Return what reads a file; None if nothing does."""
  if file.name in _CONFIGS:
    with errors.reading(file, VocabularyError):
      name = json_files.read(file).get('tokenizer_class')
    return ByteVocabulary if name == 'ByT5Tokenizer' else None
  return _KINDS.get(file.suffix)
