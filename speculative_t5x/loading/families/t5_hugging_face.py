# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders of T5 1.0, T5 1.1 and mT5, under T5X's names.

config.json states the network, the tensors have names of their own, and both
config.json and generation_config.json state special ids and how to decode.
"""

from collections.abc import Collection, Mapping
import re
from typing import Any

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.speculation import contracts

# What each model type means where its config.json is silent.
_DEFAULTS = {
    't5': {
        'feed_forward_proj': 'relu',
        'pad_token_id': 0,
        'eos_token_id': 1,
    },
    'mt5': {
        'feed_forward_proj': 'gated-gelu',
        'pad_token_id': 0,
        'eos_token_id': 1,
        'decoder_start_token_id': 0,
    },
}
MODEL_TYPES = tuple(_DEFAULTS)
# The activations, and the function that each computes, which a config may name
# as well.
_ACTIVATIONS = {
    'relu': (('relu',), 'relu'),
    'gated-gelu': (('gelu', 'linear'), 'gelu_new'),
    'gated-silu': (('silu', 'linear'), 'silu'),
}
# T5X has the first three built in.
_ALLOWED = {
    'relative_attention_num_buckets': (32, None),
    'relative_attention_max_distance': (128, None),
    'layer_norm_epsilon': (1e-6, None),
    'feed_forward_proj': tuple(_ACTIVATIONS),
    'tie_word_embeddings': (True, False, None),
    'scale_decoder_outputs': (True, False, None),
    'quantization_config': (None,),
}
_SIZES = {
    'vocab_size': 'vocab_size',
    'emb_dim': 'd_model',
    'num_heads': 'num_heads',
    'head_dim': 'd_kv',
    'num_encoder_layers': 'num_layers',
    'num_decoder_layers': 'num_decoder_layers',
    'mlp_dim': 'd_ff',
}

_ATTENTION = {'q': 'query', 'k': 'key', 'v': 'value', 'o': 'out'}
# The sublayers of a block in order: Hugging Face's name, T5X's, and T5X's of
# the norm before.
_SUBLAYERS = {
    'encoder': (
        ('SelfAttention', 'attention', 'pre_attention_layer_norm'),
        ('DenseReluDense', 'mlp', 'pre_mlp_layer_norm'),
    ),
    'decoder': (
        ('SelfAttention', 'self_attention', 'pre_self_attention_layer_norm'),
        (
            'EncDecAttention',
            'encoder_decoder_attention',
            'pre_cross_attention_layer_norm',
        ),
        ('DenseReluDense', 'mlp', 'pre_mlp_layer_norm'),
    ),
}
_KERNELS = {
    'DenseReluDense': {name: name for name in ('wi', 'wi_0', 'wi_1', 'wo')},
    'SelfAttention': _ATTENTION,
    'EncDecAttention': _ATTENTION,
}
_IN_BLOCK = re.compile(
    r'(encoder|decoder)\.block\.(\d+)\.layer\.(\d)\.(\w+)(?:\.(\w+))?\.weight'
)
_EMBEDDING = 'token_embedder/embedding'
_HEAD = 'decoder/logits_dense/kernel'
# The embedding has several names, and any of them may be the stored one.
_EMBEDDINGS = (
    'shared.weight',
    'encoder.embed_tokens.weight',
    'decoder.embed_tokens.weight',
)
_BIAS = 'block.0.layer.0.SelfAttention.relative_attention_bias.weight'
_OUTSIDE_BLOCKS = {
    **dict.fromkeys(_EMBEDDINGS, _EMBEDDING),
    'lm_head.weight': _HEAD,
    'encoder.final_layer_norm.weight': 'encoder/encoder_norm/scale',
    'decoder.final_layer_norm.weight': 'decoder/decoder_norm/scale',
    f'encoder.{_BIAS}': 'encoder/relpos_bias/rel_embedding',
    f'decoder.{_BIAS}': 'decoder/relpos_bias/rel_embedding',
}
# In early PyTorch copies of T5, and used by no network.
_IGNORED = (
    'decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight',
)

_GENERATION_FILE = 'generation_config.json'
# The decoder starts from the first of these that is named. transformers has no
# third and refuses to decode; T5's papers and checkpoints start from padding.
_STARTS = ('decoder_start_token_id', 'bos_token_id', 'pad_token_id')
# They write tokens that the model did not choose.
_FORCING = 'forced_bos_token_id', 'forced_eos_token_id', 'forced_decoder_ids'
# Settings that change outputs, and the values with which they do not.
_NEUTRAL = {
    'num_beams': (1,),
    'penalty_alpha': (0,),
    'guidance_scale': (1,),
    'do_sample': (False,),
    'min_length': (0,),
    'min_new_tokens': (0,),
    'no_repeat_ngram_size': (0,),
    'encoder_no_repeat_ngram_size': (0,),
    'repetition_penalty': (1,),
    'encoder_repetition_penalty': (1,),
    'exponential_decay_length_penalty': (),
    'bad_words_ids': ([],),
    'suppress_tokens': ([],),
    'begin_suppress_tokens': ([],),
    'sequence_bias': ({},),
}
# With do_sample only.
_SAMPLING = 'temperature', 'top_k', 'top_p', 'min_p', 'typical_p'
_OF_TASKS = 'task_specific_params'


def with_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a config.json with the defaults of its model type."""
  return {**_DEFAULTS[config['model_type']], **config}


def network_fields(
    file: epath.Path, config: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the fields of `T5Config` that say which network a config is of.

  Args:
    file: path of the config.json, for messages.
    config: its contents, from `with_defaults`.
  Returns:
    vocab_size, emb_dim, num_heads, head_dim, num_encoder_layers,
    num_decoder_layers, mlp_dim, mlp_activations and logits_via_embedding.
  Raises:
    errors.CheckpointError: if the network is not T5 1.0's or 1.1's.
  """
  for name, allowed in _ALLOWED.items():
    _check(file, config, name, allowed)
  activations, function = _ACTIVATIONS[config['feed_forward_proj']]
  _check(file, config, 'dense_act_fn', (function, None))
  config = {'num_decoder_layers': None, **config}
  if config['num_decoder_layers'] is None:  # optional
    config['num_decoder_layers'] = config.get('num_layers')
  for name in _SIZES.values():
    if type(config.get(name)) is not int or config[name] < 1:
      raise errors.CheckpointError(
          f'{file} has {name} {errors.shown(config.get(name))}, which is not a'
          ' size. Copy or download it again.'
      )
  return {
      **{ours: config[theirs] for ours, theirs in _SIZES.items()},
      'mlp_activations': activations,
      'logits_via_embedding': _is_scaled(config),
  }


def _check(
    file: epath.Path,
    config: Mapping[str, Any],
    name: str,
    allowed: tuple[Any, ...],
) -> None:
  if config.get(name) not in allowed:
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(config[name])}, and the network that'
        f' runs here has {" or ".join(map(str, allowed))}. Pass a T5 1.0, T5'
        ' 1.1 or mT5 that is not quantized, or download the file again.'
    )


def _is_scaled(config: Mapping[str, Any]) -> bool:
  """Returns whether the output head is the scaled embedding, as in T5 1.0.

  An unscaled head may be the embedding too. From version 5 on, transformers
  writes tie_word_embeddings true for every model; scale_decoder_outputs says
  which T5 scales, and no mT5 does.
  """
  if config['model_type'] == 'mt5':
    return False
  is_scaled = config.get('scale_decoder_outputs')
  if is_scaled is None:
    is_scaled = config.get('tie_word_embeddings')
  return is_scaled is None or bool(is_scaled)


def tensor_names(
    folder: epath.Path, stored: Collection[str], fields: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
  """Returns which tensor is which parameter.

  Args:
    folder: path of the checkpoint, for messages.
    stored: names of all tensors of the folder.
    fields: the network, from `network_fields`.
  Returns:
    The tensor of each parameter, by T5X's name, and the tensor that each other
    one must equal.
  Raises:
    errors.CheckpointError: if there is no embedding, or a tensor that T5 does
      not have.
  """
  ours = {name: t5x_name(name) for name in stored if name not in _IGNORED}
  if unknown := sorted(name for name in ours if ours[name] is None):
    raise errors.CheckpointError(
        f'{folder} holds tensors that T5 does not have:'
        f' {errors.listing(unknown)}. It is of another network, or quantized,'
        ' or holds adapters: pass the plain model.'
    )
  embeddings = [*_EMBEDDINGS]
  if fields['logits_via_embedding']:
    embeddings.append('lm_head.weight')
  copies = [name for name in embeddings if name in ours]
  if not copies:
    raise errors.CheckpointError(
        f'{folder} holds no embedding: none of {", ".join(embeddings)}.'
        ' Download it again.'
    )
  # transformers stores no head that is the embedding.
  head = {} if fields['logits_via_embedding'] else {_HEAD: copies[0]}
  others = {x: name for name, x in ours.items() if name not in copies}
  parameters = {**head, **others, _EMBEDDING: copies[0]}
  return parameters, dict.fromkeys(copies[1:], copies[0])


def is_transposed(name: str) -> bool:
  """Returns whether a parameter of this T5X name is stored transposed."""
  return name != _EMBEDDING  # a vector is its own transpose


def t5x_name(name: str) -> str | None:
  """Returns T5X's name for a tensor, None for one that T5 does not have.

  >>> t5x_name('decoder.block.11.layer.1.EncDecAttention.q.weight')
  'decoder/layers_11/encoder_decoder_attention/query/kernel'
  """
  if name in _OUTSIDE_BLOCKS:
    return _OUTSIDE_BLOCKS[name]
  if match := _IN_BLOCK.fullmatch(name):
    stack, block, number, kind, kernel = match.groups()
    for i, (theirs, ours, norm) in enumerate(_SUBLAYERS[stack]):
      layer = f'{stack}/layers_{block}'
      if (int(number), kind, kernel) == (i, 'layer_norm', None):
        return f'{layer}/{norm}/scale'
      if (int(number), kind) == (i, theirs) and kernel in _KERNELS[kind]:
        return f'{layer}/{ours}/{_KERNELS[kind][kernel]}/kernel'
  return None


def special_ids(
    folder: epath.Path,
    config: Mapping[str, Any],
    generation: Mapping[str, Any] | None,
    vocab_size: int,
) -> contracts.SpecialIds:
  """Returns the special ids that a folder's files name.

  An id in generation_config.json comes before the one in config.json, as in
  transformers' `generate`.

  Args:
    folder: path of the checkpoint, for messages.
    config: contents of config.json, from `with_defaults`.
    generation: contents of generation_config.json; None if there is none.
    vocab_size: number of the network's ids.
  Raises:
    errors.CheckpointError: if a file forces tokens, if an id is missing, is one
      of several, or is not an id of the vocabulary, or if end and padding are
      the same.
  """
  sources = {} if generation is None else {_GENERATION_FILE: generation}
  sources['config.json'] = config
  # transformers takes all settings from the first of them.
  file, settings = next(iter(sources.items()))
  for name in _FORCING:
    if settings.get(name) is not None:
      raise errors.CheckpointError(
          f'{folder / file} has {name} {errors.shown(settings[name])}, and'
          ' decoding here writes no token that the model does not choose.'
          ' Remove it from the file to decode without it.'
      )

  def find(*names: str) -> int:
    named = [
        (file, name, settings[name])
        for name in names
        for file, settings in sources.items()
        if settings.get(name) is not None
    ]
    file, name, found = named[0] if named else ('config.json', names[-1], None)
    if type(found) is not int or not 0 <= found < vocab_size:
      raise errors.CheckpointError(
          f'{folder / file} has {name} {errors.shown(found)}, which is not one'
          f' id of a vocabulary of {vocab_size}. Write the id that the model'
          ' was trained with into config.json.'
      )
    return found

  end, padding = find('eos_token_id'), find('pad_token_id')
  start = find(*_STARTS)
  if end == padding:
    raise errors.CheckpointError(
        f'{folder} has {end} as end of sequence and as padding. The encoder'
        ' ignores padding, so that inputs would lose their end. Write another'
        ' pad_token_id into config.json.'
    )
  return contracts.SpecialIds(end=end, padding=padding, start=start)


def unapplied_settings(
    folder: epath.Path,
    config: Mapping[str, Any],
    generation: Mapping[str, Any] | None,
) -> str | None:
  """Returns a line on settings of decoding that only transformers follows.

  Its `generate` follows generation_config.json, in older folders config.json,
  and its pipelines follow `task_specific_params` of config.json.

  Args:
    folder: see `special_ids`.
    config: likewise.
    generation: likewise.
  Returns:
    The line; None if no such setting changes outputs.
  """
  settings = config if generation is None else generation
  changing = {
      name: settings[name]
      for name, neutral in _NEUTRAL.items()
      if settings.get(name) is not None and settings[name] not in neutral
  }
  if 'do_sample' in changing:
    changing |= {x: settings[x] for x in _SAMPLING if x in settings}
  named = [f'{name} {errors.shown(x)}' for name, x in changing.items()]
  if config.get(_OF_TASKS):
    named.append(f'{_OF_TASKS} of {", ".join(map(str, config[_OF_TASKS]))}')
  if not named:
    return None
  return (
      f'{folder}: not applied here, though transformers would:'
      f' {"; ".join(named)}.'
  )
