# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes lines of text with a pair of your own, and says what drafts saved.

  python examples/decode_your_pair.py <target> [<draft>] < texts.txt

Both are checkpoints of T5X or Hugging Face. Without a draft model, drafts are
looked up in the input and the output. The pair that comes with the package:

  python examples/decode_your_pair.py speculative_t5x/embedded/target \\
    speculative_t5x/embedded/draft \\
    --vocabulary=speculative_t5x/tasks/bulletins/bulletins.model < texts.txt
"""

import argparse
import sys

import speculative_t5x as st


def main(arguments=None):
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('target', help='a checkpoint')
  parser.add_argument('draft', nargs='?', help='another one')
  parser.add_argument('--vocabulary', help="if not in the target's folder")
  parser.add_argument('--gamma', type=int, default=5, help='draft tokens')
  parser.add_argument('--temperature', type=float, default=0.0)
  options = parser.parse_args(arguments)

  texts = [line.strip() for line in sys.stdin if line.strip()]
  if not texts:
    parser.error('there is no text on the standard input')
  st.enable_compilation_cache()  # the next start need not compile
  decoder = st.load(
      options.target,
      options.draft,
      gamma=options.gamma,
      vocabulary=options.vocabulary,
  )
  print(decoder, file=sys.stderr)
  output = decoder.decode(texts, sampling=st.Sampling(options.temperature))
  print(*output.best, sep='\n')
  rate = output.statistics['tokens_per_target_call']
  print(f'{rate:.2f} tokens per target call', file=sys.stderr)


if __name__ == '__main__':
  main()
