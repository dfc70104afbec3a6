# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times matrix products by the number of rows, in several forms.

Plain decoding multiplies one row by each kernel, and verification gamma + 1
rows. If a product took only the time to read the kernel, its time would not
depend on the number of rows. Each form is timed on more kernels than fit the
caches, one after another, where each product waits for the last one; forms are
interleaved. The forms are the plain product; the kernel transposed, from either
side; the kernel split into panels of columns, with one product per panel; its
halves as two arrays; row by row; and the plain product by XLA's other library
(Eigen instead of YNNPACK).

  python -m benchmarks.row_products [--inputs=768] [--outputs=4096]

Prints a line of JSON. For each form and number of rows it has the median time
of a product over the time to read the same bytes, by a sum, in the same round.
It also has the time of the arithmetic alone, at the speed of a product of 512
rows, over the same read time.
"""

from collections.abc import Callable

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from benchmarks import running

ROWS = (1, 2, 4, 8)
_MANY_ROWS = 512  # enough that arithmetic dominates the time
_TOTAL_BYTES = 2**28  # of all kernels: larger than the caches
_MAX_KERNELS = 48  # a longer chain takes long to compile
_PANEL = 64  # columns
_EIGEN = {'xla_cpu_experimental_ynn_fusion_type': ''}


def product(x: jax.Array, kernel: jax.Array) -> jax.Array:
  return x @ kernel


def panels(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Multiply with a kernel [panels, inputs, columns]."""
  rows = jnp.broadcast_to(x, (len(kernel), *x.shape))
  return lax.dot_general(rows, kernel, (((2,), (1,)), ((0,), (0,))))


def make_forms(inputs: int, outputs: int) -> dict[str, tuple]:
  """Return by name each form's function, kernels and compiler options."""
  count = _TOTAL_BYTES // (4 * inputs * outputs)
  count = min(max(count, 1), _MAX_KERNELS)
  keys = jax.random.split(jax.random.key(0), count)
  kernels = [jax.random.normal(key, (inputs, outputs)) for key in keys]
  turned = [k.T for k in kernels]
  cut = [k.reshape(inputs, -1, _PANEL).swapaxes(0, 1) for k in kernels]
  split = [tuple(jnp.split(k, 2, axis=1)) for k in kernels]
  right = lambda x, kernel: jnp.einsum('mk,nk->mn', x, kernel)
  left = lambda x, kernel: jnp.einsum('nk,mk->nm', kernel, x)
  halves = lambda x, kernel: jnp.stack([x @ half for half in kernel])
  row_by_row = lambda x, kernel: jnp.stack([kernel @ row for row in x])
  return {
      'product': (product, kernels, {}),
      'product_by_eigen': (product, kernels, _EIGEN),
      'transposed_right': (right, turned, {}),
      'transposed_left': (left, turned, {}),
      'panels': (panels, cut, {}),
      'halves': (halves, split, {}),
      'row_by_row': (row_by_row, turned, {}),
  }


def chain(form: Callable, options: dict) -> Callable:
  """Compile products with all kernels, where each waits for the last one."""

  def run(x, kernels):
    for kernel in kernels:
      x = x + jnp.max(form(x, kernel)) * 1e-9
    return x

  return jax.jit(run, compiler_options=options or None)


def measure(forms: dict[str, tuple], inputs: int, repeats: int) -> dict:
  """Return the seconds by form and number of rows, and those of reading."""
  kernels = forms['product'][1]
  read = jax.jit(lambda kernels: [jnp.sum(kernel) for kernel in kernels])
  many, compute = jnp.ones((_MANY_ROWS, inputs)), chain(product, {})
  programs = {
      ('read', 0): lambda: read(kernels),
      ('arithmetic', _MANY_ROWS): lambda: compute(many, kernels),
  }
  for name, (form, own, options) in forms.items():
    compiled = chain(form, options)
    for rows in ROWS:
      x = jnp.ones((rows, inputs))
      programs[name, rows] = lambda f=compiled, x=x, own=own: f(x, own)
  return running.time_programs(programs, repeats)


def main():
  parser = running.parser('row_products', __doc__)
  parser.add_argument('--inputs', type=int, default=768)
  parser.add_argument('--outputs', type=int, default=4096)
  parser.add_argument('--repeats', type=int, default=15)
  arguments = parser.parse_args()
  if arguments.outputs % _PANEL:
    parser.error(f'--outputs must be a multiple of {_PANEL}')
  forms = make_forms(arguments.inputs, arguments.outputs)
  spans = measure(forms, arguments.inputs, arguments.repeats)
  read_s = spans['read', 0]
  row_s = spans['arithmetic', _MANY_ROWS] / _MANY_ROWS
  num_kernels = len(forms['product'][1])
  over_read = lambda seconds: float(np.median(seconds / read_s))
  line = running.line(
      'row_products',
      inputs=arguments.inputs,
      outputs=arguments.outputs,
      num_kernels=num_kernels,
      read_ms=float(np.median(read_s)) * 1e3 / num_kernels,
      over_read={
          name: {rows: over_read(spans[name, rows]) for rows in ROWS}
          for name in forms
      },
      arithmetic_over_read={rows: over_read(rows * row_s) for rows in ROWS},
      repeats=arguments.repeats,
  )
  print(line)


if __name__ == '__main__':
  main()
