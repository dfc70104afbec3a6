# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asks the server of the embedded pair by many clients at once, for a while.

Clients are tasks of OpenAI's own client, each of which asks again as soon as it
has its answer: texts of the bulletins, greedily or at temperature 1, half of
them streamed. Every answer is compared with the offline decode of the same
request. A few clients leave their stream after its first event. Clients and
server share the machine's cores.

  python -m benchmarks.server_load [--clients=64] [--seconds=300]
      [--leaving=0.01] [--output=results/server_load.json]

Prints a line of JSON: answers, those that differ or failed, clients that left,
seconds to the answer and to the first event of a stream (median and 99th
percentile), tokens per second, and the memory of the server after 10 s, every
30 s, and at the end. Ends with status 1 if an answer differs or failed.
"""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import pathlib
import random
import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
import openai

from benchmarks import running
import speculative_t5x as st
from speculative_t5x.tasks import bulletins

_ROWS, _MAX_TOKENS, _TEXTS = 8, 96, 128
# Memory is read after the first seconds, and then so often.
_WARM_S, _EVERY_S = 10, 30
_WAIT_S = 600


@dataclasses.dataclass
class Tally:
  """What clients have seen.

  Attributes:
    seconds: To each answer.
    first_seconds: To the first event of each stream.
    tokens: Of all answers.
    different: Answers that are not those of offline decoding.
    failed: Requests without an answer.
    left: Streams that were left.
  """

  seconds: list[float] = dataclasses.field(default_factory=list)
  first_seconds: list[float] = dataclasses.field(default_factory=list)
  tokens: int = 0
  different: int = 0
  failed: int = 0
  left: int = 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('server_load', __doc__)
  parser.add_argument('--clients', type=running.positive, default=64)
  parser.add_argument('--seconds', type=running.positive, default=300)
  parser.add_argument('--leaving', type=float, default=0.01)
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(arguments)


def answers() -> dict[tuple[str, int | None], str]:
  """Decode all requests offline; return texts by prompt and seed.

  Without a seed it is the greedy answer.
  """
  decoder = st.embedded.load_decoder(gamma=5)
  engine = st.Engine(decoder, _ROWS, rule=st.rules.Coupled())
  texts = [text for text, _ in bulletins.read_pairs('test')[:_TEXTS]]
  keys = [(text, seed) for text in texts for seed in (None, 1, 2)]
  results = engine.stream(
      st.Request(
          text,
          0,
          seed=seed or 0,
          sampling=st.Sampling(0.0 if seed is None else 1.0),
      )
      for text, seed in keys
  )
  found = []
  for result in results:
    (decode,) = result.decodes
    found.append(decoder.text(decode.text_tokens))
  return dict(zip(keys, found, strict=True))


@contextlib.contextmanager
def server() -> Iterator[tuple[subprocess.Popen, str]]:
  """Start the server; yield its process and its address."""
  process = subprocess.Popen(
      [
          sys.executable, '-m', 'speculative_t5x', 'serve',
          '--gin_file=configs/runs/serve_bulletins.gin', '--gin.PORT=0',
          f'--gin.ROWS={_ROWS}',
      ],
      stderr=subprocess.PIPE,
      text=True,
  )  # fmt: skip
  try:
    for line in process.stderr:
      if match := re.search('at (http://.*)', line):
        break
    else:
      raise RuntimeError('The server has not started.')
    yield process, match[1]
  finally:
    process.terminate()
    process.communicate(timeout=_WAIT_S)
  if process.returncode:
    raise RuntimeError(f'The server ended with {process.returncode}.')


def memory_mib(process: subprocess.Popen) -> float:
  """Return the resident memory of a process."""
  status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
  return int(re.search(r'VmRSS:\s+(\d+) kB', status)[1]) / 1024


async def ask_again(
    client: openai.AsyncOpenAI,
    expected: dict[tuple[str, int | None], str],
    tally: Tally,
    deadline: float,
    leaving: float,
    rng: random.Random,
) -> None:
  """Ask for one answer after another until a time is over."""
  keys, usage_too = list(expected), {'include_usage': True}
  while (begun := time.monotonic()) < deadline:
    text, seed = key = rng.choice(keys)
    is_streamed, leaves = rng.random() < 0.5, rng.random() < leaving
    try:
      answer = await client.completions.create(
          model='bulletins',
          prompt=text,
          seed=seed,
          temperature=0 if seed is None else 1,
          max_tokens=_MAX_TOKENS,
          stream=is_streamed,
          **({'stream_options': usage_too} if is_streamed else {}),
      )
      found, usage = '', None if is_streamed else answer.usage
      if is_streamed:
        first = None
        async for part in answer:
          first = first or time.monotonic()
          usage = part.usage
          found += ''.join(choice.text for choice in part.choices)
          if leaves:
            await answer.close()
            break
        tally.first_seconds.append(first - begun)
        if leaves:
          tally.left += 1
          continue
      else:
        found = answer.choices[0].text
    except openai.OpenAIError as error:
      print(f'{type(error).__name__}: {error}', file=sys.stderr)
      tally.failed += 1
      continue
    tally.seconds.append(time.monotonic() - begun)
    tally.tokens += usage.completion_tokens
    tally.different += found != expected[key]


async def load(
    options: argparse.Namespace,
    expected: dict[tuple[str, int | None], str],
    process: subprocess.Popen,
    url: str,
) -> dict[str, Any]:
  """Ask by all clients; return what they have seen."""
  tally, begun = Tally(), time.monotonic()
  # Its log is read, so that the server never waits for it.
  log = asyncio.get_running_loop().run_in_executor(None, process.stderr.read)
  async with openai.AsyncOpenAI(
      base_url=f'{url}/v1', api_key='none', max_retries=0, timeout=_WAIT_S
  ) as client:
    asking = [
        asyncio.create_task(
            ask_again(
                client,
                expected,
                tally,
                begun + options.seconds,
                options.leaving,
                random.Random(number),
            )
        )
        for number in range(options.clients)
    ]
    done = asyncio.gather(*asking)
    memory, wait_s = [], min(_WARM_S, options.seconds / 2)
    while not done.done():
      await asyncio.wait([done], timeout=wait_s)
      memory.append(memory_mib(process))
      wait_s = _EVERY_S
    await done
  seconds = time.monotonic() - begun
  process.terminate()
  tracebacks = (await log).count('Traceback')
  percentiles = lambda values: dict(
      zip(('p50', 'p99'), np.percentile(values, [50, 99]).tolist())
  )
  return {
      'clients': options.clients,
      'rows': _ROWS,
      'seconds': seconds,
      'answers': len(tally.seconds),
      'different': tally.different,
      'failed': tally.failed,
      'left': tally.left,
      'tracebacks': tracebacks,
      'tokens_per_s': tally.tokens / seconds,
      'answer_s': percentiles(tally.seconds),
      'first_event_s': percentiles(tally.first_seconds),
      'server_memory_mib': memory,
  }


def main(arguments: Sequence[str] | None = None) -> int:
  """Run the server under load; return 1 if an answer differs or failed."""
  options = parse_arguments(arguments)
  expected = answers()
  with server() as (process, url):
    found = asyncio.run(load(options, expected, process, url))
  running.write([running.line('server_load', **found)], options.output)
  return int(bool(found['different'] or found['failed'] or found['tracebacks']))


if __name__ == '__main__':
  sys.exit(main())
