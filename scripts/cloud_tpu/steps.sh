# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Commands that are shown before they are run, or shown alone.

STEP_PID=''  # of the command that runs now

#######################################
# Ends with one line about what is wrong and how to correct it.
#######################################
fail() {
  echo "error: $*" >&2
  exit 1
}

#######################################
# A line about what follows: part of a dry run's output, else on stderr.
#######################################
note() {
  if [[ ${DRY_RUN} == yes ]]; then
    echo "# $*"
  else
    echo "# $*" >&2
  fi
}

#######################################
# Prints words as a shell reads them back. Only what needs quotes has them, and
# of a flag its value alone.
#######################################
quoted() {
  local word flag shown=()
  for word in "$@"; do
    if [[ ${word} =~ ^[[:alnum:]_./:=@%+,-]+$ ]]; then
      shown+=("${word}")
    elif [[ ${word} =~ ^[[:alnum:]_.-]+= ]]; then
      flag="${BASH_REMATCH[0]}"
      word="${word#"${flag}"}"
      shown+=("${flag}${word@Q}")
    else
      shown+=("${word@Q}")
    fi
  done
  echo "${shown[*]}"
}

#######################################
# Shows a command and, unless this is a dry run, runs it.
# It runs in the background, so that a signal is seen at once and not when it
# has ended.
# Returns:
#   Its status.
#######################################
step() {
  if [[ ${DRY_RUN} == yes ]]; then
    quoted "$@"
    return 0
  fi
  echo "+ $(quoted "$@")" >&2
  "$@" &
  STEP_PID=$!
  local status=0
  wait "${STEP_PID}" || status=$?
  STEP_PID=''
  return "${status}"
}

#######################################
# Ends the command that a signal left behind.
#######################################
stop_step() {
  [[ -n ${STEP_PID} ]] || return 0
  kill "${STEP_PID}" 2>/dev/null || true
  wait "${STEP_PID}" 2>/dev/null || true
  STEP_PID=''
}
