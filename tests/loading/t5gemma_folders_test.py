# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of T5Gemma and T5Gemma 2: loaded, refused, decoded as texts."""

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

CONFIG, CONFIG_2 = tiny_decoders.T5GEMMA, tiny_decoders.T5GEMMA_2
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


# Of T5Gemma 2, whose fields of images are not read.
_BOTH_2 = {
    'vocab_size': 96, 'hidden_size': 24, 'num_key_value_heads': 2,
    'head_dim': 10, 'query_pre_attn_scalar': 14, 'sliding_window': 8,
    'final_logit_softcapping': 12.0,
    'rope_parameters': {
        'sliding_attention': {'rope_type': 'default', 'rope_theta': 1e4},
        'full_attention': {
            'rope_type': 'linear', 'factor': 8.0, 'rope_theta': 1e6,
        },
    },
}
FIELDS_2 = {
    'model_type': 't5gemma2',
    'encoder': {
        'text_config': _BOTH_2 | {
            'num_attention_heads': 2, 'num_hidden_layers': 4,
            'intermediate_size': 28,
            'layer_types': ['sliding_attention', 'full_attention'] * 2,
        },
        'vision_config': {
            'model_type': 'siglip_vision_model', 'hidden_size': 8,
            'intermediate_size': 8, 'num_hidden_layers': 1,
            'num_attention_heads': 1, 'image_size': 8, 'patch_size': 4,
        },
        'mm_tokens_per_image': 4,
        'eoi_token_index': 90,
    },
    'decoder': _BOTH_2 | {
        'num_attention_heads': 4, 'num_hidden_layers': 3,
        'intermediate_size': 40, 'sliding_window_pattern': 3,
        'eos_token_id': [1, 3],
    },
    'image_token_index': 91,
    'eos_token_id': [1, 3],
}  # fmt: skip
_IMAGES = 'model.encoder.vision_tower.post_layernorm.bias'


_NAMES = (
    (r'^decoder/logits_dense/kernel', 'lm_head.out_proj.weight'),
    (r'/token_embedder/embedding', '.embed_tokens.weight'),
    (r'/token_embedder/unscaled', '.embed_tokens.eoi_embedding'),
    (r'/(en|de)coder_norm/scale', '.norm.weight'),
    (r'/layers_(\d+)/', r'.layers.\1.'),
    (r'mlp_layer_norm/scale', 'feedforward_layernorm.weight'),
    (r'cross_attention_layer_norm/scale', 'cross_attn_layernorm.weight'),
    (r'(self_)?attention_layer_norm/scale', 'self_attn_layernorm.weight'),
    (r'encoder_decoder_attention/', 'cross_attn.'),
    (r'(self_)?attention/', 'self_attn.'),
    (r'attn\.([qk])\w+_norm/scale', r'attn.\1_norm.weight'),
    (r'attn\.([qkvo])\w+/kernel', r'attn.\1_proj.weight'),
    *decoders_by_hand.GATED_MLP,
    (r'^decoder', 'model.decoder'),
)


def tensors(params, of_encoder='model.encoder'):
  """Return the tensors of a folder with given parameters."""
  return by_hand.renamed(params, *_NAMES, (r'^encoder', of_encoder))


def tensors_2(params, of_encoder='model.encoder.text_model'):
  """Return those of T5Gemma 2, with tensors that are not read."""
  found = tensors(params, of_encoder)
  for name in ('embed_tokens.weight', 'embed_tokens.eoi_embedding'):
    found[f'{of_encoder}.{name}'] = found.pop(f'model.decoder.{name}')
  return found | {_IMAGES: np.zeros(8, np.float32)}


def write(folder, seed=0, is_second=False, **changes):
  """Write a folder; a dict changes the fields of a stack."""
  fields = copy.deepcopy(FIELDS_2 if is_second else FIELDS)
  for name, value in changes.items():
    if isinstance(value, dict):
      value = fields[name] | value
    fields[name] = value
  params = tiny_decoders.params(CONFIG_2 if is_second else CONFIG, seed)
  found = (tensors_2 if is_second else tensors)(params)
  by_hand.write_hugging_face(folder, fields, found, shards=2)
  decoders_by_hand.write_tokenizer(folder / 'tokenizer.json', '<s>')
  return folder


def check_parameters_and_ids(folder, config):
  checkpoint = checkpoints.open(folder)
  assert checkpoint.network() == config
  assert checkpoint.special_ids == contracts.SpecialIds(1, 0, 2, (3,))
  jax.tree.map(
      np.testing.assert_array_equal,
      checkpoint.restore_params(models.abstract_params(config)),
      tiny_decoders.params(config),
  )


@pytest.mark.parametrize('is_second', [False, True])
def test_parameters_and_ids(tmp_path, is_second):
  config = CONFIG_2 if is_second else CONFIG
  check_parameters_and_ids(write(tmp_path, is_second=is_second), config)


def test_other_names_and_copies(tmp_path):
  """As earlier versions of transformers name the encoder's."""
  found = tensors_2(tiny_decoders.params(CONFIG_2), 'model.encoder')
  table = found['model.encoder.embed_tokens.weight']
  for name in ('model.decoder.embed_tokens.weight', 'lm_head.out_proj.weight'):
    found[name] = table
  by_hand.write_hugging_face(tmp_path, FIELDS_2, found)
  check_parameters_and_ids(tmp_path, CONFIG_2)
  found['lm_head.out_proj.weight'] = table + 1
  by_hand.write_hugging_face(tmp_path, FIELDS_2, found)
  with pytest.raises(checkpoints.CheckpointError, match='lm_head'):
    models.load_model(tmp_path)


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
  check_parameters_and_ids(tmp_path, CONFIG)


def test_an_untied_head_and_other_layers(tmp_path):
  params = tiny_decoders.params(
      dataclasses.replace(CONFIG, logits_via_embedding=False)
  )
  found = tensors(params)
  head = params['decoder']['logits_dense']['kernel']
  fields = copy.deepcopy(FIELDS) | {'tie_word_embeddings': False}
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
        (dict(tie_word_embeddings=False), 'logits_dense'),
        (dict(model_type='t5gemma3'), 't5gemma3'),
        (dict(is_second=True, encoder=7), 'encoder and decoder of'),
        (
            dict(is_second=True, encoder=dict(eoi_token_index=None)),
            'eoi_token_index',
        ),
        (dict(is_second=True, decoder=dict(hidden_size=32)), 'emb_dim is 24'),
        (dict(is_second=True, decoder=dict(vocab_size=95)), 'vocab_size is 96'),
        (
            dict(is_second=True, decoder=dict(attn_logit_softcapping=50.0)),
            'attn_logit_softcapping',
        ),
        (dict(is_second=True, tie_word_embeddings=False), 'tie_word_embed'),
    ],
)
def test_refused(tmp_path, changes, named):
  write(tmp_path, **changes)
  with pytest.raises(checkpoints.CheckpointError, match=named) as error:
    models.load_model(tmp_path)
  assert '\n' not in str(error.value)
