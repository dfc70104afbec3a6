# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoders alone beside transformers, where it and PyTorch are installed.

transformers makes a random checkpoint of a family's shape and saves it in
shards; it is read here, and both compute the same. Every tensor is random,
since initial ones and zeros hide norms and biases that are not read.
"""

import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from tests import decoders_by_hand
from tests import tiny_decoders

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.exhaustive
_ = transformers.GPT2LMHeadModel  # it replaces the module in sys.modules

POSITIONS = 64
PROMPTS = 1, 2, 7, 8, 9, 24, 40  # the window is 8
OTHERS = {
    'llama': {'head_dim': None, 'attention_bias': True, 'mlp_bias': True},
    'gemma3': {'num_key_value_heads': 2, 'head_dim': 16},
}


@pytest.fixture(
    scope='module',
    params=[(name, {}) for name in decoders_by_hand.FIELDS] + [*OTHERS.items()],
    ids=lambda param: param[0] + ('-other' if param[1] else ''),
)
def pair(request, tmp_path_factory):
  """Return transformers' model and ours."""
  name, changes = request.param
  fields = decoders_by_hand.FIELDS[name] | changes
  config = transformers.AutoConfig.for_model(**fields)
  theirs = transformers.AutoModelForCausalLM.from_config(
      config, attn_implementation='eager'
  ).eval()
  torch.manual_seed(0)
  with torch.no_grad():
    for parameter in theirs.parameters():
      scale = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.4
      mean = float(parameter.ndim == 1 and bool((parameter == 1).all()))
      parameter.normal_(mean, 1.5 * scale)
  folder = tmp_path_factory.mktemp(name)
  theirs.save_pretrained(folder, max_shard_size='20KB')
  assert len(list(folder.glob('*.safetensors'))) > 1
  return theirs, models.load_model(folder, dtype='float32')


def their_logits(model, tokens):
  with torch.no_grad():
    ids = torch.tensor([tokens])
    out = model(
        ids, attention_mask=torch.ones_like(ids), use_cache=False
    )
  return out.logits[0].numpy()


def test_logits(pair):
  theirs, ours = pair
  generator = np.random.default_rng(0)
  texts = generator.integers(0, 96, (len(PROMPTS), POSITIONS), np.int32)
  inputs = np.full((len(PROMPTS), max(PROMPTS)), -1, np.int32)
  outputs = np.zeros((len(PROMPTS), POSITIONS), np.int32)
  for i, (text, length) in enumerate(zip(texts, PROMPTS)):
    inputs[i, :length] = text[:length]
    outputs[i, : POSITIONS - length] = text[length:]
  found = tiny_decoders.decode(ours, inputs, outputs, 4)
  for i, (text, length) in enumerate(zip(texts, PROMPTS)):
    expected = their_logits(theirs, text.tolist())[length - 1 :]
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(found[i, : len(expected)], expected, atol=1e-4)


def test_greedy_outputs(pair):
  theirs, ours = pair
  decoder = token_decoder.TokenDecoder(
      ours, drafters.EarlyExit(2), gamma=3, max_tokens=16, inputs_length=24
  )
  generator = np.random.default_rng(1)
  prompts = [
      generator.integers(4, 96, length).tolist()
      for length in generator.integers(1, 25, 100)
  ]
  found = decoder.generate(prompts, batch_size=32)
  ends = list(ours.special_ids.ends)
  for prompt, tokens in zip(prompts, found):
    ids = torch.tensor([prompt])
    output = theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=16,
        eos_token_id=ends,
        pad_token_id=0,
    )[0, len(prompt) :].tolist()
    if output[-1] in ends:
      output = output[:-1]
    if output != tokens:
      at = next(i for i, (x, y) in enumerate(zip(output, tokens)) if x != y)
      logits = their_logits(theirs, [*prompt, *output[:at]])[-1]
      assert abs(logits[output[at]] - logits[tokens[at]]) < 1e-4


