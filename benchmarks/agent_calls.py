# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures how many target calls an agent saves that has made calls before.

A small target learns to turn requests to a file store into tool calls, from
generated pairs (`benchmarks.file_store`). It makes the calls of a first day,
which fill a store of earlier answers beside five calls that were written by
hand. A server then makes those of a second day, greedily, in three ways:

  lookup    drafts are looked up in the request and in the call so far
  premade   likewise, and in the nearest of the calls that were written by hand
  earlier   likewise, and in the nearest of all calls in the store

Of the second day's requests half are new, a quarter repeat one of the first day
word by word, and a quarter ask for the same in other words.

  python -m benchmarks.agent_calls --folder=runs/agent_calls \\
    [--output=<file>]

The folder keeps vocabulary, target and stores; a second run trains nothing.
Prints a line of JSON. It has for each way and kind of request the tokens per
target call, and the number of requests whose call differs from that of plain
decoding (near ties can differ); and for each kind how many of the target's
calls are those that were meant.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import threading
from typing import Any

import sentencepiece

from benchmarks import file_store
from benchmarks import running
from speculative_t5x.decoder import answers
from speculative_t5x.decoder import text_decoder
from speculative_t5x.jobs.command_line import process

_ROOT = pathlib.Path(__file__).parents[1]
_TASK = 'agent_calls'
_SPLITS = {'train': 20_000, 'validation': 500}
_LENGTHS = {'inputs': 48, 'targets': 64}  # tokens
_VOCAB_SIZE = 512
_SEED = 0
_ANSWERS = 2  # per request
_WAYS = 'lookup', 'premade', 'earlier'


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse and check the options."""
  parser = running.parser('agent_calls', __doc__)
  parser.add_argument('--folder', type=pathlib.Path, required=True)
  parser.add_argument('--requests', type=running.positive, default=200)
  parser.add_argument('--gamma', type=running.positive, default=10)
  parser.add_argument('--train_steps', type=running.positive, default=4000)
  parser.add_argument('--output', type=pathlib.Path, help='file for the line')
  return parser.parse_args(given)


def training_pairs(split: str, days: Sequence[Any]) -> list[tuple[str, str]]:
  """Return requests and calls to train on, none of them of the days."""
  seed = _SEED + 1 + list(_SPLITS).index(split)
  asked = {each.call for day in days for each in day}
  pairs = file_store.pairs(seed, _SPLITS[split])
  return [pair for pair in pairs if pair[1] not in asked]


def make_vocabulary(folder: pathlib.Path, days: Sequence[Any]) -> str:
  """Return the path of the vocabulary, which is made if it is missing."""
  path = folder / 'calls.model'
  if not path.exists():
    texts = [x for pair in training_pairs('train', days) for x in pair]
    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(path.with_suffix('')),
        vocab_size=_VOCAB_SIZE,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        byte_fallback=True,
        minloglevel=2,
    )
  return str(path)


def train_target(
    folder: pathlib.Path, vocabulary: str, steps: int, days: Sequence[Any]
) -> str:
  """Return the path of the target, which is trained if it is missing."""
  path = folder / 'target'
  if not list(path.glob(f'checkpoint_{steps}*')):
    # TensorFlow and the training are not needed a second time.
    from speculative_t5x.jobs import train
    from speculative_t5x.networks import t5
    from speculative_t5x.tasks import seqio_tasks
    from speculative_t5x.training import schedules
    from speculative_t5x.training import trainer

    seqio_tasks.add_task(
        _TASK,
        seqio_tasks.source_of_pairs(
            lambda split: training_pairs(split, days), list(_SPLITS)
        ),
        metric_fns=(),
        vocabulary_file=vocabulary,
    )
    train.train(
        mixture_or_task_name=_TASK,
        network_config=t5.T5Config(
            vocab_size=_VOCAB_SIZE,
            emb_dim=128,
            num_heads=4,
            head_dim=32,
            num_encoder_layers=2,
            num_decoder_layers=2,
            mlp_dim=256,
            mlp_activations=('gelu', 'linear'),
            dropout_rate=0.0,
        ),
        model_dir=str(path),
        learning_rate_fn=schedules.linear_decay(
            train_steps=steps, warmup_steps=min(300, steps // 2)
        ),
        settings=trainer.Settings(
            steps, batch_size=32, checkpoint_period=min(500, steps), keep=1
        ),
        task_feature_lengths=_LENGTHS,
    )
  return str(path)


def fill_stores(
    folder: pathlib.Path,
    decoder: text_decoder.TextDecoder,
    first: Sequence[file_store.Asked],
) -> dict[str, str]:
  """Return the folders of new stores, by the way that uses them."""
  embedder = answers.Embedder(
      decoder.tokens, decoder.vocabulary, decoder.options.inputs_length
  )
  texts = [each.text for each in first]
  earlier = list(zip(texts, decoder.decode_plain(texts).best, strict=True))
  found = {}
  for way, pairs in ('premade', []), ('earlier', earlier):
    store = answers.Store(embedder)
    store.add(*zip(*file_store.premade(), *pairs, strict=True))
    path = folder / way
    (path / 'answers.npz').unlink(missing_ok=True)
    store.save(path)
    found[way] = str(path)
  return found


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[str]:
  """Start a server with arguments, and end it; yield its address.

  Raises:
    RuntimeError: if it ends before it has one.
  """
  command = [sys.executable, '-m', 'speculative_t5x', 'serve', *arguments]
  with subprocess.Popen(
      [*command, '--gin.PORT=0'], cwd=_ROOT, stderr=subprocess.PIPE, text=True
  ) as server:
    lines = []
    for line in server.stderr:
      lines.append(line)
      if found := re.search('at (http://.*)', line):
        break
    else:
      raise RuntimeError(f'The server did not start: {"".join(lines)}')
    # It must not wait for a reader of its log.
    reader = threading.Thread(target=server.stderr.read)
    reader.start()
    try:
      yield found[1]
    finally:
      server.terminate()
      reader.join()


def ask(url: str, texts: Sequence[str]) -> list[dict[str, Any]]:
  """Return what the example prints for requests to a server."""
  done = subprocess.run(
      [sys.executable, str(_ROOT / 'examples/agent_calls.py'), url],
      input='\n'.join(texts),
      stdout=subprocess.PIPE,
      text=True,
      check=True,
  )
  return [json.loads(line) for line in done.stdout.splitlines()]


def describe(
    made: Sequence[dict[str, Any]],
    asked: Sequence[file_store.Asked],
    plain: Sequence[str],
) -> dict[str, Any]:
  """Return what the record says about a way, by kind of request."""
  found = {}
  groups = [each.group for each in asked]
  for group in ['all', *sorted(set(groups))]:
    places = [i for i, own in enumerate(groups) if group in ('all', own)]
    tokens = sum(made[i]['tokens'] for i in places)
    target_calls = sum(made[i]['target_calls'] for i in places)
    found[group] = {
        'requests': len(places),
        'tokens': tokens,
        'target_calls': target_calls,
        'tokens_per_target_call': tokens / target_calls,
        'different_outputs': sum(made[i]['call'] != plain[i] for i in places),
    }
  return found


def correct(
    asked: Sequence[file_store.Asked], plain: Sequence[str]
) -> dict[str, float]:
  """Return the share of calls that are those that were meant, by kind."""
  found = {}
  for each, call in zip(asked, plain, strict=True):
    found.setdefault(each.group, []).append(call == each.call)
  return {group: sum(x) / len(x) for group, x in sorted(found.items())}


def main(given: Sequence[str] | None = None) -> None:
  """Run the benchmark."""
  options = parse_arguments(given)
  process.keep_libtpu_from_searching()
  days = file_store.two_days(_SEED, options.requests)
  vocabulary = make_vocabulary(options.folder, days)
  target = train_target(
      options.folder, vocabulary, options.train_steps, days
  )
  decoder = text_decoder.load(
      target,
      vocabulary=vocabulary,
      gamma=options.gamma,
      inputs_length=_LENGTHS['inputs'],
      max_tokens=_LENGTHS['targets'],
  )
  first, second = days
  texts = [each.text for each in second]
  plain = decoder.decode_plain(texts).best
  stores = fill_stores(options.folder, decoder, first)
  ways = {}
  for way in _WAYS:
    arguments = [
        '--gin_file=configs/runs/serve.gin',
        '--gin_file=configs/drafters/lookup.gin',
        f'--gin.CHECKPOINT_PATH={target}',
        f'--gin.VOCABULARY_FILE={vocabulary}',
        f'--gin.TASK_FEATURE_LENGTHS={_LENGTHS}',
        f'--gin.GAMMA={options.gamma}',
    ]
    if way in stores:
      arguments += [
          '--gin_file=configs/decoding/answers.gin',
          f'--gin.ANSWERS_PATH={stores[way]}',
          f'--gin.ANSWERS_COUNT={_ANSWERS}',
          '--gin.ANSWERS_MIN_SIMILARITY=-1.0',  # the nearest ones, always
      ]
    with serving(*arguments) as url:
      ways[way] = describe(ask(url, texts), second, plain)
  line = running.line(
      'agent_calls',
      gamma=options.gamma,
      answers_per_request=_ANSWERS,
      train_steps=options.train_steps,
      correct_calls=correct(second, plain),
      ways=ways,
  )
  running.write([line], options.output)


if __name__ == '__main__':
  main()
