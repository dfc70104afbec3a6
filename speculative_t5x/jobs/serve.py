# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The serve job: a target and a drafter behind HTTP, until a signal comes."""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import logging
import os
import sys
from typing import Any, Literal

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import drafters
from speculative_t5x.loading.files import user_paths
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.speculation import ranges
from speculative_t5x.tasks import inputs as inputs_lib

_API_KEY = 'SPECULATIVE_T5X_API_KEY'  # in the environment
_LOOPBACK = '127.0.0.1', '::1', 'localhost'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeSetup:
  """The settings of a server.

  The attributes are explained in `configs/runs/serve.gin`, but for:

  Attributes:
    workload: Target, and the rule.
    drafter: Drafts for the target; None to decode plainly.
    search: Beam search of requests that ask for beams; None for none.
    of_requests: Macros that each request decides, which must be None.
  """

  workload: workload_lib.Workload
  drafter: drafters.Drafting | None = None
  vocabulary_file: str | None = None
  gamma: int | Literal['auto'] = 5
  search: beam_search.BeamSearch | None = None
  rows: int = engine_lib.ROWS
  host: str = '127.0.0.1'
  port: int = 8000
  model_name: str | None = None
  plain: bool = False
  examples: Sequence[str] = ()
  api_key_file: str | None = None
  max_waiting: int = service_lib.MAX_WAITING
  max_body_bytes: int = 1 << 20
  grace_s: float = 30.0
  of_requests: Mapping[str, Any] | None = None

  def __post_init__(self):
    unused = [x for x, y in (self.of_requests or {}).items() if y is not None]
    if unused:
      raise ValueError(
          f'Each request says how it is sampled. Leave out {", ".join(unused)}.'
      )
    arguments.check_counts(
        gamma=None if self.gamma == 'auto' else self.gamma,
        rows=self.rows,
        max_waiting=self.max_waiting,
        max_body_bytes=self.max_body_bytes,
    )
    ranges.check_settings(ranges.COEFFICIENT, grace_s=self.grace_s)
    inputs_lib.check_lengths(self.workload.task_feature_lengths)

  def resolved(self) -> 'ServeSetup':
    """Return the setup with a number of draft tokens."""
    if self.gamma != 'auto':
      return self
    workload, gamma = workload_lib.by_load(self.workload)
    return dataclasses.replace(self, workload=workload, gamma=gamma)

  def begin(
      self, tokens: token_decoder.TokenDecoder, **settings: Any
  ) -> service_lib.Service:
    """Compile what a decoder needs, and begin to decode."""
    engine = engine_lib.Engine(
        tokens,
        rule=self.workload.rule,
        rows=self.rows,
        **settings,
    )
    engine.warm_up()
    if self.search is not None:
      engine.warm_up(self.search)
    return service_lib.Service(engine, self.max_waiting)

  def load(self) -> text_decoder.TextDecoder:
    """Load target, drafter and vocabulary."""
    vocabulary = self.workload.vocabulary(self.vocabulary_file)
    decoder, _ = self.workload.find_decoder(
        self.workload.find_target(vocabulary),
        self.drafter,
        gamma=self.gamma,
        num_decodes=1,
        batch_size=self.rows,
    )
    return workload_lib.text_decoder(workload_lib.loaded(decoder))


def serve(setup: ServeSetup) -> None:
  """Serve completions over HTTP until a signal comes.

  Raises:
    ValueError: for what cannot be served as configured.
  """
  # They need the extra, and the help and the checks of settings do not.
  from speculative_t5x.serving import app
  from speculative_t5x.serving import server as server_lib

  setup = setup.resolved()
  workload = setup.workload
  key = _api_key(setup.api_key_file)
  with contextlib.ExitStack() as stack:
    # Before weights are read.
    bound = stack.enter_context(server_lib.bind(setup.host, setup.port))
    decoder = setup.load()
    progress.say('compiling and warming up')
    speculative = stack.enter_context(
        setup.begin(
            decoder.tokens,
            hints_length=workload.task_feature_lengths.get('hints'),
        )
    )
    alone = None
    if setup.plain:  # with as many rows, to compare both; weights are shared
      alone = stack.enter_context(setup.begin(decoder.tokens.alone))
    server = app.Server(
        decoder,
        speculative,
        workload.model_name(setup.model_name),
        # Of an XXL, digests of weights take a minute: before clients connect.
        workload.fingerprint(decoder),
        alone,
        setup.examples,
        setup.search,
        api_key=key,
        max_body_bytes=setup.max_body_bytes,
    )
    _log_requests()
    if key is None and setup.host not in _LOOPBACK:
      _say(
          f'Whoever reaches {setup.host} may use the model. Set {_API_KEY}, or'
          ' API_KEY_FILE, to ask for a key.'
      )
    server_lib.listen(bound)  # whoever reads the line may connect
    _say(f'Serving {server.model} at {server_lib.url(bound)}')
    server_lib.serve(server, bound, setup.grace_s)


def _log_requests() -> None:
  """Have the package's log written to stderr, whatever else is logged."""
  handler = logging.StreamHandler()
  handler.setFormatter(logging.Formatter('%(asctime)s %(message)s'))
  log = logging.getLogger('speculative_t5x')
  log.setLevel(logging.INFO)
  log.addHandler(handler)
  log.propagate = False


def _say(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def _api_key(file: str | None) -> str | None:
  """Return the key of a file, else of the environment, if there is one."""
  if file is None:
    return os.environ.get(_API_KEY) or None
  key = user_paths.expand(file).read_text(encoding='utf-8').strip()
  if not key:
    raise ranges.ArgumentError(
        f'api_key_file must hold a key, and {file} is empty.',
        api_key_file=file,
    )
  return key
