# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5's family beside transformers; see `beside_transformers`.

umT5, CodeT5 and ByT5, and the tokenizers of these, which read random texts.
"""

import json

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from speculative_t5x.loading import vocabularies
from tests.loading import beside_transformers

pytestmark = pytest.mark.exhaustive
transformers = beside_transformers.transformers

_SIZES = {
    'd_model': 24, 'd_kv': 10, 'd_ff': 40, 'num_heads': 4, 'num_layers': 3,
    'num_decoder_layers': 2, 'vocab_size': 96,
}  # fmt: skip
FIELDS = {
    'umt5': {'model_type': 'umt5', 'tie_word_embeddings': False},
    'umt5-tied': {'model_type': 'umt5', 'tie_word_embeddings': True},
    'codet5': {
        'model_type': 't5', 'feed_forward_proj': 'relu', 'bos_token_id': 1,
        'eos_token_id': 2, 'pad_token_id': 0, 'decoder_start_token_id': 0,
    },
    'byt5': {
        'model_type': 't5', 'feed_forward_proj': 'gated-gelu',
        'tie_word_embeddings': False, 'vocab_size': 384,
        'decoder_start_token_id': 0, 'tokenizer_class': 'ByT5Tokenizer',
    },
    't5-silu': {
        'model_type': 't5', 'feed_forward_proj': 'gated-silu',
        'pad_token_id': 2, 'eos_token_id': [1, 5], 'vocab_size': 97,
        'decoder_start_token_id': 90, 'dtype': 'bfloat16',
    },
    'mt5': {
        'model_type': 'mt5', 'tie_word_embeddings': False,
        'num_layers': ..., 'num_hidden_layers': 3,
        'dtype': 'float16',
    },
}  # fmt: skip


@pytest.fixture(scope='module', params=FIELDS)
def pair(request, tmp_path_factory):
  fields = _SIZES | FIELDS[request.param]
  # An mT5 of transformers 5 has the embedding as its head, which is not scaled.
  embedding = () if request.param == 'mt5' else ('shared',)
  return beside_transformers.pair(
      transformers.AutoModelForSeq2SeqLM,
      fields,
      tmp_path_factory.mktemp(request.param),
      ids=(3, fields['vocab_size']),
      wide=(*embedding, 'relative_attention_bias'),
      scale=1.0,
      dtype=fields.get('dtype', 'float32'),
  )


def test_logits(pair):
  pair.check_logits()


def test_greedy_outputs(pair):
  pair.check_greedy_outputs(1)


@pytest.mark.parametrize('penalty', [0.0, 1.0, 2.0])
def test_beams(pair, penalty):
  pair.check_beams(penalty)


def random_texts():
  generator = np.random.default_rng(2)
  for bound in (0x80, 0x800, 0xD800, 0x110000):
    for _ in range(100):
      points = generator.integers(0, bound, 12)
      yield ''.join(chr(i) for i in points if not 0xD800 <= i < 0xE000)


def test_byt5_tokenizer(tmp_path):
  theirs = transformers.ByT5Tokenizer()
  theirs.save_pretrained(tmp_path)
  ours = vocabularies.load(tmp_path)
  assert ours.num_ids == len(theirs)
  for text in random_texts():
    assert ours.encode(text) == theirs.encode(text, add_special_tokens=False)
  generator = np.random.default_rng(3)
  for _ in range(200):
    ids = generator.integers(0, 384, 40).tolist()
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize('adds_space', [False, True])
def test_codet5_tokenizer(tmp_path, adds_space):
  letters = sorted(pre_tokenizers.ByteLevel.alphabet())
  pieces = ['<pad>', '<s>', '</s>', '<unk>', '<mask>', *letters, 'de', 'def']
  vocabulary = {piece: i for i, piece in enumerate(pieces)}
  (tmp_path / 'vocab.json').write_text(json.dumps(vocabulary))
  (tmp_path / 'merges.txt').write_text('#version: 0.2\nd e\nde f\n')
  fields = {
      'tokenizer_class': 'RobertaTokenizer',
      'add_prefix_space': adds_space,
      'additional_special_tokens': [f'<extra_id_{i}>' for i in (2, 1, 0)],
  }
  (tmp_path / 'tokenizer_config.json').write_text(json.dumps(fields))
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
  theirs.save_pretrained(tmp_path / 'saved')
  ours = vocabularies.load(tmp_path / 'saved')
  assert ours.num_ids == len(theirs)
  code = ['def f(x):\n  return x', 'a <extra_id_1> b</s>', '  x\t= "é"']
  for text in (*code, *random_texts()):
    ids = ours.encode(text)
    assert ids == theirs.encode(text, add_special_tokens=False)
    whole = [*ours.begin_ids, *ids, ours.eos_id]
    assert whole == theirs.encode(text)
  generator = np.random.default_rng(4)
  for _ in range(200):
    ids = generator.integers(0, 261, 40)
    ids = ids[(ids != 3) & (ids != 4)].tolist()  # shown here, as pieces
    expected = theirs.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    assert ours.decode(ids) == expected
