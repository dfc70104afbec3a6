# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of BART and its like: languages, prompts, texts and settings."""

import functools

import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models
from tests import checkpoints_by_hand as by_hand
from tests import decoders_by_hand
from tests import encoder_decoders_by_hand as folders
from tests import reference_network as reference
from tests import tiny_decoders
from tests import tiny_encoder_decoders as tiny_networks

TEXT = 'w7 w12 w5 w7 w12 w80'
IDS = [7, 12, 5, 7, 12, 80]


def greedy(name, inputs, count, prompt=None):
  config = tiny_networks.CONFIGS[name]
  params, found = tiny_decoders.params(config), []
  if prompt is not None:
    config = config.with_decoder_prompt(prompt)
  ids = tiny_networks.SPECIAL_IDS[name]
  while len(found) < count:
    logits = reference.logits(config, params, inputs, found)[-1]
    logits[list(ids.forbidden)] = -np.inf
    token = int(np.argmax(logits))
    if token == ids.end:
      break
    found.append(token)
  return found


def load(target, draft, **changes):
  return st.load(
      target,
      draft,
      gamma=3,
      max_tokens=12,
      inputs_length=16,
      dtype='float32',
      **changes,
  )


def test_ends_and_prompts(tmp_path):
  """The tokenizer says what begins inputs, the model what begins outputs."""
  for name, begin in (('bart', 0), ('nllb', 88)):
    folder = folders.write(tmp_path / name, name)
    decoder = load(folder, st.drafters.EarlyExit(2))
    assert decoder.inputs_form == inputs_form.InputsForm((begin,), (2,))
    config = decoder.tokens.target.config
    assert config.decoder_prompt == tiny_networks.CONFIGS[name].decoder_prompt


def test_languages(tmp_path):
  """A draft that names no language drafts in the target's."""
  write = functools.partial(folders.write, forced_bos_token_id=None)
  target, draft = (
      write(tmp_path / str(seed), 'nllb', seed) for seed in (0, 1)
  )
  decoder = load(target, draft, languages=('fra_Latn', 'ace_Latn'))
  expected = greedy('nllb', [90, *IDS, 2], 12, prompt=(2, 89))
  assert expected and decoder.decode(TEXT).tokens[-1] == expected
  loaded = models.load_model(target, dtype='float32')
  other = load(
      loaded, draft, vocabulary=target, languages=('fra_Latn', 'ace_Latn')
  )
  assert other.inputs_form == decoder.inputs_form
  assert other.tokens.target.config == decoder.tokens.target.config


@pytest.mark.parametrize(
    ('name', 'languages', 'named'),
    [
        ('nllb', None, 'languages'),
        ('nllb', ('eng_Latn', 'deu_Lat'), 'deu_Latn'),
        ('nllb', ('w4', 'w5'), "'w4'"),  # two words
        ('nllb', ('eng_Latn', '</s>'), "'</s>'"),
        ('nllb', ('eng_Latn',), 'must be two'),
        ('nllb', 'eng_Latn', 'must be two'),
        ('llama', ('w7', 'w8'), 'is not told'),
    ],
)
def test_languages_that_are_refused(tmp_path, name, languages, named):
  if name == 'nllb':
    folder = folders.write(tmp_path, name, forced_bos_token_id=None)
  else:
    folder = decoders_by_hand.write(tmp_path, name)
  with pytest.raises(ValueError, match=named) as error:
    load(folder, st.drafters.Lookup(), languages=languages)
  assert '\n' not in str(error.value)


def test_files_without_a_head(tmp_path):
  """They have no prefix, no bias of the logits, and copies."""
  found = {
      name.removeprefix('model.'): x
      for name, x in folders.tensors(
          tiny_decoders.params(tiny_networks.CONFIGS['bart'])
      ).items()
      if name != 'final_logits_bias'
  }
  for stack in ('encoder', 'decoder'):
    found[f'{stack}.embed_tokens.weight'] = found['shared.weight']
    found[f'{stack}.version'] = np.zeros(1, np.float32)
  fields = folders.FIELDS['bart']
  by_hand.write_hugging_face(tmp_path, fields, found)
  config = models.load_model(tmp_path, dtype='float32').config
  assert not config.logits_bias
  found['encoder.embed_tokens.weight'] = 2 * found['shared.weight']
  by_hand.write_hugging_face(tmp_path, fields, found)
  with pytest.raises(checkpoints.CheckpointError, match='encoder.embed'):
    models.load_model(tmp_path)


def test_forbidden_ids(tmp_path):
  folder = folders.write(
      tmp_path,
      'bart',
      bad_words_ids=[[7], [2], [8, 9]],
      suppress_tokens=[5],
  )
  model = models.load_model(folder)
  assert model.special_ids.forbidden == (7, 5)  # and not the end
