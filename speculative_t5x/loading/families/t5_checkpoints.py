# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 1.0, T5 1.1, mT5 and umT5: a `families.Family`.

T5X's layouts name no network: its sizes are inferred from names and shapes. In
Hugging Face folders config.json states them, and tensors have names of their
own.
"""

from collections.abc import Collection, Mapping
from typing import Any

from etils import epath
import jax

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading import tensor_maps
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation

NAME = 'T5'
# The activations, and the function that each computes, which a config may name
# as well.
_ACTIVATIONS = {
    'relu': (('relu',), 'relu'),
    'gated-gelu': (('gelu', 'linear'), 'gelu_new'),
    'gated-silu': (('silu', 'linear'), 'silu'),
}
_T5 = {
    'vocab_size': families.Field(32_128, families.SIZE),
    'd_model': families.Field(512, families.SIZE, 'hidden_size'),
    'd_kv': families.Field(64, families.SIZE, 'head_dim'),
    'd_ff': families.Field(2048, families.SIZE),
    'num_layers': families.Field(6, families.SIZE, 'num_hidden_layers'),
    'num_decoder_layers': families.Field(
        lambda x: x['num_layers'], families.SIZE
    ),
    'num_heads': families.Field(8, families.SIZE, 'num_attention_heads'),
    # T5X has these three built in.
    'relative_attention_num_buckets': families.Field(32, (32,)),
    'relative_attention_max_distance': families.Field(128, (128,)),
    'layer_norm_epsilon': families.Field(1e-6, (1e-6,)),
    'feed_forward_proj': families.Field('relu', tuple(_ACTIVATIONS)),
    # Two that transformers derives from the one above, and writes too.
    'dense_act_fn': families.Field(
        None, lambda x: (None, _ACTIVATIONS[x['feed_forward_proj']][1])
    ),
    'is_gated_act': families.Field(
        None,
        lambda x: (None, len(_ACTIVATIONS[x['feed_forward_proj']][0]) > 1),
    ),
    'tie_word_embeddings': families.Field(True, families.FLAG),
    'scale_decoder_outputs': families.Field(None, families.FLAG),
    'tie_encoder_decoder': families.Field(False, (False, None)),
    'pad_token_id': families.Field(0),
    'eos_token_id': families.Field(1),
    'bos_token_id': families.Field(None),
    'decoder_start_token_id': families.Field(None),
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
_SIZES = {
    'vocab_size': 'vocab_size',
    'emb_dim': 'd_model',
    'num_heads': 'num_heads',
    'head_dim': 'd_kv',
    'num_encoder_layers': 'num_layers',
    'num_decoder_layers': 'num_decoder_layers',
    'mlp_dim': 'd_ff',
}

# The sublayers of a block in order: their names here and there, and the norms
# before them.
_SUBLAYERS = {
    'encoder': (
        ('attention', 'SelfAttention', 'pre_attention'),
        ('mlp', 'DenseReluDense', 'pre_mlp'),
    ),
    'decoder': (
        ('self_attention', 'SelfAttention', 'pre_self_attention'),
        ('encoder_decoder_attention', 'EncDecAttention', 'pre_cross_attention'),
        ('mlp', 'DenseReluDense', 'pre_mlp'),
    ),
}
_KERNELS = {'query': 'q', 'key': 'k', 'value': 'v', 'out': 'o'}
_MLP_KERNELS = {name: name for name in ('wi', 'wi_0', 'wi_1', 'wo')}
_EMBEDDING = 'token_embedder/embedding'
_FIRST_LAYER = 'decoder/layers_0'
_TABLE = 'relpos_bias/rel_embedding'
_BIAS = 'layer.0.SelfAttention.relative_attention_bias.weight'


def _layer(stack: str) -> dict[str, str]:
  """Return tensors of a layer by T5X's names."""
  names = {}
  for i, (ours, theirs, norm) in enumerate(_SUBLAYERS[stack]):
    names[f'{norm}_layer_norm/scale'] = f'layer.{i}.layer_norm.weight'
    for part, short in (_MLP_KERNELS if ours == 'mlp' else _KERNELS).items():
      names[f'{ours}/{part}/kernel'] = f'layer.{i}.{theirs}.{short}.weight'
  return names


def _map(bias_per_layer: bool) -> tensor_maps.TensorMap:
  tables = {
      f'{stack}.block.0.{_BIAS}': f'{stack}/{_TABLE}' for stack in _SUBLAYERS
  }
  own = {_TABLE: _BIAS} if bias_per_layer else {}
  return tensor_maps.TensorMap(
      NAME,
      {stack: _layer(stack) | own for stack in _SUBLAYERS},
      {
          'shared.weight': _EMBEDDING,
          'encoder.embed_tokens.weight': _EMBEDDING,
          'decoder.embed_tokens.weight': _EMBEDDING,
          'encoder.final_layer_norm.weight': 'encoder/encoder_norm/scale',
          'decoder.final_layer_norm.weight': 'decoder/decoder_norm/scale',
          **({} if bias_per_layer else tables),
      },
      embedding=_EMBEDDING,
      before={stack: f'{stack}.block.' for stack in _SUBLAYERS},
      # In early PyTorch copies of T5, and used by no network.
      ignored=(
          r'decoder\.block\.0\.layer\.1\.EncDecAttention'
          r'\.relative_attention_bias\.weight'
      ),
  )


# T5 1.0's and T5 1.1's activations, by the number of input projections.
USUAL_ACTIVATIONS = {1: ('relu',), 2: ('gelu', 'linear')}


def of_shapes(
    specs: Mapping[str, jax.ShapeDtypeStruct]
) -> t5.T5Config:
  """See `families.Family.of_shapes` and `sizes_of_shapes`."""
  own_table = f'{_FIRST_LAYER}/{_TABLE}'
  is_feature_head = t5_preparation.FEATURES in specs
  sizes, ((read, _), *features) = sizes_of_shapes(
      specs,
      _EMBEDDING,
      own_table if own_table in specs else f'decoder/{_TABLE}',
      f'{_FIRST_LAYER}/encoder_decoder_attention/key/kernel',
      *([t5_preparation.FEATURES] if is_feature_head else []),
  )
  num_encoder_layers = num_layers(specs, 'encoder')
  is_own_width = num_encoder_layers > 0 or read == sizes['emb_dim']
  return t5.T5Config(
      **sizes,
      num_encoder_layers=num_encoder_layers,
      num_decoder_layers=num_layers(specs, 'decoder'),
      encoder_dim=None if is_own_width else read,
      feature_dim=features[0][0] if is_feature_head else None,
      bias_per_layer=own_table in specs,
  )


def sizes_of_shapes(
    specs: Mapping[str, jax.ShapeDtypeStruct],
    embedding: str,
    table: str,
    *others: str,
) -> tuple[dict[str, Any], list[tuple[int, ...]]]:
  """Return sizes by the names of T5X, and the shapes of other parameters.

  The activations are those of the T5 version with the same number of input
  projections, because shapes do not determine them.

  Args:
    specs: Parameters in T5X's layouts.
    embedding: Name of the embedding of tokens.
    table: Name of a table of relative positions.
    *others: Names of other matrices.
  Raises:
    errors.CheckpointError: naming what is missing or no matrix.
  """
  # Not all shapes are checked; `Checkpoint.check_shapes` does that.
  inputs = [x for x in specs if x.startswith(f'{_FIRST_LAYER}/mlp/wi')]
  query = f'{_FIRST_LAYER}/self_attention/query/kernel'
  names = embedding, table, query, *others, *inputs
  shapes = [specs[x].shape if x in specs else () for x in names]
  wrong = [x for x, shape in zip(names, shapes) if len(shape) != 2]
  if not wrong and shapes[2][1] % shapes[1][0]:
    wrong = [table, query]  # of a fraction of a head
  if len(inputs) not in USUAL_ACTIVATIONS:
    wrong = [f'{_FIRST_LAYER}/mlp']
  if wrong:
    raise errors.CheckpointError(
        f'{" and ".join(wrong)} is missing or of another shape, so this is not'
        " a T5 encoder-decoder or decoder under T5X's names. Pass another"
        ' checkpoint.'
    )
  (vocab_size, emb_dim), (num_heads, _), (_, joined), *_, (_, mlp_dim) = shapes
  sizes = dict(
      vocab_size=vocab_size,
      emb_dim=emb_dim,
      num_heads=num_heads,
      head_dim=joined // num_heads,
      mlp_dim=mlp_dim,
      mlp_activations=USUAL_ACTIVATIONS[len(inputs)],
      logits_via_embedding=t5_preparation.HEAD not in specs,
  )
  return sizes, shapes[3 : 3 + len(others)]


def num_layers(specs: Collection[str], stack: str) -> int:
  """Return how many layers of a stack parameters are of."""
  layers = f'{stack}/layers_'
  return len({x.split('/')[1] for x in specs if x.startswith(layers)})


def of_config(
    file: epath.Path, config: Mapping[str, Any]
) -> t5.T5Config:
  return t5.T5Config(
      **{ours: config[theirs] for ours, theirs in _SIZES.items()},
      mlp_activations=_ACTIVATIONS[config['feed_forward_proj']][0],
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


def tensor_names(
    folder: epath.Path, stored: Collection[str], network: t5.T5Config
) -> tuple[dict[str, families.Source], dict[str, str]]:
  """Return which tensor is which parameter; see `families.Family`."""
  names = _map(network.bias_per_layer)
  sources, copies = names.sources(folder, stored, network)
  # transformers stores no head that is the embedding.
  if not network.logits_via_embedding and _EMBEDDING in sources:
    head = families.Source(sources[_EMBEDDING].tensor, is_transposed=True)
    sources.setdefault(t5_preparation.HEAD, head)
  return sources, copies
