# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART, Marian and NLLB beside transformers; see `beside_transformers`."""

import pytest

from speculative_t5x.loading import vocabularies
from tests import encoder_decoders_by_hand
from tests.loading import beside_transformers
from tests.loading import marian_vocabulary_test
from tests.loading import vocabularies_test

pytestmark = pytest.mark.exhaustive
transformers = beside_transformers.transformers

OTHERS = {
    'bart-scaled': {'scale_embedding': True, 'activation_function': 'gelu_new'},
    'bart-ids': {
        'pad_token_id': 93, 'eos_token_id': [2, 3], 'bos_token_id': 94,
        'decoder_start_token_id': 94, 'forced_bos_token_id': ...,
        'encoder_ffn_dim': ..., 'decoder_ffn_dim': ..., 'vocab_size': 95,
        'dtype': 'float16',
    },
    'marian-unscaled': {
        'activation_function': 'relu', 'scale_embedding': False,
    },
    'nllb-padding': {
        'pad_token_id': 95, 'scale_embedding': False, 'dtype': 'bfloat16',
        'activation_function': 'gelu', 'max_position_embeddings': 96,
    },
    'nllb-ids': {
        'pad_token_id': 0, 'bos_token_id': 1, 'forced_bos_token_id': 77,
        'eos_token_id': [5, 6], 'decoder_start_token_id': 3,
    },
}  # fmt: skip


@pytest.fixture(
    scope='module',
    params=[*encoder_decoders_by_hand.FIELDS, *OTHERS],
)
def pair(request, tmp_path_factory):
  name = request.param
  family = name.split('-')[0]
  fields = encoder_decoders_by_hand.FIELDS[family] | OTHERS.get(name, {})
  fields = {name: x for name, x in fields.items() if x is not ...}
  forced = 'forced_bos_token_id', 'bad_words_ids'
  generation = {x: fields.pop(x) for x in forced if x in fields}
  found = beside_transformers.pair(
      transformers.AutoModelForSeq2SeqLM,
      fields,
      tmp_path_factory.mktemp(name),
      ids=(4, 88),
      # The sinusoids.
      fixed='embed_positions' if family == 'marian' else 'nothing',
      generation={**generation, 'forced_eos_token_id': None},
      dtype=fields.get('dtype', 'float32'),
  )
  assert found.begin == (
      fields['decoder_start_token_id'],
      *([generation[x] for x in forced[:1] if x in generation]),
  )
  return found


def test_logits(pair):
  pair.check_logits()


def test_greedy_outputs(pair):
  pair.check_greedy_outputs(2)


@pytest.mark.parametrize('penalty', [0.0, 1.0, 2.0])
def test_beams(pair, penalty):
  """With a forced first token, or in Marian an id that is not written."""
  pair.check_beams(penalty)


def test_marian_vocabulary(tmp_path):
  ids = marian_vocabulary_test.write(tmp_path)
  theirs = transformers.MarianTokenizer.from_pretrained(tmp_path)
  ours = vocabularies.load(tmp_path)
  for text in (*vocabularies_test.SENTENCES, '>>deu<< Der Zug.', '>> a << b'):
    found = [*ours.encode(text), ours.eos_id]
    assert found == theirs(text).input_ids
    if ids['<unk>'] not in found:
      assert ours.decode(found) == theirs.decode(
          found,
          skip_special_tokens=True,
          clean_up_tokenization_spaces=False,
      )
