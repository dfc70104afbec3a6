# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A process of a Ray cluster that decodes chunks with a model of its own."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import pickle
import time
import traceback
from typing import Any, NamedTuple, Protocol

from speculative_t5x import version
from speculative_t5x.loading import errors

_POLL_S = 0.2


class Chunk(NamedTuple):
  """A chunk that is to be decoded.

  Attributes:
    number: Its number in the job.
    first: Where its inputs begin: the number of their line, or example.
    count: How many inputs it has.
    digest: Of the inputs, see `chunks.digest_of`.
  """

  number: int
  first: int
  count: int
  digest: str


class Content(Protocol):
  """The predictions of a chunk; see `chunks.Content`."""

  rows: Sequence[str]
  values: Mapping[str, Any]


class Decoded(NamedTuple):
  """What became of a chunk.

  Attributes:
    number: See `Chunk`.
    rows, values: See `chunks.Content`; empty if it was not decoded.
    error: Why it was not; None if it was.
  """

  number: int
  rows: Sequence[str]
  values: Mapping[str, Any]
  error: str | None


Decode = Callable[[Chunk], Content]


class Job(Protocol):
  """A job whose chunks other processes decode. It is pickled."""

  def describe(self) -> tuple[Mapping[str, Any], Any]:
    """Find all that the job needs on this machine, without weights.

    Returns:
      What must be equal on all nodes, as JSON; and what the driver needs.
    Raises:
      ValueError, OSError: if this machine cannot do the job.
    """

  def open(self) -> contextlib.AbstractContextManager['Decode']:
    """Load the model; yield what decodes a chunk.

    It raises ValueError for inputs that cannot be decoded. After any other
    error the process is given up, since its device may be broken.
    """


@dataclasses.dataclass(frozen=True)
class Shipment:
  """A job on its way to another process.

  Attributes:
    prepare: Is called first, in the other process; None for nothing. It may
      make modules importable that the job needs.
    pickled: The job.
    platform: JAX's name of the devices that must be found.
  """

  prepare: Callable[[], None] | None
  pickled: bytes
  platform: str

  def unpack(self) -> Job:
    """Return the job in a process that can do it."""
    if self.prepare is not None:
      self.prepare()
    import jax  # not on top: the driver's first task would wait for it

    # Where JAX finds no accelerator, it would decode on the CPU in silence.
    if (found := jax.default_backend()) != self.platform:
      raise RuntimeError(
          f'JAX finds the platform {found!r} and not {self.platform!r}.'
      )
    return pickle.loads(self.pickled)


def versions() -> dict[str, str]:
  """Return the versions on which predictions depend."""
  packages = 'jax', 'jaxlib', 'numpy'
  return {
      'speculative_t5x': version.VERSION,
      **{name: importlib.metadata.version(name) for name in packages},
  }


class Description(NamedTuple):
  """What a node says of a job.

  Attributes:
    process: Number of the process that found it.
    versions: See `versions`.
    values: What must be equal on all nodes, as JSON.
    for_driver: What the driver needs to know.
    problem: Why the node cannot do the job; None if it can.
  """

  process: int
  versions: Mapping[str, str]
  values: Mapping[str, Any] = {}
  for_driver: Any = None
  problem: str | None = None


def describe(shipment: Shipment) -> Description:
  """Describe a job on this node; run in a process that then ends."""
  found = Description(os.getpid(), versions())
  try:
    values, for_driver = shipment.unpack().describe()
  except Exception as error:  # of any kind: the other nodes go on
    return found._replace(problem=errors.first_line(error))
  values = json.loads(json.dumps(values))  # tuples are lists on all nodes
  return found._replace(values=values, for_driver=for_driver)


def wait_for_end(process: int, seconds: float) -> bool:
  """Wait until a process of this node has ended; return whether it has.

  Until then it holds its devices.
  """
  limit = time.monotonic() + seconds
  while time.monotonic() < limit:
    try:
      os.kill(process, 0)
    except ProcessLookupError:
      return True
    time.sleep(_POLL_S)
  return False


class Worker:
  """Decodes the chunks that Ray Data gives it, one per call."""

  def __init__(self, shipment: Shipment, attempts: Any):
    """Load the model; `attempts` is the actor of `attempts.Attempts`."""
    import ray

    context = ray.get_runtime_context()
    self._node, self._attempts = context.get_node_id(), attempts
    # Of the actor, which stays the same when Ray starts it anew.
    own = 'worker', context.get_actor_id()
    self._stack = contextlib.ExitStack()
    try:
      if reason := self._ask('begin', own, self._node):
        raise RuntimeError(reason)
      self._decode = self._stack.enter_context(shipment.unpack().open())
    except Exception as error:
      self._ask('leave_out', self._node, errors.first_line(error))
      raise
    self._ask('end', own)

  def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Decode a chunk, given by columns of one row; see `Chunk`."""
    chunk = Chunk(*(batch[name][0] for name in Chunk._fields))
    chunk = chunk._replace(
        number=int(chunk.number), first=int(chunk.first), count=int(chunk.count)
    )
    thing, rows, values = ('chunk', chunk.number), (), {}
    error = self._ask('begin', thing, self._node)
    if error is None:
      try:
        content = self._decode(chunk)
        rows, values = content.rows, content.values
      except ValueError as raised:
        error = errors.first_line(raised)
      except Exception as raised:
        traceback.print_exc()
        self._ask('explain', thing, errors.first_line(raised))
        # After an exception, Ray would go on with this process and its device.
        os._exit(1)
      self._ask('end', thing)
    return {
        'number': [chunk.number],
        'content': [json.dumps([list(rows), values], allow_nan=False)],
        'error': [error or ''],
    }

  def _ask(self, method: str, *args: Any) -> Any:
    """Call a method of `attempts`, and wait for its answer."""
    import ray

    return ray.get(getattr(self._attempts, method).remote(*args))
