# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153  # shared with the files that source this one
#
# Reads chips, hosts and runtime version from the name of a TPU type.

#######################################
# Reads a type. The number in v5litepod and v6e types is the number of chips; in
# the others it is the number of TensorCores, of which a chip has two. A host
# has four chips, except that v5litepod-8 and v6e-8 are one host of eight chips.
# Globals:
#   Sets NUM_CHIPS, NUM_HOSTS and RUNTIME_VERSION.
# Returns:
#   1 for a type that does not exist.
#######################################
read_type() {
  [[ $1 =~ ^(v2|v3|v4|v5p|v5litepod|v6e)-([1-9][0-9]{0,4})$ ]] || return 1
  local family="${BASH_REMATCH[1]}" number="${BASH_REMATCH[2]}"
  case "${family}" in
    v5litepod) RUNTIME_VERSION='v2-alpha-tpuv5-lite' ;;
    v5p) RUNTIME_VERSION='v2-alpha-tpuv5' ;;
    v6e) RUNTIME_VERSION='v2-alpha-tpuv6e' ;;
    *) RUNTIME_VERSION='tpu-ubuntu2204-base' ;;
  esac
  case "${family}-${number}" in
    v5litepod-[148] | v6e-[148])
      NUM_CHIPS="${number}"
      NUM_HOSTS=1
      ;;
    v5litepod-* | v6e-*)
      ((number % 16 == 0)) || return 1
      NUM_CHIPS="${number}"
      NUM_HOSTS=$((number / 4))
      ;;
    *)
      ((number % 8 == 0)) || return 1
      NUM_CHIPS=$((number / 2))
      NUM_HOSTS=$((number / 8))
      ;;
  esac
}

#######################################
# Prints a number and a noun, in the plural unless the number is 1.
#######################################
counted() {
  if [[ $1 == 1 ]]; then echo "1 $2"; else echo "$1 $2s"; fi
}

#######################################
# Prints the maximum chip-hours of the machine.
# Globals:
#   Reads TYPE, NUM_CHIPS, NUM_HOSTS, TIME_LIMIT_S, CHIPS.
#######################################
print_chip_hours() {
  local hundredths=$((NUM_CHIPS * TIME_LIMIT_S / 36))
  local chips hosts hours
  chips="$(counted "${NUM_CHIPS}" chip)"
  hosts="$(counted "${NUM_HOSTS}" host)"
  hours="$(printf '%d.%02d' $((hundredths / 100)) $((hundredths % 100)))"
  note "${TYPE} is ${chips} on ${hosts}; at most ${hours} chip-hours in" \
    "${TIME_LIMIT_S} s."
  if [[ ${CHIPS} == 1 ]] && ((NUM_CHIPS > 1)); then
    note "The job uses one chip; all ${NUM_CHIPS} are billed."
  fi
}
