# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders of T5Gemma: loaded, refused, decoded as texts."""

import copy
import dataclasses

import jax
import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.speculation import contracts
from tests import checkpoints_by_hand as by_hand
from tests import decoders_by_hand
from tests import tiny_decoders

CONFIG = tiny_decoders.T5GEMMA
_BOTH = {
    'vocab_size': 96,
    'sliding_window': 8,
    'query_pre_attn_scalar': 14,
    'attn_logit_softcapping': 5.0,
    'final_logit_softcapping': 12.0,
}
FIELDS = {
    'model_type': 't5gemma',
    'encoder': _BOTH | {
        'hidden_size': 32, 'num_hidden_layers': 4, 'num_attention_heads': 3,
        'num_key_value_heads': 1, 'head_dim': 8, 'intermediate_size': 28,
    },
    'decoder': _BOTH | {
        'hidden_size': 24, 'num_hidden_layers': 3, 'num_attention_heads': 4,
        'num_key_value_heads': 2, 'head_dim': 10, 'intermediate_size': 40,
    },
    'bos_token_id': 2,
    'eos_token_id': [1, 3],
    'pad_token_id': 0,
}  # fmt: skip


def tensors(params):
  """Return the tensors of a folder with given parameters."""
  found = {}
  for stack in ('encoder', 'decoder'):
    tree, own = params[stack], f'model.{stack}'
    found[f'{own}.embed_tokens.weight'] = tree['token_embedder']['embedding']
    found[f'{own}.norm.weight'] = tree[f'{stack}_norm']['scale']
    blocks = {'self_attn': 'attention'}
    if stack == 'decoder':
      blocks = {
          'self_attn': 'self_attention', 'cross_attn': 'cross_attention'
      }
    for i in range({'encoder': 4, 'decoder': 3}[stack]):
      layer, name = tree[f'layers_{i}'], f'{own}.layers.{i}'
      for theirs, ours in {**blocks, 'feedforward': 'mlp'}.items():
        for place in ('pre', 'post'):
          scale = layer[f'{place}_{ours}_layer_norm']['scale']
          found[f'{name}.{place}_{theirs}_layernorm.weight'] = scale
      for theirs, ours in blocks.items():
        ours = ours.replace('cross', 'encoder_decoder')
        for letter, part in zip('qkvo', ('query', 'key', 'value', 'out')):
          kernel = layer[ours][part]['kernel']
          found[f'{name}.{theirs}.{letter}_proj.weight'] = kernel.T
      for theirs, part in (('gate', 'wi_0'), ('up', 'wi_1'), ('down', 'wo')):
        kernel = layer['mlp'][part]['kernel']
        found[f'{name}.mlp.{theirs}_proj.weight'] = kernel.T
  return {k: np.ascontiguousarray(x, np.float32) for k, x in found.items()}


def write(folder, seed=0, **changes):
  """Write a folder; a dict changes the fields of a stack."""
  fields = copy.deepcopy(FIELDS)
  for name, value in changes.items():
    if isinstance(value, dict):
      value = fields[name] | value
    fields[name] = value
  params = tiny_decoders.params(CONFIG, seed)
  by_hand.write_hugging_face(folder, fields, tensors(params), shards=2)
  decoders_by_hand.write_tokenizer(folder / 'tokenizer.json', '<s>')
  return folder


def test_parameters_and_ids(tmp_path):
  checkpoint = checkpoints.open(write(tmp_path))
  assert checkpoint.network() == CONFIG
  assert checkpoint.special_ids == contracts.SpecialIds(1, 0, 2, (3,))
  jax.tree.map(
      np.testing.assert_array_equal,
      checkpoint.restore_params(models.abstract_params(CONFIG)),
      tiny_decoders.params(CONFIG),
  )


def test_texts(tmp_path):
  """Inputs begin as texts do and have no end; a long one keeps its beginning.
  """
  target, draft = (write(tmp_path / str(seed), seed) for seed in (0, 1))
  decoder = st.load(
      target, draft, gamma=3, max_tokens=8, inputs_length=6, dtype='float32'
  )
  result = decoder.decode('w7 w12 w5 w7 w12 w80 w9')
  expected = decoder.tokens.generate([[2, 7, 12, 5, 7, 12]])
  assert result.tokens[-1] == expected[0]


def test_an_untied_head_and_other_layers(tmp_path):
  params = tiny_decoders.params(
      dataclasses.replace(CONFIG, logits_via_embedding=False)
  )
  found = tensors(params)
  head = params['decoder']['logits_dense']['kernel']
  found['lm_head.out_proj.weight'] = np.ascontiguousarray(head.T)
  fields = copy.deepcopy(FIELDS) | {'tie_word_embeddings': False}
  fields['decoder']['tie_word_embeddings'] = False
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


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        (dict(encoder=7), 'encoder of'),
        (dict(decoder=dict(hidden_activation='gelu')), 'hidden_act'),
        (dict(encoder=dict(num_key_value_heads=2)), 'num_kv_heads'),
        (dict(encoder=dict(num_hidden_layers=10**9)), 'num_layers'),
        (dict(encoder=dict(num_hidden_layers=5)), 'encoder/layers_4'),
        (dict(decoder=dict(sliding_window=None)), 'sliding_window'),
        (dict(decoder=dict(rope_scaling={'rope_type': 'yarn'})), 'yarn'),
        (dict(decoder=dict(layer_types=['linear_attention'])), 'linear_att'),
        (
            dict(
                tie_word_embeddings=False,
                decoder=dict(tie_word_embeddings=False),
            ),
            'logits_dense',
        ),
        (dict(model_type='t5gemma2'), 't5gemma2'),
    ],
)
def test_refused(tmp_path, changes, named):
  write(tmp_path, **changes)
  with pytest.raises(checkpoints.CheckpointError, match=named) as error:
    models.load_model(tmp_path)
  assert '\n' not in str(error.value)
