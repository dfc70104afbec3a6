# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small vocabulary of every kind that makes texts of ids in its own way."""

import functools
import pathlib
import tempfile

from hypothesis import strategies as st
import sentencepiece
import tokenizers
from tokenizers import decoders

from speculative_t5x.loading import vocabularies
from tests import vocabulary_files

# As T5's, as mT5's with its bytes, and as Llama's, which drops one space.
SPIECES = {
    'spiece': {},
    'spiece_with_bytes': dict(byte_fallback=True),
    'spiece_of_one_space': dict(
        byte_fallback=True, remove_extra_whitespaces=False
    ),
}
TOKENIZERS = {
    'byte_pieces': vocabulary_files.write_byte_pieces,
    'byte_pieces_without_space': functools.partial(
        vocabulary_files.write_byte_pieces, drops_space=False
    ),
    'byte_level': vocabulary_files.write_byte_level,
    'metaspace': lambda path: vocabulary_files.write_words(
        path, decoders.Metaspace(), ['a', '▁a', '▁', '▁b.', '▁▁']
    ),
    'word_pieces': lambda path: vocabulary_files.write_words(
        path, decoders.WordPiece(), ['a', '##a', 'b', '.', "'s"]
    ),
    'ends_of_words': lambda path: vocabulary_files.write_words(
        path, decoders.BPEDecoder('</w>'), ['a', 'a</w>', 'b', '.</w>']
    ),
    'words': lambda path: vocabulary_files.write_words(path, None, 'ab.'),
}


ALL = *SPIECES, *TOKENIZERS


@functools.cache
def vocabulary(kind):
  """Return a small vocabulary, and how its library decodes ids."""
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    if kind in TOKENIZERS:
      path = TOKENIZERS[kind](folder / 'tokenizer.json')
      library = tokenizers.Tokenizer.from_file(str(path))
      decode = functools.partial(library.decode, skip_special_tokens=False)
    else:
      size = 300 if 'byte_fallback' in SPIECES[kind] else 24
      path = vocabulary_files.train(
          folder / 'spiece.model', vocab_size=size, **SPIECES[kind]
      )
      library = sentencepiece.SentencePieceProcessor(model_file=str(path))
      decode = library.decode
    return vocabularies.load(path), decode


def ids_of(kind):
  """Return lists of ids without padding and end, many of them of bytes."""
  found, _ = vocabulary(kind)
  of_bytes = [f'<0x{byte:02X}>' for byte in (0x0A, 0x41, *'😀é'.encode())]
  of_bytes += ['ð', 'Ł', 'ĺ', 'Ģ', 'Ã', '©', 'Ġ', '▁']
  ids = [i for i in map(found.find, of_bytes) if i not in (None, 2)]
  first = 2 if kind in SPIECES else 3  # tokenizers show '<unk>'
  any_id = st.integers(first, found.num_pieces - 1)
  one = st.one_of(any_id, st.sampled_from(ids)) if ids else any_id
  return st.lists(one, max_size=9)
