#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs this checkout on a TPU VM, into .venv: Python 3.13, as the images
# have 3.10, the pinned packages, T5X, and the checkout itself as editable, so
# that run records can name its commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Into the user's folder, or into the environment that is active.
python3 -m pip install --quiet "$(grep '^uv==' requirements.txt)"
python3 -m uv venv --quiet --clear --python 3.13 .venv
install=(python3 -m uv pip install --quiet --python .venv/bin/python)
"${install[@]}" -r requirements-tpu.txt -r requirements-t5x.txt
"${install[@]}" --no-deps -e .
while read -r name commit; do # as in docs/t5x.md
  folder="${PWD}/.venv/${name#*/}"
  git clone --quiet "https://github.com/${name}" "${folder}"
  git -C "${folder}" checkout --quiet "${commit}"
  echo "${folder}" >>.venv/lib/python3.13/site-packages/t5x.pth
done <<END
google-research/t5x cc342d419ec3e3e9c4bf1df33c82330cafdc1e16
google/airio 69897df7d9a427b947a9f7bb4164c7782b43e601
google-research/jestimator 326824a477feef6d92e6f44175000907a72899ca
END
