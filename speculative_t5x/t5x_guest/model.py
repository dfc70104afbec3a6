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
import jax
import jax.numpy as jnp
import seqio
from t5x import models

from speculative_t5x.loading import descriptions
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import network
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.t5x_guest import draft_module
from speculative_t5x.t5x_guest import example_id_converter
from speculative_t5x.t5x_guest import samplers
from speculative_t5x.tasks import task_vocabulary

_EXAMPLE_ID = example_id_converter.EXAMPLE_ID


class SpeculativeModel(models.EncoderDecoderModel):
  """T5X's encoder-decoder model with a drafter beside it.

  Loss, scoring and T5X's own decode functions see the target alone. A decode
  function that names `target` decodes through this package's networks instead:
  see `samplers`.
  """

  FEATURE_CONVERTER_CLS = example_id_converter.ExampleIdConverter

  def __init__(
      self,
      module: nn.Module,
      input_vocabulary: seqio.Vocabulary,
      output_vocabulary: seqio.Vocabulary,
      optimizer_def: Any,
      decode_fn: Callable = samplers.speculative_sample,
      *,
      drafter: draft_module.DraftModule | source.WithoutParameters,
      gamma: int,
      mask_padded_ids: bool = False,
      **kwargs,
  ):
    """Set up the model.

    Args:
      module: The target, a `t5x.examples.t5.network.Transformer`.
      input_vocabulary: The target's.
      output_vocabulary: The target's.
      optimizer_def: T5X's, for jobs that train; decoding does not use it.
      decode_fn: A function of `samplers`, or one of T5X's.
      drafter: Drafts for the target: a draft model, whose parameters T5X holds
        beside the target's, or a drafter without parameters.
      gamma: Draft tokens per block, at least 1.
      mask_padded_ids: Whether ids beyond the vocabulary, which only pad the
        logits to a round width, get probability 0 in this package's decode
        functions. In T5X's own they take part.
      **kwargs: Arguments of `t5x.models.EncoderDecoderModel`.
    Raises:
      ValueError: for a drafter that T5X's jobs cannot load, a gamma below 1, or
        networks that cannot be decoded.
      vocabularies.VocabularyError: if the drafter's vocabulary is another.
    """
    if isinstance(drafter, type) or not hasattr(drafter, 'make'):
      raise ValueError(
          f"DRAFTER is {drafter!r}, which T5X's jobs cannot load. Give a file"
          ' configs/t5x/draft_*.gin for a draft model, or for another drafter'
          ' configs/drafters/lookup.gin or configs/drafters/uniform.gin.'
      )
    super().__init__(
        draft_module.Pair(module, getattr(drafter, 'module', None)),
        task_vocabulary.by_content(input_vocabulary),
        task_vocabulary.by_content(output_vocabulary),
        optimizer_def,
        decode_fn,
        **kwargs,
    )
    self._target_config = draft_module.read_config('target', module)
    self._drafter = drafter
    self._drafting = source.Drafting(
        drafter.make, descriptions.DrafterDescription()
    )
    self._gamma = gamma
    self._mask_padded_ids = mask_padded_ids
    # Checks gamma. The vocabulary, which may be in a bucket, is not read yet.
    self._drafting.drafter(
        network.NetworkModel(self._target_config, t5.SPECIAL_IDS), gamma
    )
    vocabulary = getattr(drafter, 'vocabulary', None)
    if vocabulary is not None:
      both = output_vocabulary, vocabulary
      vocabularies.check_same(*map(task_vocabulary.TaskVocabulary, both))

  def get_initial_variables(
      self, rng, input_shapes, input_types=None
  ) -> flax_core.FrozenDict:
    """See `t5x.models.EncoderDecoderModel`; the drafter's axes are its own."""
    variables = super().get_initial_variables(rng, input_shapes, input_types)
    variables = flax_core.unfreeze(variables)
    axes = variables['params_axes']
    if 'draft' in axes:
      axes['draft'] = self._drafter.place_axes(axes['draft'])
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
    """Decode a batch by the model's decode function.

    Args:
      params: The parameters of target and draft.
      batch: Features of `ExampleIdConverter`.
      rng: Not used by this package's decode functions, whose samples depend, up
        to rounding, on seed and example id alone.
      decoder_params: Arguments of the decode function for this call, as
        `{'seed': 1}`.
      return_all_decodes: Whether to return all decodes of an example, or the
        best.
      num_decodes: Samples per example.
      prompt_with_targets: Not supported by this package's decode functions.
    Returns:
      Sequences [batch, length] int32, or [batch, num_decodes, length] with the
      best last; `scores`, and the counts of the decode function, [batch] or
      [batch, num_decodes], those per position with one more axis.
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
    if prompt_with_targets or 'decode_rng' in options:
      raise NotImplementedError(
          'prompt_with_targets and decode_rng are not supported by this decode'
          ' function, whose samples depend on seed and example. Leave them out,'
          " or decode with T5X's temperature_sample."
      )
    if _EXAMPLE_ID not in batch:
      raise ValueError(
          f'The batch has no {_EXAMPLE_ID}, which samples depend on. Convert'
          ' features by t5x_guest.ExampleIdConverter, the default of'
          ' SpeculativeModel.'
      )
    defaults = self._default_decoder_params
    if return_all_decodes is None:
      return_all_decodes = defaults.return_all_decodes
    # The parameters are cast and the head transposed here, once per batch.
    config, prepared = t5_preparation.prepare(
        self._target_config, params['target']
    )
    model = self._model(config)
    # T5X takes id 0 for no token.
    tokens = batch['encoder_input_tokens']
    inputs = jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)
    bound = {'target': samplers.Target(model, prepared, inputs)}
    if 'drafter' in arguments:
      own = params.get('draft')
      bound['drafter'] = samplers.Drafter(
          self._drafting.drafter(model, self._gamma),
          None if own is None else self._drafter.prepare(own),
      )
    sequences, scores, *counts = self.decode_fn(
        **bound,
        example_ids=batch[_EXAMPLE_ID],
        length=batch['decoder_input_tokens'].shape[1],
        num_decodes=num_decodes or defaults.num_decodes,
        **{'eos_id': model.special_ids.end, **options},
    )
    decodes = sequences, {'scores': scores, **(counts[0] if counts else {})}
    if return_all_decodes:
      return decodes
    return jax.tree.map(lambda x: x[:, -1], decodes)

  def _model(self, config: t5.T5Config) -> network.NetworkModel:
    # T5X takes 1 for a vocabulary that has no end of sequence, and has padding
    # and start built in.
    end = self.output_vocabulary.eos_id or t5.SPECIAL_IDS.end
    special_ids = dataclasses.replace(t5.SPECIAL_IDS, end=end)
    num_valid = None
    if self._mask_padded_ids:
      num_valid = self.output_vocabulary.vocab_size
    return network.NetworkModel(config, special_ids, num_valid)
