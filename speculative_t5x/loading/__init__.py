# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models, drafters and vocabularies, read from disk.

  path --> checkpoints    one way to read T5X's and Hugging Face's layouts
             v
           families       which network the shapes or the config describe
             v
  path --> vocabularies   texts to token ids and back
             v
           models         found, once: network, special ids, vocabulary
             v
           drafters       each source finds what it needs beside the target
             v
           compatibility  do the two fit each other, and in how much memory?
             v
           placement      dtype, mesh and batch size that suit the machine
             v
           models, drafters: loaded, a parameter at a time

token_counts    counts of tokens, for tables and short vocabularies
files           paths and names as people write them, locks, whole files
"""
