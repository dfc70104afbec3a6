# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART, Marian and NLLB beside transformers, as `transformers_test`."""

import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from tests import encoder_decoders_by_hand
from tests import tiny_decoders
from tests.loading import marian_vocabulary_test
from tests.loading import vocabularies_test

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.exhaustive
_ = transformers.GPT2LMHeadModel  # it replaces the module in sys.modules

POSITIONS = 64
LENGTHS = 1, 2, 7, 24, 40
OTHERS = {
    'bart': {'scale_embedding': True, 'activation_function': 'gelu_new'},
    'marian': {'activation_function': 'relu', 'scale_embedding': False},
}


@pytest.fixture(
    scope='module',
    params=[(name, {}) for name in encoder_decoders_by_hand.FIELDS]
    + [*OTHERS.items()],
    ids=lambda param: param[0] + ('-other' if param[1] else ''),
)
def pair(request, tmp_path_factory):
  """Return transformers' model, ours, and the decoder's prompt."""
  name, changes = request.param
  fields = encoder_decoders_by_hand.FIELDS[name] | changes
  generation = {
      x: fields.pop(x)
      for x in ('forced_bos_token_id', 'bad_words_ids')
      if x in fields
  }
  config = transformers.AutoConfig.for_model(**fields)
  theirs = transformers.AutoModelForSeq2SeqLM.from_config(
      config, attn_implementation='eager'
  ).eval()
  vars(theirs.generation_config).update(
      {**generation, 'forced_eos_token_id': None}
  )
  torch.manual_seed(0)
  with torch.no_grad():
    for key, parameter in theirs.named_parameters():
      if name == 'marian' and 'embed_positions' in key:
        continue  # the sinusoids
      scale = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.4
      mean = float(parameter.ndim == 1 and bool((parameter == 1).all()))
      parameter.normal_(mean, 1.5 * scale)
    if hasattr(theirs, 'final_logits_bias'):
      theirs.final_logits_bias.normal_(0, 1)
  folder = tmp_path_factory.mktemp(name)
  theirs.save_pretrained(folder, max_shard_size='20KB')
  assert len(list(folder.glob('*.safetensors'))) > 1
  ours = models.load_model(folder, dtype='float32')
  assert ours.config.decoder_prompt == (
      fields['decoder_start_token_id'],
      *([generation[x] for x in ('forced_bos_token_id',) if x in generation]),
  )
  return theirs, ours


def their_logits(theirs, inputs, outputs, prompt):
  ids = torch.tensor([inputs])
  with torch.no_grad():
    found = theirs(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        decoder_input_ids=torch.tensor([[*prompt, *outputs]]),
        use_cache=False,
    )
  return found.logits[0, len(prompt) - 1 :].numpy()


def test_logits(pair):
  theirs, ours = pair
  generator = np.random.default_rng(0)
  inputs = np.full((len(LENGTHS), max(LENGTHS)), -1, np.int32)
  for row, length in zip(inputs, LENGTHS):
    row[:length] = generator.integers(4, 88, length)
  outputs = generator.integers(4, 88, (len(LENGTHS), POSITIONS), np.int32)
  found = tiny_decoders.decode(ours, inputs, outputs, 4)
  for row, output, logits in zip(inputs, outputs, found):
    expected = their_logits(
        theirs, row[row >= 0].tolist(), output[:-1].tolist(),
        ours.config.decoder_prompt,
    )  # fmt: skip
    assert np.abs(expected).max() > 1
    expected[:, list(ours.special_ids.forbidden)] = -np.inf
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_greedy_outputs(pair):
  theirs, ours = pair
  decoder = token_decoder.TokenDecoder(
      ours, drafters.EarlyExit(2), gamma=3, max_tokens=16, inputs_length=24
  )
  generator = np.random.default_rng(1)
  texts = [
      generator.integers(4, 88, length).tolist()
      for length in generator.integers(1, 25, 100)
  ]
  found = decoder.generate(texts, batch_size=32)
  prompt = ours.config.decoder_prompt
  for text, tokens in zip(texts, found):
    ids = torch.tensor([text])
    output = theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        num_beams=1,
        max_new_tokens=16 + len(prompt) - 1,
    )[0].tolist()
    assert tuple(output[: len(prompt)]) == prompt
    output = output[len(prompt) :]
    if output[-1] == ours.special_ids.end:
      output = output[:-1]
    if output != tokens:
      at = next(i for i, (x, y) in enumerate(zip(output, tokens)) if x != y)
      logits = their_logits(theirs, text, output[:at], prompt)[-1]
      assert abs(logits[output[at]] - logits[tokens[at]]) < 1e-4


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
