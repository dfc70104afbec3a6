# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Llama, and Qwen 3 without experts and windows: a family.

Most decoders alone are variations of Llama: they share fields of config.json
and names of tensors, and differ in a few parts of `decoder_only.DecoderOnly`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import rope as rope_lib

NAME = 'Llama'
_FULL, _SLIDING = 'full_attention', 'sliding_attention'
# Of all decoders alone: parts that no network here has.
ABSENT = {
    **families.absent(False, 'add_cross_attention'),
    **families.absent(True, 'is_causal'),
    **families.absent(None, 'attention_chunk_size'),
    **families.ABSENT,
}
# Of those without windows, whose cache has one where these say so.
FULL_ATTENTION = families.absent(None, 'sliding_window', 'layer_types')
_NUMBER = families.Field(None, families.NUMBER)
_TRAINED = 'original_max_position_embeddings'
_SCALINGS = {
    'default': (),
    'linear': ('factor',),
    'llama3': ('factor', _TRAINED, 'low_freq_factor', 'high_freq_factor'),
}
_WHOLE = {'partial_rotary_factor': families.Field(None, (None, 1.0))}
# Of RoPE itself, and by its kind those of the scaling, in the order of
# `rope_lib.Scaling`.
_OF_ROPE = {
    'rope_type': families.Field('default', tuple(_SCALINGS)),
    'rope_theta': _NUMBER,
    **_WHOLE,
    # A model whose types of layers have their own passes these one by one.
    **families.absent(None, _FULL, _SLIDING),
}
# Of those that are Llama with other parts.
LIKE_LLAMA = {
    **families.of_sizes(
        vocab_size=(32_000, 'vocab_size'),
        hidden_size=(4096, 'emb_dim'),
        intermediate_size=(11_008, 'mlp_dim'),
        num_hidden_layers=(32, 'num_layers'),
        num_attention_heads=(32, 'num_heads'),
        num_key_value_heads=(
            lambda x: x['num_attention_heads'], 'num_kv_heads'
        ),
        head_dim=(
            lambda x: x['hidden_size'] // x['num_attention_heads'], 'head_dim'
        ),
    ),
    'rms_norm_eps': families.Field(1e-6, families.NUMBER, ours='norm_eps'),
    'attention_bias': families.Field(
        False, families.FLAG, ours='qkv_bias out_bias'
    ),
    'tie_word_embeddings': families.Field(
        False, (False, True), ours='logits_via_embedding'
    ),
    **families.unchecked(
        bos_token_id=1,
        eos_token_id=2,
        max_position_embeddings=2048,
        rope_theta=10_000.0,
        rope_scaling=None,
        rope_parameters=None,
    ),
    **_WHOLE,
    **ABSENT,
}  # fmt: skip
HIDDEN_ACT = families.Field(
    'silu', families.GATED_ACTIVATIONS, ours='mlp_activations'
)
FIELDS = {
    'llama': {
        **LIKE_LLAMA,
        'hidden_act': HIDDEN_ACT,
        'mlp_bias': families.Field(False, families.FLAG, ours='mlp_bias'),
        **FULL_ATTENTION,
    },
    'qwen3': {
        **families.with_defaults(
            LIKE_LLAMA,
            vocab_size=151_936,
            intermediate_size=22_016,
            head_dim=128,
            max_position_embeddings=32_768,
            bos_token_id=None,
            eos_token_id=None,
        ),
        'hidden_act': HIDDEN_ACT,
        # Their sizes, which files state as well, change nothing without them.
        **families.absent(False, 'use_sliding_window'),
        'layer_types': families.Field(None),
    },
}
# Names of tensors, but for those of norms within a layer.
TENSORS = (
    (r'^model\.', ''),
    (r'^layers\.(\d+)\.', r'decoder/layers_\1/'),
    (r'^embed_tokens\.weight$', 'decoder/token_embedder/embedding'),
    (r'^norm\.weight$', 'decoder/decoder_norm/scale'),
    (r'/self_attn\.', '/self_attention/'),
    (r'/input_layernorm\.', '/pre_self_attention_layer_norm.'),
)
tensor_names = tensor_maps.TensorMap(
    NAME,
    (*TENSORS, (r'/post_attention_layernorm\.', '/pre_mlp_layer_norm.')),
).sources


def of_config(file, config) -> decoder_only.DecoderOnly:
  kind = config_lib.LayerKind(None, *rope(file, config))
  whole = {**config, 'sliding_window': None}
  return decoder_only.DecoderOnly(
      **families.sizes(FIELDS[config['model_type']], config),
      kinds=layer_kinds(file, whole, [False], {False: kind}),
      qk_norm=config['model_type'] == 'qwen3',
  )


def rope(
    file: epath.Path,
    config: Mapping[str, Any],
    fields: Mapping[str, Any] | None = None,
    theta: str = 'rope_theta',
) -> tuple[float, rope_lib.Scaling | None]:
  """Return theta and scaling of RoPE, by a complete config.

  transformers 5 writes both as `rope_parameters`; before, they are `rope_theta`
  and `rope_scaling`. The fields are RoPE's; None for what transformers takes.
  Where they have no theta, the field of the config of that name has it.
  """
  with errors.reading(file):
    if fields is None:
      fields = config['rope_scaling'] or config['rope_parameters'] or {}
    found = {
        'rope_theta': config[theta],
        _TRAINED: config['max_position_embeddings'],
        'rope_type': fields.get('type', 'default'),  # as it was called first
        **fields,
    }
  found = families.complete(file, found, _OF_ROPE, 'RoPE')
  of_scaling = dict.fromkeys(_SCALINGS[found['rope_type']], _NUMBER)
  found = families.complete(file, found, of_scaling, 'RoPE')
  numbers = [found[name] for name in of_scaling]
  scaling = rope_lib.Scaling(*numbers) if numbers else None
  return float(found['rope_theta']), scaling


def layer_kinds(
    file: epath.Path,
    config: Mapping[str, Any],
    by_turns: Sequence[bool],
    kinds: Mapping[bool, config_lib.LayerKind],
) -> list[config_lib.LayerKind]:
  """Return the kinds of the layers, or of the first ones, which take turns.

  `by_turns` says which layers have a window where `layer_types` of a complete
  config does not, and `kinds` has the kinds of layers with one and without.
  """
  if config['layer_types'] is None:
    return [kinds[x] for x in by_turns]
  with errors.reading(file):
    types = list(config['layer_types'])
  known = [_FULL] if config['sliding_window'] is None else [_FULL, _SLIDING]
  for layer_type in types:
    if layer_type not in known:
      raise errors.CheckpointError(
          f'{file} has the layer type {errors.shown(layer_type)}, and the'
          f' network that runs here has {" and ".join(known)}. Pass another'
          ' model.'
      )
  if len(types) != config['num_hidden_layers']:
    raise errors.CheckpointError(
        f'{file} has {len(types)} layer_types and num_hidden_layers'
        f' {config["num_hidden_layers"]}. Download it again.'
    )
  return [kinds[x == _SLIDING] for x in types]
