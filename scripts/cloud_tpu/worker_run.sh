#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Starts the job on a worker and shows its output until it ends.
#
# gcloud runs this script again if the connection breaks. The job still runs
# then; its output is shown again, and it is not started a second time.
set -euo pipefail

readonly RUN="${HOME}/run"

main() {
  mkdir -p "${RUN}"
  if mkdir "${RUN}/started" 2>/dev/null; then
    setsid --fork bash "${HOME}/speculative_t5x/scripts/cloud_tpu/worker_job.sh" \
      "$@" </dev/null >"${RUN}/log.txt" 2>&1
  fi
  until [[ -s ${RUN}/pid ]]; do sleep 0.1; done
  tail --lines=+1 --follow --sleep-interval=0.2 --pid="$(<"${RUN}/pid")" \
    "${RUN}/log.txt"
  exit "$(<"${RUN}/status")"
}

main "$@"
