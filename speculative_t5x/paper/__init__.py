# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables and figures, with what was measured beside them.

  published   the numbers that the paper prints
  readings    what a run record says beside them
  tables      Markdown
  figures     Figures 2, 3 and 4
  decoded_sentence, loop_trace
              Figures 1 and 5; all figures in one style, with matplotlib
"""
