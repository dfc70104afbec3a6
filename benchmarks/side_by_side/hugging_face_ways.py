# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes with Hugging Face transformers, plainly and with an assistant model.

PyTorch runs in float32 with eager attention. Inputs have no padding, as is
usual for a batch of one.
"""

from collections.abc import Callable
import functools
import os

from etils import epath
from flax import traverse_util
import numpy as np
import torch
import transformers
from transformers import modeling_outputs

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from speculative_t5x.loading.families import t5_checkpoints
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_layers as layers


def versions() -> dict[str, str]:
  return {
      'transformers': transformers.__version__,
      'torch': torch.__version__,
  }


def make_ways(case: cases.Case) -> dict[str, measuring.Way]:
  """Return `generate`, and assisted `generate` if there is a draft."""
  torch.set_num_threads(len(os.sched_getaffinity(0)))
  target = _make_generator(case.target)
  generate = functools.partial(_generate, target)
  ways = {
      'transformers': measuring.Way(
          functools.partial(_whole, generate),
          functools.partial(_from_encoded, target),
      )
  }
  if case.assistant:
    draft = _make_generator(case.assistant)
    draft.generation_config.update(
        num_assistant_tokens=case.gamma,
        num_assistant_tokens_schedule='constant',
        assistant_confidence_threshold=0.0,
    )
    assisted = functools.partial(generate, assistant_model=draft)
    # Assisted generation always runs the draft's encoder.
    ways['transformers_assisted'] = measuring.Way(
        functools.partial(_whole, assisted), None
    )
  return ways


def _make_generator(
    network: cases.Network,
) -> transformers.T5ForConditionalGeneration:
  """Return the network with as many layers in the cache as its decoder has."""
  model = make_network(network)
  model.config.num_layers = model.config.num_decoder_layers
  return model


def make_network(
    network: cases.Network,
) -> transformers.T5ForConditionalGeneration:
  """Return a Hugging Face T5 1.1 with the same weights.

  Raises:
    ValueError: if the network is not T5 1.1.
  """
  config = network.config
  is_gated = tuple(config.mlp_activations) == ('gelu', 'linear')
  if config.logits_via_embedding or not is_gated:
    raise ValueError(f'Only T5 1.1 is copied to transformers, got {config}.')
  model = transformers.T5ForConditionalGeneration(
      transformers.T5Config(
          vocab_size=config.vocab_size,
          d_model=config.emb_dim,
          d_kv=config.head_dim,
          d_ff=config.mlp_dim,
          num_heads=config.num_heads,
          num_layers=config.num_encoder_layers,
          num_decoder_layers=config.num_decoder_layers,
          relative_attention_num_buckets=layers.NUM_BUCKETS,
          relative_attention_max_distance=layers.MAX_DISTANCE,
          # Selects gelu_new, the tanh approximation, which Flax also uses.
          feed_forward_proj='gated-gelu',
          tie_word_embeddings=False,
          pad_token_id=t5.SPECIAL_IDS.padding,
          eos_token_id=t5.SPECIAL_IDS.end,
          decoder_start_token_id=t5.SPECIAL_IDS.padding,
          attn_implementation='eager',
      )
  )
  copy_params(network, model)
  return model.eval()


def copy_params(network: cases.Network, model: torch.nn.Module) -> None:
  """Copy T5X's parameters to a Hugging Face model."""
  tensors = model.state_dict()
  sources, copies = t5_checkpoints.tensor_names(
      epath.Path(), tensors, network.config
  )
  values = traverse_util.flatten_dict(network.params, sep='/')
  with torch.no_grad():
    for name, source in sources.items():
      value = np.asarray(values[name])
      value = value.T if source.is_transposed else value
      tensors[source.tensor].copy_(torch.tensor(value))
    for copy, tensor in copies.items():
      tensors[copy].copy_(tensors[tensor])


def _inputs(tokens: np.ndarray) -> dict[str, torch.Tensor]:
  ids = torch.tensor(
      tokens[tokens != t5.SPECIAL_IDS.padding][None], dtype=torch.int64
  )
  return {'input_ids': ids, 'attention_mask': torch.ones_like(ids)}


def _generate(
    target: transformers.T5ForConditionalGeneration, **inputs
) -> np.ndarray:
  with torch.inference_mode():
    ids = target.generate(
        **inputs, do_sample=False, num_beams=1, max_new_tokens=cases.LENGTH
    )
  return ids[0, 1:].numpy()  # without the decoder's start token


def _whole(
    generate: Callable[..., np.ndarray], tokens: np.ndarray
) -> measuring.Decode:
  return functools.partial(generate, **_inputs(tokens))


def _from_encoded(
    target: transformers.T5ForConditionalGeneration, tokens: np.ndarray
) -> measuring.Decode:
  inputs = _inputs(tokens)
  with torch.inference_mode():
    encoded = target.encoder(**inputs).last_hidden_state
  outputs = modeling_outputs.BaseModelOutput(encoded)
  return functools.partial(
      _generate,
      target,
      encoder_outputs=outputs,
      attention_mask=inputs['attention_mask'],
  )
