# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of transformers and of CTranslate2 that decode beside this package.

Both compute in float32, a T5 1.1 of this package in PyTorch with eager
attention. The supported versions are

  pip install torch==2.13.0 'transformers>=4.57,<5' ctranslate2==4.8.5

(transformers 5 ties the head of every T5 to its embedding).
"""

import os
import pathlib
import tempfile
from typing import Any

from etils import epath
from flax import traverse_util
import numpy as np

from benchmarks import cases
from benchmarks import running
from speculative_t5x.loading.families import t5_checkpoints
from speculative_t5x.networks import layers
from speculative_t5x.networks import t5


def t5_of_transformers(config: t5.T5Config, **options):
  """Return transformers' T5 1.1 of a config, with random weights.

  Raises:
    ValueError: if the network is not T5 1.1.
  """
  import transformers

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
          **options,
      )
  )
  return model.eval()


def in_transformers(network: cases.Network):
  """Return transformers' T5 1.1 with the same weights."""
  import torch

  model = t5_of_transformers(network.config, attn_implementation='eager')
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
  return model


def as_assistant(model, gamma: int):
  """Return a model of transformers that drafts gamma tokens per target call."""
  model.generation_config.update(
      num_assistant_tokens=gamma,
      num_assistant_tokens_schedule='constant',
      assistant_confidence_threshold=0.0,
  )
  return model


def in_ctranslate2(network: cases.Network):
  """Return a translator with the weights, on all cores of this process."""
  import ctranslate2

  with tempfile.TemporaryDirectory() as folder:
    # In another process, because the conversion loads torch, beside whose
    # threads CTranslate2 takes several times as long.
    with running.process() as other:
      other.submit(_convert, network, pathlib.Path(folder)).result()
    return ctranslate2.Translator(folder, **ctranslate2_options())


def ctranslate2_options() -> dict[str, Any]:
  """Return how CTranslate2 computes, on all cores of this process."""
  return dict(
      device='cpu',
      compute_type='float32',
      inter_threads=1,
      intra_threads=len(os.sched_getaffinity(0)),
  )


def _convert(network: cases.Network, folder: pathlib.Path) -> None:
  """Write a network as CTranslate2 reads it."""
  convert('T5Loader', in_transformers(network), t5.SPECIAL_IDS.end, folder)


def convert(loader: str, model, end: int, folder: pathlib.Path) -> None:
  """Write a model of transformers, with an end of sequence, for CTranslate2.

  The loader is CTranslate2's class that reads such a model.
  """
  from ctranslate2.converters import transformers as converter

  pieces = _IdsAsPieces(model.config.vocab_size, end)
  spec = getattr(converter, loader)()(model, pieces)
  spec.validate()
  spec.optimize()
  folder.mkdir(exist_ok=True)
  spec.save(str(folder))


class _IdsAsPieces:
  """A tokenizer for the converter, whose pieces are the ids as text."""

  pad_token = str(t5.SPECIAL_IDS.padding)
  unk_token = '2'

  def __init__(self, vocab_size: int, end: int):
    self._vocab_size = vocab_size
    self.bos_token = self.eos_token = str(end)

  def get_vocab(self) -> dict[str, int]:
    return {str(i): i for i in range(self._vocab_size)}

  def convert_ids_to_tokens(self, token_id: int) -> str:
    return str(token_id)
