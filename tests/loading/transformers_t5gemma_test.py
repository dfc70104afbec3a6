# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma beside transformers, where it and PyTorch are installed.

transformers 4.57.6 computes it right only so: in eager attention, without a
cache, and with every mask given.
"""

import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from tests import tiny_decoders
from tests.loading import t5gemma_folders_test

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.exhaustive
_ = transformers.T5GemmaForConditionalGeneration  # replaces the module

POSITIONS = 64
INPUTS = 1, 2, 7, 8, 9, 24, 40  # the window is 8


@pytest.fixture(scope='module', params=['tied', 'untied'])
def pair(request, tmp_path_factory):
  """Return transformers' model and ours."""
  fields = dict(t5gemma_folders_test.FIELDS)
  if request.param == 'untied':
    fields |= {
        'tie_word_embeddings': False,
        'encoder': fields['encoder'] | {'attention_bias': True},
        'decoder': fields['decoder'] | {
            'attention_bias': True, 'num_key_value_heads': 4,
            'tie_word_embeddings': False,
        },
    }  # fmt: skip
  config = transformers.AutoConfig.for_model(
      fields['model_type'],
      **{k: x for k, x in fields.items() if k != 'model_type'},
      vocab_size=96,
  )
  theirs = transformers.AutoModelForSeq2SeqLM.from_config(
      config, attn_implementation='eager'
  ).eval()
  torch.manual_seed(0)
  with torch.no_grad():
    for parameter in theirs.parameters():
      scale = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.4
      parameter.normal_(0.0, 1.5 * scale)
  folder = tmp_path_factory.mktemp(request.param)
  theirs.save_pretrained(folder, max_shard_size='20KB')
  assert len(list(folder.glob('*.safetensors'))) > 1
  return theirs, models.load_model(folder, dtype='float32')


def their_logits(model, inputs, outputs):
  """Return the logits after the start and each of the outputs."""
  inputs, outputs = torch.tensor([inputs]), torch.tensor([[2, *outputs]])
  with torch.no_grad():
    found = model(
        inputs,
        attention_mask=torch.ones_like(inputs),
        decoder_input_ids=outputs,
        decoder_attention_mask=torch.ones_like(outputs),
        use_cache=False,
    )
  return found.logits[0].numpy()


def test_logits(pair):
  theirs, ours = pair
  generator = np.random.default_rng(0)
  outputs = generator.integers(0, 96, (len(INPUTS), POSITIONS), np.int32)
  inputs = np.full((len(INPUTS), max(INPUTS)), -1, np.int32)
  for row, length in zip(inputs, INPUTS):
    row[:length] = generator.integers(0, 96, length)
  found = tiny_decoders.decode(ours, inputs, outputs, 4)
  for row, output, logits in zip(inputs, outputs, found):
    given = row[row >= 0].tolist()
    expected = their_logits(theirs, given, output[:-1].tolist())
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_greedy_outputs(pair):
  theirs, ours = pair
  decoder = token_decoder.TokenDecoder(
      ours, drafters.EarlyExit(2), gamma=3, max_tokens=16, inputs_length=24
  )
  generator = np.random.default_rng(1)
  inputs = [
      generator.integers(4, 96, length).tolist()
      for length in generator.integers(1, 25, 100)
  ]
  ends = list(ours.special_ids.ends)
  for row, tokens in zip(inputs, decoder.generate(inputs, batch_size=32)):
    logits = their_logits(theirs, row, tokens)
    for token, each in zip(tokens, logits):
      assert each.max() - each[token] < 1e-4
    if len(tokens) < 16:
      assert logits[-1].max() - logits[-1][ends].max() < 1e-4
