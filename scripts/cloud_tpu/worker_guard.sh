#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Deletes this TPU machine at its time limit, without help from outside.
#
# Runs as root when the machine starts, and again during the setup, which has an
# effect only if the first run failed. The limit and the command are in the
# machine's metadata. The command runs with the machine's service account, which
# must have the permission to delete TPUs.
set -euo pipefail

readonly UNIT='cloud-tpu-guard'
readonly FOLDER="${GUARD_FOLDER:-/var/lib/cloud_tpu_guard}"
readonly ATTRIBUTES='http://metadata.google.internal/computeMetadata/v1/instance/attributes'

attribute() {
  curl --fail --silent --show-error --retry 5 \
    --header 'Metadata-Flavor: Google' "${ATTRIBUTES}/$1"
}

main() {
  mkdir -p "${FOLDER}"
  exec 9>"${FOLDER}/lock"
  flock 9
  ! systemctl is-active --quiet "${UNIT}.timer" || return 0
  local limit command now left
  limit="$(attribute time-limit-s)"
  command="$(attribute delete-command)"
  now="$(date +%s)"
  # A restart of the machine does not extend its time.
  [[ -s ${FOLDER}/delete_at ]] ||
    echo $((now + limit)) >"${FOLDER}/delete_at"
  left=$(($(<"${FOLDER}/delete_at") - now))
  # Repeated until it succeeds: a deletion may fail temporarily.
  systemd-run --unit="${UNIT}" --on-active="$((left > 1 ? left : 1))s" \
    --timer-property=AccuracySec=1s --setenv="PATH=${PATH}:/snap/bin" \
    bash -c "until ${command}; do sleep 60; done"
}

main
