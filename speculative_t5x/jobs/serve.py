# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The serve job: a target and a drafter behind HTTP, until a signal comes."""

from collections.abc import Sequence
import contextlib
import dataclasses
import logging.config
import os
import sys
from typing import Any, Literal

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs import workload as workload_lib
from speculative_t5x.loading import drafters
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.speculation import ranges
from speculative_t5x.tasks import inputs as inputs_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeSetup:
  """The settings of a server.

  The attributes are explained in `configs/runs/serve.gin`, but for:

  Attributes:
    workload: Target, and the rule.
    drafter: Drafts for the target; None to decode plainly.
    search: Beam search of requests that ask for beams; None for none.
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
  max_waiting: int = service_lib.MAX_WAITING
  grace_s: float = 30.0

  def __post_init__(self):
    arguments.check_counts(
        gamma=None if self.gamma == 'auto' else self.gamma,
        rows=self.rows,
        max_waiting=self.max_waiting,
    )
    ranges.check_settings(ranges.COEFFICIENT, grace_s=self.grace_s)
    ranges.check_settings(ranges.whole(0, 65535), port=self.port)
    inputs_lib.check_lengths(self.workload.task_feature_lengths)

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


def serve(setup: ServeSetup) -> None:
  """Serve completions over HTTP until a signal comes.

  Raises:
    ValueError: for what cannot be served as configured.
  """
  # They need the extra, and the help and the checks of settings do not.
  import uvicorn

  from speculative_t5x.serving import app
  from speculative_t5x.serving import server as server_lib

  if setup.gamma == 'auto':
    workload, gamma = workload_lib.by_load(setup.workload)
    setup = dataclasses.replace(setup, workload=workload, gamma=gamma)
  workload = setup.workload
  with contextlib.ExitStack() as stack:
    # Before weights are read.
    sock = stack.enter_context(server_lib.listen(setup.host, setup.port))
    found, _ = workload.find_decoder(
        workload.find_target(workload.vocabulary(setup.vocabulary_file)),
        setup.drafter,
        gamma=setup.gamma,
        num_decodes=1,
        batch_size=setup.rows,
    )
    decoder = workload_lib.text_decoder(workload_lib.loaded(found))
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
        api_key=os.environ.get('SPECULATIVE_T5X_API_KEY') or None,
    )
    logging.config.dictConfig(uvicorn.config.LOGGING_CONFIG)
    url = server_lib.url(sock)
    print(f'Serving {server.model} at {url}', file=sys.stderr, flush=True)
    server_lib.Process(server, setup.grace_s).run(sockets=[sock])
