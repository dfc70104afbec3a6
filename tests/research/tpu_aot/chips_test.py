# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of published numbers of chips, against JAX's."""

import pytest

from speculative_t5x.research.tpu_aot import chips

tpu = pytest.importorskip('jax.experimental.pallas.tpu')

_PAIRED = ('v4', 'v5p')  # JAX lists each of the two cores per chip


def _of_jax(name):
  """Returns memory, bandwidth and peak of a chip."""
  cores = 2 if name in _PAIRED else 1
  core = tpu.get_tpu_info_for_chip(tpu.ChipVersion(name), cores)
  return (
      cores * core.hbm_capacity_bytes,
      cores * core.mem_bw_bytes_per_second,
      cores * core.bf16_ops_per_second,
  )


@pytest.mark.parametrize('name', chips.CHIPS)
class TestChips:

  def test_memory(self, name):
    """JAX counts in 10^9 bytes instead of GiB."""
    memory, _, _ = _of_jax(name)
    assert chips.CHIPS[name].memory_bytes == pytest.approx(memory, rel=0.08)

  def test_bandwidth(self, name):
    _, bandwidth, _ = _of_jax(name)
    # Google's page on v5p has 2,765 GB/s, and JAX's table 2,460.
    rel = 0.13 if name == 'v5p' else 0.03
    assert chips.CHIPS[name].bandwidth == pytest.approx(bandwidth, rel=rel)

  def test_peak(self, name):
    _, _, peak = _of_jax(name)
    assert chips.CHIPS[name].peak == pytest.approx(peak, rel=0.03)

  def test_clock(self, name):
    """The peak is two operations per cycle and cell of the matrix units."""
    chip = chips.CHIPS[name]
    cores = 2 if name in _PAIRED else 1
    core = tpu.get_tpu_info_for_chip(tpu.ChipVersion(name), cores)
    cells = cores * core.num_mxus * core.mxu_column_size**2
    if chip.clock_hz is not None:
      assert 2 * cells * chip.clock_hz == pytest.approx(chip.peak, rel=0.03)
