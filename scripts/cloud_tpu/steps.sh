# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Shows commands and runs them, or only shows them in a dry run.

STEP_PID=''  # process id of the running command

#######################################
# Prints one line with the error and its remedy, and exits.
#######################################
fail() {
  echo "error: $*" >&2
  exit 1
}

#######################################
# Prints a line about the next commands: to stdout in a dry run, else to stderr.
#######################################
note() {
  if [[ ${DRY_RUN} == yes ]]; then
    echo "# $*"
  else
    echo "# $*" >&2
  fi
}

#######################################
# Prints words quoted for a shell. Only words that need quotes get them, and in
# a flag only the value.
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
# Shows a command and runs it, unless this is a dry run. The command runs in the
# background, so that a signal is handled at once and not after the command.
# Returns:
#   The command's status.
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
# Ends a command that still runs after a signal.
#######################################
stop_step() {
  [[ -n ${STEP_PID} ]] || return 0
  kill "${STEP_PID}" 2>/dev/null || true
  wait "${STEP_PID}" 2>/dev/null || true
  STEP_PID=''
}
