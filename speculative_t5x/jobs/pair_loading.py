# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A target and a draft read from their checkpoints, for a job."""

from collections.abc import Sequence

import jax
import seqio

from speculative_t5x import loading
from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x.jobs import check_pair
from speculative_t5x.networks import t5


def make_mesh(
    shape: Sequence[int], batch_size: int
) -> jax.sharding.Mesh | None:
  """The mesh that a batch is decoded on, None for one device.

  Raises:
    ValueError: for a shape that is not two numbers, needs more devices than
      there are, or cannot hold the batch.
  """
  try:
    data, model = shape
  except (TypeError, ValueError):
    raise ValueError(
        f'mesh_shape must be two numbers, (data, model), got {shape!r}.'
    ) from None
  mesh = sharding.make_mesh(data, model)
  if mesh.size == 1:
    return None
  sharding.check_batch(mesh, batch_size)
  return mesh


def load_decoder(
    *,
    target_config: t5.T5Config,
    draft_config: t5.T5Config,
    checkpoint_path: str,
    draft_checkpoint_path: str,
    draft_vocabulary_file: str | None,
    vocabulary: seqio.Vocabulary,
    gamma: int,
    length: int,
    num_decodes: int,
    mesh: jax.sharding.Mesh | None,
    draft_model_parallel: bool,
    matmul_precision: str | None,
    loaded: token_decoder.TokenDecoder | None = None,
) -> token_decoder.TokenDecoder:
  """Reads both checkpoints and binds them.

  The target is not read again where `loaded` has it, from the same arguments
  with another draft.

  Raises:
    ValueError: for a checkpoint or a vocabulary that does not fit; the message
      says whether target and draft look swapped.
  """
  if draft_vocabulary_file is not None:
    loading.check_same_vocabulary(
        loading.load_vocabulary(vocabulary.sentencepiece_model_file),
        loading.load_vocabulary(draft_vocabulary_file),
    )
  check_pair.check_networks(
      checkpoint_path=checkpoint_path,
      draft_checkpoint_path=draft_checkpoint_path,
      target_config=target_config,
      draft_config=draft_config,
  )
  draft = loading.load_model(
      draft_config,
      draft_checkpoint_path,
      mesh=mesh,
      rules=sharding.MODEL_PARALLEL
      if draft_model_parallel
      else sharding.REPLICATED,
  )
  loading.check_vocabulary_fits(vocabulary.vocab_size, 'draft', draft)
  if loaded is not None:
    return loaded.with_draft(draft, gamma)
  target = loading.load_model(target_config, checkpoint_path, mesh=mesh)
  loading.check_vocabulary_fits(vocabulary.vocab_size, 'target', target)
  return token_decoder.TokenDecoder(
      target,
      draft,
      gamma=gamma,
      length=length,
      num_decodes=num_decodes,
      matmul_precision=matmul_precision,
  )
