# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders, under T5X's names.

A folder holds config.json and a file of tensors, or several and an index, which
says what lies in which. How a parameter lies in a tensor is the family's word.
"""

from collections.abc import Iterator
import functools
import types
from typing import Any

import jax
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading import families
from speculative_t5x.loading.checkpoints import checkpoint
from speculative_t5x.loading.checkpoints import generation_config
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import safetensors_file
from speculative_t5x.loading.checkpoints import torch_file
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.files import json_files
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts

# Modules that read tensors; where a folder has files of both, the first counts.
_READERS = {
    layouts.SAFETENSORS: safetensors_file,
    layouts.PICKLE: torch_file,
}


class HuggingFaceCheckpoint(checkpoint.Checkpoint):
  """A checkpoint of this layout."""

  layout = layouts.Layout.HUGGING_FACE
  _stored_step = 0  # the folders do not say how long the model was trained

  @functools.cached_property
  def _network(self) -> network.Network:
    """The network that config.json states, and the tensors have."""
    try:
      found = self._family.of_config(self._config_file, self._config)
    except errors.CheckpointError:
      raise
    except ValueError as error:  # of sizes that a network refuses
      message = f'{self._config_file}: {error}'
      raise errors.CheckpointError(message) from error
    if hasattr(self._family, 'of_tensors'):
      found = self._family.of_tensors(found, self._tensors)
    if network.offers(found, *network.PROMPTS_DECODER):
      prompt = self._ids_of(found).decoder_prompt()
      found = found.with_decoder_prompt(prompt)
    return found

  @functools.cached_property
  def special_ids(self) -> contracts.SpecialIds:
    return self._ids_of(self._network).special_ids()

  @functools.cached_property
  def unapplied_settings(self) -> str | None:
    return self._ids_of(self._network).unapplied_settings()

  def _ids_of(self, network: network.Network) -> generation_config.Ids:
    return generation_config.Ids(
        self.folder, self._config, self._generation, network
    )

  @functools.cached_property
  def _stored_specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    source_of, _ = self._names
    return {
        name: jax.ShapeDtypeStruct(
            source.shape(self._tensors[source.tensor].shape),
            self._tensors[source.tensor].dtype,
        )
        for name, source in source_of.items()
    }

  def _read(self, wanted) -> Iterator[tuple[str, jax.Array]]:
    # What is stored as the embedding must equal it.
    _, copies = self._names
    for copy, tensor in copies.items():
      one, other = self._tensors[copy].read(), self._tensors[tensor].read()
      if one.dtype != other.dtype or not np.array_equal(one, other):
        raise errors.CheckpointError(
            f'{self.folder} holds a {copy} that differs from the embedding'
            f' {tensor}, though by config.json both are one. Correct its'
            ' tie_word_embeddings, or in a T5 scale_decoder_outputs.'
        )
    for name, spec in wanted.items():
      # Held by no name here, or it would stay while the next one is read.
      yield name, checkpoint.place(self._read_array(self._prefix + name), spec)

  def _read_array(self, name: str) -> np.ndarray:
    source_of, _ = self._names
    source = source_of[name]
    return source.take(self._tensors[source.tensor].read())

  @property
  def _config_file(self) -> Any:
    return self.folder / 'config.json'

  @functools.cached_property
  def _config(self) -> dict[str, Any]:
    """The config.json, with all fields that its family reads."""
    file, config = self._config_file, self._read_json('config.json')
    family = families.of_model_type(file, config.get('model_type'))
    fields = family.FIELDS[config['model_type']]
    return families.complete(file, config, fields, family.NAME)

  @property
  def _family(self) -> types.ModuleType:
    return families.of_model_type(self._config_file, self._config['model_type'])

  @functools.cached_property
  def _generation(self) -> dict[str, Any] | None:
    name = generation_config.FILE
    return self._read_json(name) if name in self._listing else None

  @functools.cached_property
  def _names(self) -> tuple[dict[str, families.Location], dict[str, str]]:
    """Where each parameter lies; tensors that must be equal to others."""
    return self._family.tensor_names(self.folder, self._tensors, self._network)

  @functools.cached_property
  def _listing(self) -> set[str]:
    return {child.name for child in self.folder.iterdir()}

  @functools.cached_property
  def _tensors(self) -> dict[str, trees.StoredTensor]:
    """All tensors, by their names in the files."""
    name = next(x for x in layouts.WEIGHTS if x in self._listing)
    single = name.removesuffix(layouts.INDEX)
    read_header = _READERS[single].read_header
    if name == single:
      return read_header(self.folder / single)
    with errors.reading(self.folder / name):
      file_of = dict(self._read_json(name)['weight_map'])
      files = sorted(self._listing.intersection(file_of.values()))
    held = {x: read_header(self.folder / x) for x in files}
    if lost := sorted(
        f'{name} in {file}'
        for name, file in file_of.items()
        if name not in held.get(file, ())
    ):
      raise errors.CheckpointError(
          f'{self.folder} does not hold {errors.listing(lost)}, though its'
          f' {name} says so. Download all its files again.'
      )
    return {name: held[file][name] for name, file in file_of.items()}

  def _read_json(self, name: str) -> dict[str, Any]:
    with errors.reading(self.folder / name):
      return json_files.read(self.folder / name)
