# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 1.0, T5 1.1, mT5, umT5, and the decoder alone of T5X: a family.

T5X's layouts name no network: its sizes are inferred from names and shapes. In
Hugging Face folders config.json states them, and tensors have names of their
own.
"""

from collections.abc import Collection, Mapping
import dataclasses
import functools
from typing import Any

import jax

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation

NAME = 'T5'
_DENSE_ACT_FNS = {
    'relu': 'relu',
    'gated-gelu': 'gelu_new',
    'gated-silu': 'silu',
}
_T5 = {
    **families.of_sizes(
        vocab_size=(32_128, 'vocab_size'),
        d_model=(512, 'emb_dim'),
        d_kv=(64, 'head_dim'),
        d_ff=(2048, 'mlp_dim'),
        num_layers=(6, 'num_encoder_layers'),
        num_decoder_layers=(lambda x: x['num_layers'], 'num_decoder_layers'),
        num_heads=(8, 'num_heads'),
    ),
    # T5X has these three built in.
    'relative_attention_num_buckets': families.Field(32, (32,)),
    'relative_attention_max_distance': families.Field(128, (128,)),
    'layer_norm_epsilon': families.Field(1e-6, (1e-6,)),
    'feed_forward_proj': families.Field(
        'relu',
        {
            'relu': ('relu',),
            'gated-gelu': ('gelu', 'linear'),
            'gated-silu': ('silu', 'linear'),
        },
        ours='mlp_activations',
    ),
    # Two that transformers derives from the one above, and writes too.
    'dense_act_fn': families.Field(
        None, lambda x: (None, _DENSE_ACT_FNS[x['feed_forward_proj']])
    ),
    'is_gated_act': families.Field(
        None, lambda x: (None, x['feed_forward_proj'].startswith('gated-'))
    ),
    'tie_word_embeddings': families.Field(True, families.FLAG),
    'scale_decoder_outputs': families.Field(None, families.FLAG),
    **families.absent(False, 'tie_encoder_decoder'),
    **families.unchecked(
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        decoder_start_token_id=None,
    ),
    **families.ABSENT,
}
_MT5 = families.with_defaults(
    _T5,
    vocab_size=250_112,
    d_ff=1024,
    num_layers=8,
    num_heads=6,
    feed_forward_proj='gated-gelu',
    decoder_start_token_id=0,
)
FIELDS = {'t5': _T5, 'mt5': _MT5, 'umt5': _MT5}
_EMBEDDING = 'token_embedder/embedding'
# Of a decoder alone, which has no parent.
_ALONE = 'decoder/token_embedder/embedding'
_FIRST_LAYER = 'decoder/layers_0'
_TABLE = 'relpos_bias/rel_embedding'
_TENSORS = tensor_maps.TensorMap(
    NAME,
    (
        (r'^(shared|(en|de)coder\.embed_tokens)\.weight$', _EMBEDDING),
        (r'^(en|de)coder\.final_layer_norm\.', r'\1coder/\1coder_norm.'),
        (r'^(en|de)coder\.block\.(\d+)\.', r'\1coder/layers_\2/'),
        (r'\.relative_attention_bias\.weight$', '/rel_embedding'),
        (r'/layer\.0\.SelfAttention/', '/relpos_bias/'),
        # The sublayers in order; an encoder has no second one.
        (r'^(encoder/.*)layer\.0\.layer_norm', r'\1pre_attention_layer_norm'),
        (r'^(encoder/.*)layer\.1\.layer_norm', r'\1pre_mlp_layer_norm'),
        (r'layer\.0\.layer_norm', 'pre_self_attention_layer_norm'),
        (r'layer\.1\.layer_norm', 'pre_cross_attention_layer_norm'),
        (r'layer\.2\.layer_norm', 'pre_mlp_layer_norm'),
        (r'^(encoder/.*)layer\.0\.SelfAttention\.', r'\1attention/'),
        (r'layer\.0\.SelfAttention\.', 'self_attention/'),
        (r'layer\.1\.EncDecAttention\.', 'encoder_decoder_attention/'),
        (r'layer\.[12]\.DenseReluDense\.', 'mlp/'),
    ),
    embedding=_EMBEDDING,
    # In early PyTorch copies of T5, and used by no network.
    ignored=r'\.EncDecAttention\.relative_attention_bias\.weight$',
)
_SHARED_TABLES = dataclasses.replace(
    _TENSORS, rules=(*_TENSORS.rules, (r'layers_0/relpos_bias', 'relpos_bias'))
)


# T5 1.0's and T5 1.1's activations, by the number of input projections.
USUAL_ACTIVATIONS = {1: ('relu',), 2: ('gelu', 'linear')}


def of_shapes(specs: Mapping[str, jax.ShapeDtypeStruct]) -> network_lib.Network:
  """Return the network of parameters under T5X's names.

  The activations are those of the T5 version with the same number of input
  projections, because shapes do not determine them. Whether a prompt of a
  decoder alone attends in both directions is nowhere: it is taken not to.

  Raises:
    errors.CheckpointError: naming what is missing or no matrix.
  """
  # Not all shapes are checked; `Checkpoint.check_shapes` does that.
  shape_of = functools.partial(_matrix_shape, specs)
  cross = f'{_FIRST_LAYER}/encoder_decoder_attention/key/kernel'
  own_table = f'{_FIRST_LAYER}/{_TABLE}'
  is_alone = cross not in specs and _ALONE in specs
  vocab_size, emb_dim = shape_of(_ALONE if is_alone else _EMBEDDING)
  table = own_table if own_table in specs else f'decoder/{_TABLE}'
  num_heads, _ = shape_of(table)
  query = f'{_FIRST_LAYER}/self_attention/query/kernel'
  _, joined = shape_of(query)
  if joined % num_heads:
    raise _not_of_t5(f'{table} and {query}')
  inputs = [x for x in specs if x.startswith(f'{_FIRST_LAYER}/mlp/wi')]
  if len(inputs) not in USUAL_ACTIVATIONS:
    raise _not_of_t5(f'{_FIRST_LAYER}/mlp')
  sizes = dict(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_heads=num_heads,
      head_dim=joined // num_heads,
      mlp_dim=shape_of(inputs[0])[1],
      mlp_activations=USUAL_ACTIVATIONS[len(inputs)],
      logits_via_embedding=t5_preparation.HEAD not in specs,
      **t5_preparation.block_sizes({x: y.shape for x, y in specs.items()}),
  )
  num_layers = {x: _num_layers(specs, x) for x in ('encoder', 'decoder')}
  if is_alone:
    return decoder_only.DecoderOnly.of_t5x(
        **sizes, num_layers=num_layers['decoder']
    )
  read, _ = shape_of(cross)
  is_feature_head = t5_preparation.FEATURES in specs
  return t5.T5Config(
      **sizes,
      **{f'num_{stack}_layers': x for stack, x in num_layers.items()},
      encoder_dim=None if num_layers['encoder'] or read == emb_dim else read,
      feature_dim=(
          shape_of(t5_preparation.FEATURES)[0] if is_feature_head else None
      ),
      bias_per_layer=own_table in specs,
  )


def _matrix_shape(
    specs: Mapping[str, jax.ShapeDtypeStruct], name: str
) -> tuple[int, int]:
  shape = specs[name].shape if name in specs else ()
  if len(shape) != 2:
    raise _not_of_t5(name)
  return shape


def _not_of_t5(names: str) -> errors.CheckpointError:
  return errors.CheckpointError(
      f"{names} is missing or of another shape, so this is not a T5"
      " encoder-decoder or decoder under T5X's names. Pass another checkpoint."
  )


def _num_layers(specs: Collection[str], stack: str) -> int:
  layers = f'{stack}/layers_'
  return len({x.split('/')[1] for x in specs if x.startswith(layers)})


def of_config(file, config) -> t5.T5Config:
  return t5.T5Config(
      **families.sizes(_T5, config),
      logits_via_embedding=_is_scaled(config),
      bias_per_layer=config['model_type'] == 'umt5',
  )


def _is_scaled(config: Mapping[str, Any]) -> bool:
  """Return whether the output head is the scaled embedding, as in T5 1.0.

  An unscaled head may be the embedding too. From version 5 on, transformers
  writes tie_word_embeddings true for every model; scale_decoder_outputs says
  which T5 scales, and no mT5 does.
  """
  if config['model_type'] == 'mt5':
    return False
  is_scaled = config['scale_decoder_outputs']
  if is_scaled is None:
    is_scaled = config['tie_word_embeddings']
  return is_scaled is None or bool(is_scaled)


def tensor_names(folder, stored, network):
  names = _TENSORS if network.bias_per_layer else _SHARED_TABLES
  sources, copies = names.sources(folder, stored, network)
  # transformers stores no head that is the embedding.
  if not network.logits_via_embedding and _EMBEDDING in sources:
    head = families.Location(sources[_EMBEDDING].tensor, is_transposed=True)
    sources.setdefault(t5_preparation.HEAD, head)
  return sources, copies
