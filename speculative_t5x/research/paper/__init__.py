# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables and figures, with measured values beside its own.

published         the numbers that the paper prints
differences       why a measured speedup differs from a published one
points            what run records contribute to tables and figures
markdown_tables   Tables 1 to 5, in Markdown
decoded_sentence  Figure 1
figures           Figures 2, 3 and 4
loop_trace        Figure 5
measured_loops    the measurements of Figure 5
"""
