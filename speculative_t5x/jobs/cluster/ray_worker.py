# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process of a Ray cluster that decodes chunks with a model of its own."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import pickle
import platform
import time
import traceback
from typing import Any, NamedTuple

import jax

from speculative_t5x import version
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import errors

_RELEASE_S, _POLL_S = 60, 0.2  # until a process has given up its devices


class Chunk(NamedTuple):
  """A chunk that is to be decoded."""

  number: int  # its number in the job
  first: int  # where its inputs begin: the number of their line, or example
  count: int  # how many inputs it has
  digest: str  # of the inputs, see `chunks.digest_of`


class Decoded(NamedTuple):
  """A chunk by its number, decoded to a content, or the error why it was not.
  """

  number: int
  content: chunks_lib.Content | None
  error: str | None


@dataclasses.dataclass(frozen=True)
class Shipment:
  """A job on its way to another process."""

  # Is called first, in the other process; None for nothing. It may make modules
  # importable that the job needs.
  prepare: Callable[[], None] | None
  # Pickle of what returns the job on a machine, as `infer_on_cluster.Decoding`:
  # `values`, all that must be equal on all nodes, as JSON; `for_driver`, all
  # that the driver needs to know; `decode`, which returns the content of a
  # chunk. It raises ValueError for inputs that cannot be decoded. After any
  # other error the process is given up, since its device may be broken.
  pickled: bytes
  platform: str  # JAX's name of the devices that must be found

  def open(self) -> Any:
    """Return what decodes, in a process that can do the job."""
    if self.prepare is not None:
      self.prepare()
    # Where JAX finds no accelerator, it would decode on the CPU in silence.
    if (found := jax.default_backend()) != self.platform:
      raise RuntimeError(
          f'JAX finds the platform {found!r} and not {self.platform!r}.'
      )
    return pickle.loads(self.pickled)()


def _values(decoding: Any) -> Mapping[str, Any]:
  """Return all that must be equal on all nodes, as JSON."""
  packages = 'jax', 'jaxlib', 'numpy'
  versions = {name: importlib.metadata.version(name) for name in packages}
  own = {'speculative_t5x': version.VERSION, **versions, **decoding.values}
  return json.loads(json.dumps(own))  # tuples are lists on all nodes


class Description(NamedTuple):
  """A job, as the node describes it that was asked."""

  node: str  # name of the node
  process: int  # number of the process there that found it
  values: Mapping[str, Any]  # see `Shipment`
  for_driver: Any


def describe(shipment: Shipment) -> Description:
  """Describe a job on this node; run in a process that then ends."""
  with _naming_the_node():
    decoding = shipment.open()
    values = _values(decoding)
    return Description(_node(), os.getpid(), values, decoding.for_driver)


class Worker:
  """Decodes the chunks that Ray Data gives it, one per call."""

  def __init__(self, shipment: Shipment, asked: Description):
    """Find the models; fail where chunks would be decoded otherwise."""
    self._is_broken = False
    with _naming_the_node():
      if _node() == asked.node:
        _wait_for_end(asked.process)
      self._decoding = shipment.open()
      own = _values(self._decoding)
      if names := resumption.differing(asked.values, own):
        raise RuntimeError(
            '; '.join(
                f'its {x} is {own.get(x)!r}, and {asked.values.get(x)!r} on'
                f' node {asked.node}'
                for x in names
            )
        )

  def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Decode a chunk, given by columns of one row; see `Chunk`."""
    if self._is_broken:
      # Ray starts another process, whose device may work, and repeats the
      # chunk. After an exception it would go on with this one.
      os._exit(1)
    chunk = Chunk(*(batch[name][0] for name in Chunk._fields))
    chunk = chunk._replace(  # of NumPy's integers, which are not JSON
        number=int(chunk.number), first=int(chunk.first), count=int(chunk.count)
    )
    content, error = None, ''
    try:
      decoded = self._decoding.decode(chunk)
      content = [*decoded.rows], decoded.values
    except Exception as raised:  # of any kind: other chunks go on
      traceback.print_exc()
      self._is_broken = not isinstance(raised, ValueError)
      error = errors.first_line(raised)
    return {
        'number': [chunk.number],
        'content': [json.dumps(content, allow_nan=False)],
        'error': [error],
    }


def _node() -> str:
  """Return the name of this node, which is another on each."""
  import ray

  return f'{platform.node()} ({ray.get_runtime_context().get_node_id()[:8]})'


@contextlib.contextmanager
def _naming_the_node() -> Iterator[None]:
  """Have one line say which node cannot do the job."""
  try:
    yield
  except Exception as error:  # of any kind
    raise RuntimeError(
        f'Node {_node()} cannot do this job: {errors.first_line(error)}. Mend'
        ' it, or take it out of the cluster (ray stop).'
    ) from error


def _wait_for_end(process: int) -> None:
  """Wait until a process of this node has ended, and given up its devices."""
  limit = time.monotonic() + _RELEASE_S
  with contextlib.suppress(ProcessLookupError):
    while time.monotonic() < limit:
      os.kill(process, 0)
      time.sleep(_POLL_S)
