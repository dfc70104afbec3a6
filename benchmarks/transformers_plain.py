# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times plain greedy decoding of T5 1.1 by Hugging Face transformers.

Random weights in bfloat16, random inputs and fixed lengths, as
`speculative-t5x simulate` decodes them. On the GPU if there is one.

  python -m benchmarks.transformers_plain --target xxl --batch_size 1 8 32

Prints a line of JSON per batch size, with the seconds per batch.
"""

import argparse
from collections.abc import Iterator, Sequence
import pathlib
import time

from benchmarks import other_systems
from benchmarks import running
from speculative_t5x.research.simulation import t5_published


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('transformers_plain', __doc__)
  sizes = list(t5_published.SIZES)
  parser.add_argument('--target', choices=sizes, default='xxl')
  running.add_counts(
      parser, inputs_length=512, targets_length=128, repeats=3
  )
  parser.add_argument(
      '--batch_size', type=running.positive, nargs='+', default=[1]
  )
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(arguments)


def measure(options: argparse.Namespace) -> Iterator[str]:
  """Yield a line per batch size."""
  import torch
  import transformers

  device = device_name = 'cpu'
  if torch.cuda.is_available():
    device, device_name = 'cuda', torch.cuda.get_device_name()
  config = t5_published.make_config(options.target, 'bfloat16')
  torch.set_default_dtype(torch.bfloat16)
  # Made on the device: 11B parameters would take minutes on the host.
  with torch.device(device):
    model = other_systems.t5_of_transformers(config)
  for rows in options.batch_size:
    shape = (rows, options.inputs_length)
    inputs = torch.randint(3, config.vocab_size, shape, device=device)
    seconds = []
    for _ in range(options.repeats + 1):  # the first warms up
      start = time.perf_counter()
      with torch.inference_mode():
        outputs = model.generate(
            inputs,
            do_sample=False,
            max_new_tokens=options.targets_length,
            min_new_tokens=options.targets_length,
        )
      outputs.cpu()  # waits for the device
      seconds.append(time.perf_counter() - start)
    yield running.line(
        'transformers_plain',
        target=options.target,
        batch_size=rows,
        inputs_length=options.inputs_length,
        targets_length=options.targets_length,
        new_tokens=outputs.shape[1] - 1,
        seconds=seconds[1:],
        torch=torch.__version__,
        transformers=transformers.__version__,
        torch_device=device_name,
    )


def main(arguments: Sequence[str] | None = None) -> None:
  """Run the benchmark."""
  options = parse_arguments(arguments)
  running.write(measure(options), options.output)


if __name__ == '__main__':
  running.run(main)
