# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The T5X model of an encoder-decoder that decodes speculatively.

Legend: batch (examples), length (of the outputs).
"""

from collections.abc import Callable, Mapping, MutableMapping
import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import seqio
from t5x import models

from speculative_t5x.t5x_guest import decoder_prompts
from speculative_t5x.t5x_guest import example_id_converter
from speculative_t5x.t5x_guest import guest_model
from speculative_t5x.t5x_guest import module_sizes
from speculative_t5x.t5x_guest import samplers
from speculative_t5x.tasks import task_vocabulary


class SpeculativeModel(guest_model.GuestModel, models.EncoderDecoderModel):
  """T5X's encoder-decoder model with a drafter beside it; see `GuestModel`."""

  FEATURE_CONVERTER_CLS = example_id_converter.ExampleIdConverter
  MODULE = module_sizes.ENCODER_DECODER

  def __init__(
      self,
      module: nn.Module,
      input_vocabulary: seqio.Vocabulary,
      output_vocabulary: seqio.Vocabulary,
      optimizer_def: Any,
      decode_fn: Callable = samplers.speculative_sample,
      **kwargs,
  ):
    """Set up the model.

    Args:
      module: The target, a `t5x.examples.t5.network.Transformer`.
      input_vocabulary: The target's.
      output_vocabulary: The target's.
      optimizer_def: T5X's, for jobs that train; decoding does not use it.
      decode_fn: A function of `samplers`, or one of T5X's.
      **kwargs: Arguments of `GuestModel`, such as `drafter` and `gamma`, and of
        `t5x.models.EncoderDecoderModel`.
    Raises:
      ValueError: see `GuestModel`.
    """
    super().__init__(
        module,
        task_vocabulary.by_content(input_vocabulary),
        task_vocabulary.by_content(output_vocabulary),
        optimizer_def,
        decode_fn,
        **kwargs,
    )

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
      prompt_with_targets: Whether outputs begin with the tokens of the targets,
        up to their end of sequence.
    Returns:
      Sequences [batch, length] int32, or [batch, num_decodes, length] with the
      best last, which contain their prompts; `scores`, and the counts of the
      decode function, both of what is behind the prompts, [batch] or [batch,
      num_decodes], those per position with one more axis.
    Raises:
      NotImplementedError: for `decode_rng`.
    """
    if 'target' not in self._arguments:
      return super().predict_batch_with_aux(
          params, batch, rng, decoder_params, return_all_decodes, num_decodes,
          prompt_with_targets,
      )  # fmt: skip
    tokens, options = batch['encoder_input_tokens'], {}
    if prompt_with_targets:
      prompts, lengths = decoder_prompts.of_targets(
          batch['decoder_input_tokens'], self._special_ids.end
      )
      tokens = jnp.concatenate([tokens, prompts], axis=1)
      options = {
          'room': prompts.shape[1] + 1 - lengths,
          'make': functools.partial(
              decoder_prompts.PromptedModel, prompt_width=prompts.shape[1]
          ),
      }
    sequences, aux = self._decode(
        params,
        batch,
        tokens,
        decoder_params,
        return_all_decodes,
        num_decodes,
        **options,
    )
    if prompt_with_targets:
      sequences = decoder_prompts.put_before(sequences, prompts, lengths)
    return sequences, aux
