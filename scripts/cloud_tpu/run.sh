#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Starts worker.py with these arguments and shows its output until END_AT.
# gcloud runs this again when the connection breaks: the job still runs then,
# and is only shown.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
left=$((END_AT - $(date +%s)))
if mkdir -p ~/run && mkdir ~/run/started 2>/dev/null; then
  # At the end of the time an interrupt, after which finished work is kept.
  # shellcheck disable=SC2016  # the inner shell expands it
  setsid --fork bash -c 'echo $$ >~/run/pid; "$@"; echo $? >~/run/status' job \
    timeout --signal=INT --kill-after=60 "$((left > 0 ? left : 1))" \
    .venv/bin/python -u -m scripts.cloud_tpu.worker "$@" \
    </dev/null >~/run/log.txt 2>&1
fi
until [[ -s ~/run/pid ]]; do sleep 0.1; done
tail -n +1 --follow --sleep-interval=0.2 --pid="$(<~/run/pid)" ~/run/log.txt
exit "$(<~/run/status)"
