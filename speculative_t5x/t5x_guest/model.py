# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The T5X model that decodes speculatively.

Legend: batch (examples), length (of the outputs).
"""

from collections.abc import Callable, Mapping, MutableMapping
import dataclasses
import inspect
from typing import Any

from flax import core as flax_core
import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import seqio
from t5x import models
from t5x.examples.t5 import network

from speculative_t5x import loading
from speculative_t5x import loops
from speculative_t5x import seam
from speculative_t5x import sharding
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import preparation
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_decoding
from speculative_t5x.t5x_guest import example_ids
from speculative_t5x.t5x_guest import hosts
from speculative_t5x.t5x_guest import pair_module
from speculative_t5x.t5x_guest import samplers

# They restore checkpoints in their own way, which knows one model only.
_UNSUPPORTED_HOSTS = {
    'interactive_model.py': 'InteractiveModel',
    'export_lib.py': 'export',
}


class SpeculativeModel(models.EncoderDecoderModel):
  """T5X's encoder-decoder model with a draft beside it.

  Loss, scoring and T5X's own decode functions see the target alone. A decode
  function that names `target` decodes through this package's networks instead:
  see `samplers`.
  """

  FEATURE_CONVERTER_CLS = example_ids.ExampleIdConverter

  def __init__(
      self,
      module: pair_module.Pair,
      input_vocabulary: seqio.Vocabulary,
      output_vocabulary: seqio.Vocabulary,
      optimizer_def: Any,
      decode_fn: Callable = samplers.speculative_sample,
      *,
      gamma: int,
      draft_vocabulary: seqio.Vocabulary | None = None,
      draft_is_model_parallel: bool = False,
      **kwargs,
  ):
    """Sets up the model.

    Args:
      module: target and draft.
      input_vocabulary: of both.
      output_vocabulary: of both.
      optimizer_def: T5X's, for jobs that train; decoding does not use it.
      decode_fn: one of `samplers`, or one of T5X's.
      gamma: guesses a block, at least 1.
      draft_vocabulary: what the draft was trained with, to be compared with
        the target's; None if they are known to be the same.
      draft_is_model_parallel: whether the draft's parameters are sharded by
        the target's rules; if not, every device holds all of them.
      **kwargs: of `t5x.models.EncoderDecoderModel`.
    Raises:
      ValueError: for a gamma below 1, or networks that cannot be decoded.
      loading.VocabularyError: if the draft's vocabulary is another.
    """
    super().__init__(
        module,
        input_vocabulary,
        output_vocabulary,
        optimizer_def,
        decode_fn,
        **kwargs,
    )
    self._target_config = _network_config('target', module.target)
    self._draft_config = _network_config('draft', module.draft)
    self._gamma = gamma
    self._draft_is_model_parallel = draft_is_model_parallel
    self._drafter(self._draft_config)  # looks at gamma
    if draft_vocabulary is not None:
      loading.check_same_vocabulary(
          output_vocabulary.tokenizer, draft_vocabulary.tokenizer
      )

  def get_initial_variables(
      self, rng, input_shapes, input_types=None
  ) -> flax_core.FrozenDict:
    """See `t5x.models.EncoderDecoderModel`; the draft's axes are its own."""
    _refuse_other_hosts()
    variables = super().get_initial_variables(rng, input_shapes, input_types)
    if self._draft_is_model_parallel:
      return variables
    variables = flax_core.unfreeze(variables)
    axes = variables['params_axes']
    axes['draft'] = jax.tree.map(
        lambda leaf: partitioning.AxisMetadata((None,) * len(leaf.names)),
        axes['draft'],
        is_leaf=lambda x: isinstance(x, partitioning.AxisMetadata),
    )
    return flax_core.freeze(variables)

  def predict_batch_with_aux(
      self,
      params: Any,
      batch: Mapping[str, jax.Array],
      rng: jax.Array | None = None,
      decoder_params: MutableMapping[str, Any] | None = None,
      return_all_decodes: bool | None = None,
      num_decodes: int | None = None,
      prompt_with_targets: bool = False,
  ) -> tuple[jax.Array, Mapping[str, jax.Array]]:
    """Decodes a batch by the model's decode function.

    Args:
      params: of target and draft.
      batch: features of `ExampleIdConverter`.
      rng: not used by this package's decode functions, whose samples depend on
        seed and example id alone.
      decoder_params: arguments of the decode function for this call, as
        `{'seed': 1}`.
      return_all_decodes: whether to return an example's decodes all, or the
        best.
      num_decodes: samples an example.
      prompt_with_targets: not supported by this package's decode functions.
    Returns:
      Sequences [batch, length] int32, or [batch, num_decodes, length] with the
      best last; `scores`, and the counts of the decode function, [batch] or
      [batch, num_decodes].
    Raises:
      ValueError: for a batch without example ids.
      NotImplementedError: for `prompt_with_targets` and `decode_rng`.
    """
    arguments = inspect.signature(self.decode_fn).parameters
    if 'target' not in arguments:
      return super().predict_batch_with_aux(
          params, batch, rng, decoder_params, return_all_decodes, num_decodes,
          prompt_with_targets,
      )  # fmt: skip
    options = decoder_params or {}
    _check_supported(prompt_with_targets, options)
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    seams = {
        'target': self._read(params['target'], batch['encoder_input_tokens'])
    }
    if 'drafter' in arguments:
      seams['drafter'] = self._guesser(params['draft'])
    sequences, scores, *counts = self.decode_fn(
        **seams,
        example_ids=_example_ids(batch),
        length=batch['decoder_input_tokens'].shape[1],
        num_decodes=num_decodes or defaults.num_decodes,
        # T5X takes 1 for a vocabulary that has no end of sequence.
        **{'eos_id': self.output_vocabulary.eos_id or 1, **options},
    )
    decodes = sequences, {'scores': scores, **(counts[0] if counts else {})}
    if return_all_decodes:
      return decodes
    return jax.tree.map(lambda x: x[:, -1], decodes)

  def _read(self, params: seam.Params, tokens: jax.Array) -> loops.Target:
    # The parameters are cast and the head transposed here, once a batch.
    config, params = preparation.prepare(self._target_config, params)
    encoded, context = t5_decoding.encode(config, params, tokens)
    return loops.Target(
        t5_decoding.block_decoder(config), params, tokens, encoded, context
    )

  def _guesser(self, params: seam.Params) -> loops.Guesser:
    config, params = preparation.prepare(self._draft_config, params)
    return loops.Guesser(self._drafter(config), params)

  def _drafter(self, config: t5.T5Config) -> draft_model.DraftModel:
    rules = sharding.REPLICATED
    if self._draft_is_model_parallel:
      rules = partitioning.get_axis_rules()  # T5X's, in force while it traces
    return draft_model.DraftModel(
        decoder=t5_decoding.block_decoder(config),
        encode=lambda params, tokens: t5_decoding.encode(
            config, params, tokens
        )[1],
        gamma=self._gamma,
        vocab_size=self._target_config.vocab_size,
        rules=rules,
    )


def _network_config(role: str, module: nn.Module) -> t5.T5Config:
  """The sizes of T5X's network as this package's network takes them."""
  # A subclass may compute anything else.
  if type(module) is not network.Transformer:
    raise ValueError(
        f'The {role} is a {type(module).__module__}.{type(module).__name__};'
        ' only t5x.examples.t5.network.Transformer itself can be decoded.'
        ' Scanned layers, decoder-only and other networks are not supported.'
    )
  config = module.config
  for name in config.mlp_activations:
    if not isinstance(name, str):
      raise ValueError(
          f"The {role}'s mlp_activations hold {name!r}; give the names of"
          ' functions in flax.linen.'
      )
  dtype = jnp.dtype(config.dtype)
  if config.float32_attention_logits and dtype != jnp.float32:
    raise ValueError(
        f"The {role}'s float32_attention_logits is not supported with dtype"
        f' {dtype.name}. Set it to False, or dtype to float32.'
    )
  names = {field.name for field in dataclasses.fields(t5.T5Config)}
  sizes = {
      field.name: getattr(config, field.name)
      for field in dataclasses.fields(config)
      if field.name in names
  }
  return t5.T5Config(**sizes)


def _check_supported(
    prompt_with_targets: bool, options: Mapping[str, Any]
) -> None:
  if prompt_with_targets:
    raise NotImplementedError(
        'prompt_with_targets is not supported by this decode function. Leave'
        " it out, or decode with T5X's temperature_sample."
    )
  if 'decode_rng' in options:
    raise NotImplementedError(
        'decode_rng is not supported by this decode function, whose samples'
        " depend on seed and example. Pass decoder_params={'seed': ...}."
    )


def _example_ids(batch: Mapping[str, jax.Array]) -> jax.Array:
  if example_ids.EXAMPLE_ID not in batch:
    raise ValueError(
        f'The batch has no {example_ids.EXAMPLE_ID}, which samples depend on.'
        ' Convert features by t5x_guest.ExampleIdConverter, the default of'
        ' SpeculativeModel.'
    )
  return batch[example_ids.EXAMPLE_ID]


def _refuse_other_hosts() -> None:
  """Refuses what cannot restore two checkpoints, before it tries to."""
  for file, name in _UNSUPPORTED_HOSTS.items():
    if hosts.is_running(file):
      raise NotImplementedError(
          f"T5X's {name} restores one checkpoint in a way of its own, which"
          ' does not reach a target and a draft. Use t5x/eval.py or'
          ' t5x/infer.py, or speculative_t5x.pair.Pair.'
      )
