#!/usr/bin/env bash
# Everything that needs a GPU, in one go: every policy on every sample against the host model with its memory verified,
# latencies, the price of driver calls, a card that is really full, a run that is killed, PyTorch's own allocator and the
# recorded programs of the asynchronous pool. About five minutes on an idle H200; plain allocations only, the card's
# settings stay as they are.
#
# usage: scripts/gpu_check.sh PROGRAM OUT [SECONDS]
# PROGRAM: fragsim as the preset gpu builds it. OUT: a folder for report.md, results.json, cost_profile.json. SECONDS: no
# new part begins after that (420).
set -uo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1") out=$2 limit=${3:-420}
mkdir -p "$out" && out=$(realpath "$out")
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
export FRAGSIM_GPU_CHECK_START=$SECONDS

part() {  # NAME COMMAND...: runs it, keeps what it says and its status; says what was left out for want of time
    local name=$1 status
    shift
    if ((SECONDS > limit)); then
        echo "left out: $name" | tee -a "$parts/left_out"
        return
    fi
    local start=$SECONDS
    "$@" >"$parts/$name.out" 2>"$parts/$name.err"
    status=$?
    echo "$name $status $((SECONDS - start))" | tee -a "$parts/parts"
}

samples=(traces/samples/*.pickle.gz)
policies=()
while read -r policy; do
    case $policy in
        split-capped) policies+=(--policy split-capped:max_split_size_mb=128) ;;
        stitching) policies+=(--policy stitching --policy stitching:variant=released) ;;
        *) policies+=(--policy "$policy") ;;
    esac
done < <("$program" list policies | grep '^[a-z]')

nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader >"$parts/card" 2>/dev/null || true

[[ -x $(dirname "$program")/fragsim_gpu_test ]] && part device "$(dirname "$program")/fragsim_gpu_test"
part calibrate "$program" calibrate -f -q -o "$out/cost_profile.json"
for sample in "${samples[@]}"; do
    name=$(basename "$sample" .pickle.gz)
    repeat=2
    [[ $name == gpt2_varlen.default || $name == vit_multires.f70 ]] && repeat=6
    part "agree.$name" "$program" compare "$sample" "${policies[@]}" --device host --device cuda --touch verify \
        --repeat $repeat --cost-profile "$out/cost_profile.json" -q -f --report json="$parts/agree.$name.json"
done

# The driver's pool where the GPU is idle, as the model assumes: nothing runs, and the program's own pauses are kept.
for name in unet_multires.default gpt2_varlen.default; do
    part "pool.$name" "$program" compare "traces/samples/$name.pickle.gz" --policy async-pool --policy torch-async \
        --device host --device cuda --pace recorded --repeat 1 -q -f --report json="$parts/pool.$name.json"
done

# Limits: kept by the policy or by the capacity, and a card that is really full.
for sample in traces/samples/vit_multires.f70.pickle.gz traces/samples/oom.default.pickle.gz; do
    name=$(basename "$sample" .pickle.gz)
    size=9.79GiB
    [[ $name == oom.default ]] && size=5GiB
    few=(--policy caching --policy expandable --policy best-fit --policy async-pool)
    part "limit.$name" "$program" compare "$sample" "${few[@]}" --device host --device cuda --touch verify --repeat 1 \
        --capacity $size -q -f --report json="$parts/limit.$name.json"
    part "full.$name" "$program" compare "$sample" "${few[@]}" --device host --device cuda --touch verify --repeat 1 \
        --capacity $size --ballast -q -f --report json="$parts/full.$name.json"
done

# Killed in the middle: what it held is free again, and the status says so.
killed() {
    local before after status
    before=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits)
    "$program" replay traces/samples/gpt2_varlen.default.pickle.gz --policy caching --device cuda --pace recorded:50 &
    local child=$!
    sleep 4
    echo "held in mid-run: $(($(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits) - before)) MiB"
    kill -"$1" $child
    wait $child
    status=$?
    sleep 1
    after=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits)
    echo "signal $1: status $status, memory in use before $before MiB, after $after MiB"
    ((after <= before + 16))
}
part killed.INT killed INT
part killed.KILL killed KILL
part no_such_device "$program" replay "${samples[0]}" --device cuda:99
part hidden_devices env CUDA_VISIBLE_DEVICES= "$program" replay "${samples[0]}" --device cuda

# The recorded programs of the pool, recorded again: the same calls give the same addresses.
again() {
    g++ -O2 -std=c++20 -pthread tests/gpu/async_pool/record.cpp -o "$parts/record" -ldl || return 1
    local file total=0 same=0
    for file in tests/gpu/results/async_pool/{order,release,capped}.*.csv.gz; do
        zcat "$file" >"$parts/was.csv"
        timeout 120 "$parts/record" <"$parts/was.csv" >"$parts/is.csv" || return 1
        python3 scripts/gpu_report.py pool "$parts/was.csv" "$parts/is.csv"
    done
}
part async_pool_again again

if [[ -x tests/gpu/peers/build.sh ]]; then
    part peer.build tests/gpu/peers/build.sh "$parts/torch_peer"
    for name in gpt2_varlen.default vit_multires.f70 detection.default; do
        "$program" convert "traces/samples/$name.pickle.gz" -o "$parts/$name.txt" -q -f
        part "peer.$name" "$parts/torch_peer" --repetitions 6 "$parts/$name.txt"
        part "ours.$name" "$program" replay "$parts/$name.txt" --policy caching --device cuda --repeat 6 --frees completed --json
    done
fi

python3 scripts/gpu_report.py report "$parts" "$out"
