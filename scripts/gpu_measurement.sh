#!/usr/bin/env bash
# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes the most of ten minutes on one GPU, without a network: T5 1.1 XXL with
# random weights and simulated acceptance, then exactness on the device.
#
#   bash scripts/gpu_measurement.sh [folder]     runs/gpu by default
#
# Everything is written as soon as it is measured: environment.txt,
# transformers.jsonl, exactness.jsonl, log.txt, and the output folder of a
# simulate job per batch size. A part that fails does not stop the others; the
# status tells. Needs JAX with its CUDA plugin and the package's core; torch and
# transformers for one part. Variables for a trial: SECONDS_IN_ALL, TARGET,
# DRAFTS, BATCH_SIZES, BATCHES, LENGTHS, TEXTS.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
out=${1:-runs/gpu}
drafts=${DRAFTS:-"('block_head_2_small', 'shared_encoder_2_small', 'small')"}
read -ra batch_sizes <<<"${BATCH_SIZES:-1 8 32}"
read -ra lengths <<<"${LENGTHS:-512 128}"
target=${TARGET:-xxl}
all_s=${SECONDS_IN_ALL:-600}
begin=${SECONDS}
failed=0
mkdir -p "${out}"
exec > >(tee -a "${out}/log.txt") 2>&1
export XLA_CLIENT_MEM_FRACTION=${XLA_CLIENT_MEM_FRACTION:-0.9}
export SPECULATIVE_T5X_COMMIT=${SPECULATIVE_T5X_COMMIT:-$(git rev-parse HEAD 2>/dev/null)}

part() { # its share of the seconds that are left, its name, its command
  local left=$((all_s - (SECONDS - begin)))
  local limit=$((left * $1 / 100))
  local name=$2
  shift 2
  echo "== ${name}: at most ${limit} s"
  timeout --kill-after=10 "${limit}" "$@"
  case $? in
    0) ;;
    124 | 137) echo "== ${name}: out of time; what it measured is written" ;;
    *) echo "== ${name} failed" && failed=1 ;;
  esac
}

{
  date --utc +%FT%TZ
  uname -sr
  echo "commit ${SPECULATIVE_T5X_COMMIT:-not known}"
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm \
    --format=csv,noheader
  python3 -m pip list --format=freeze 2>/dev/null |
    grep -iE '^(jax|flax|numpy|orbax|torch|transformers|nvidia)'
} >"${out}/environment.txt" 2>&1
python3 -c 'import jax, sys; print(sys.version, *jax.devices(), sep="\n")' |
  tee -a "${out}/environment.txt"

# Another process may hold the device's memory only after this one has ended.
for rows in "${batch_sizes[@]}"; do
  part 40 "${target}, batch ${rows}" python3 -m speculative_t5x simulate \
    --gin.TARGET_SIZE="${target}" --gin.DRAFT_SIZE="${drafts}" \
    --gin.ALPHA='(0.75, 0.62)' --gin.GAMMA=7 --gin.DTYPE=bfloat16 \
    --gin.MATMUL_PRECISION=None --gin.BATCH_SIZE="${rows}" \
    --gin.NUM_EXAMPLES="$((rows * ${BATCHES:-6}))" --gin.ROUNDS=8 \
    --gin.INPUTS_LENGTH="${lengths[0]}" --gin.TARGETS_LENGTH="${lengths[1]}" \
    --output_dir="${out}/batch_${rows}"
done
part 55 'transformers, plain' python3 -m benchmarks.transformers_plain \
  --target "${target}" --batch_size "${batch_sizes[@]}" \
  --inputs_length "${lengths[0]}" --targets_length "${lengths[1]}" \
  --output "${out}/transformers.jsonl"
part 90 'exactness' python3 -m benchmarks.device_exactness \
  --texts "${TEXTS:-128}" --output "${out}/exactness.jsonl"
echo "== done after $((SECONDS - begin)) s: ${out}"
exit "${failed}"
