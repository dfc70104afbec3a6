# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of T5Gemma and T5Gemma 2: other names and heads, and texts."""

import copy
import dataclasses
import functools

import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from tests import checkpoints_by_hand as by_hand
from tests import t5gemma_by_hand
from tests import tiny_decoders
from tests.loading.checkpoints import steps

CONFIG, CONFIG_2 = t5gemma_by_hand.CONFIGS.values()
FIELDS = t5gemma_by_hand.FIELDS
write = functools.partial(t5gemma_by_hand.write, name='t5gemma')


def check(folder, config):
  checkpoint = checkpoints.open(folder)
  assert checkpoint.network() == config
  assert checkpoint.special_ids == t5gemma_by_hand.SPECIAL_IDS
  steps.assert_holds(folder, tiny_decoders.params(config), config)


def test_other_names_and_copies(tmp_path):
  """As earlier versions of transformers name the encoder's."""
  params = tiny_decoders.params(CONFIG_2)
  found = t5gemma_by_hand.tensors_2(params, 'model.encoder')
  table = found['model.encoder.embed_tokens.weight']
  for name in ('model.decoder.embed_tokens.weight', 'lm_head.out_proj.weight'):
    found[name] = table
  by_hand.write_hugging_face(tmp_path, FIELDS['t5gemma2'], found)
  check(tmp_path, CONFIG_2)
  found['lm_head.out_proj.weight'] = table + 1
  by_hand.write_hugging_face(tmp_path, FIELDS['t5gemma2'], found)
  with pytest.raises(checkpoints.CheckpointError, match='lm_head'):
    models.load_model(tmp_path)


def test_texts(tmp_path):
  """Inputs begin as texts do and have no end; a long one keeps its beginning.
  """
  target, draft = (write(tmp_path / str(seed), seed=seed) for seed in (0, 1))
  decoder = st.load(
      target, draft, gamma=3, max_tokens=8, inputs_length=6, dtype='float32'
  )
  result = decoder.decode('w7 w12 w5 w7 w12 w80 w9')
  expected = decoder.tokens.generate([[2, 7, 12, 5, 7, 12]])
  assert result.tokens[-1] == expected[0]


@pytest.mark.parametrize(
    ('whole', 'of_decoder', 'is_tied'),
    [(..., False, True), (True, False, True), (False, True, False)],
)
def test_the_head_is_tied_by_the_whole_model(
    tmp_path, whole, of_decoder, is_tied
):
  write(
      tmp_path,
      tie_word_embeddings=whole,
      decoder=dict(tie_word_embeddings=of_decoder),
  )
  assert checkpoints.open(tmp_path).network().logits_via_embedding == is_tied


def test_special_ids_of_the_decoder(tmp_path):
  """They are those of a model that states none."""
  own = dict(bos_token_id=2, eos_token_id=[1, 3], pad_token_id=0)
  write(tmp_path, decoder=own, **dict.fromkeys(own, ...))
  check(tmp_path, CONFIG)


def test_an_untied_head_and_other_layers(tmp_path):
  params = tiny_decoders.params(
      dataclasses.replace(CONFIG, logits_via_embedding=False)
  )
  found = t5gemma_by_hand.tensors(params)
  head = params['decoder']['logits_dense']['kernel']
  fields = copy.deepcopy(FIELDS['t5gemma']) | {'tie_word_embeddings': False}
  fields['encoder']['layer_types'] = ['full_attention'] * 4
  fields['decoder']['attn_logit_softcapping'] = None
  by_hand.write_hugging_face(tmp_path, fields, found)
  model = models.load_model(tmp_path, dtype='float32')
  assert not model.config.logits_via_embedding
  assert model.config.attention_cap is None
  kinds = [model.config.encoder.kind(i).window for i in range(4)]
  assert kinds == [None] * 4
  merged = model.params['decoder']['logits_dense']['kernel']
  np.testing.assert_array_equal(merged, head)
