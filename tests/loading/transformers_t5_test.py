# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5's family beside transformers, where it and PyTorch are installed.

transformers makes small random checkpoints of umT5's, CodeT5's and ByT5's
shape, and their tokenizers read random texts.
"""

import json

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from tests import tiny_decoders

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.exhaustive
_ = transformers.T5ForConditionalGeneration  # replaces the module

POSITIONS = 64
INPUTS = 1, 2, 9, 40
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
}  # fmt: skip


@pytest.fixture(scope='module', params=FIELDS)
def pair(request, tmp_path_factory):
  """Return transformers' model and ours."""
  fields = _SIZES | FIELDS[request.param]
  theirs = transformers.AutoModelForSeq2SeqLM.from_config(
      transformers.AutoConfig.for_model(**fields)
  ).eval()
  torch.manual_seed(0)
  with torch.no_grad():
    for name, parameter in theirs.named_parameters():
      mean = float(parameter.ndim == 1)
      is_table = 'shared' in name or 'relative_attention_bias' in name
      scale = 1.0 if is_table else parameter.shape[-1] ** -0.5
      parameter.normal_(mean, 0.4 if parameter.ndim == 1 else scale)
  folder = tmp_path_factory.mktemp(request.param)
  theirs.save_pretrained(folder, max_shard_size='20KB')
  assert len(list(folder.glob('*.safetensors'))) > 1
  return theirs, models.load_model(folder, dtype='float32')


def their_logits(model, inputs, outputs):
  ids = torch.tensor([inputs])
  with torch.no_grad():
    found = model(
        ids,
        attention_mask=torch.ones_like(ids),
        decoder_input_ids=torch.tensor([outputs]),
        use_cache=False,
    )
  return found.logits[0].numpy()


def test_logits(pair):
  theirs, ours = pair
  generator = np.random.default_rng(0)
  size = ours.config.vocab_size
  outputs = generator.integers(0, size, (len(INPUTS), POSITIONS), np.int32)
  inputs = np.full((len(INPUTS), max(INPUTS)), -1, np.int32)
  for i, length in enumerate(INPUTS):
    inputs[i, :length] = generator.integers(1, size, length)
  found = tiny_decoders.decode(ours, inputs, outputs, 4)
  for i, length in enumerate(INPUTS):
    fed = [0, *outputs[i].tolist()]
    expected = their_logits(theirs, inputs[i, :length].tolist(), fed)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(found[i], expected[: len(found[i])], atol=1e-4)


def test_greedy_outputs(pair):
  theirs, ours = pair
  decoder = token_decoder.TokenDecoder(
      ours, drafters.EarlyExit(1), gamma=3, max_tokens=16, inputs_length=24
  )
  generator = np.random.default_rng(1)
  inputs = [
      generator.integers(3, ours.config.vocab_size, length).tolist()
      for length in generator.integers(1, 25, 100)
  ]
  end = ours.special_ids.end
  for each, tokens in zip(inputs, decoder.generate(inputs, batch_size=32)):
    ids = torch.tensor([each])
    output = theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=16,
    )[0, 1:].tolist()
    output = output[: output.index(end)] if end in output else output
    if output != tokens:
      at = next(i for i, (x, y) in enumerate(zip(output, tokens)) if x != y)
      logits = their_logits(theirs, each, [0, *output[:at]])[-1]
      assert abs(logits[output[at]] - logits[tokens[at]]) < 1e-4


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
  ours = vocabularies.load(tmp_path)
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
