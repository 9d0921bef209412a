#include "traces/pytorch_version.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace fragsim {
namespace {

// In names of functions and files, and nowhere but in PyTorch for HIP and HIP's own runtime.
// Source: torch/utils/hipify/cuda_to_hip_mappings.py, aten/src/ATen/hip/impl (PyTorch 2.0 to 2.15).
constexpr std::string_view kHipNames[] = {"::hip::", "HIPCachingAllocator", "MasqueradingAsCUDA", "hipMalloc", "hipMem",
    "hipLaunchKernel", "hipModuleLaunch", "hipExt", "/c10/hip/", "/ATen/hip/", "/native/hip/", "libamdhip64",
    "libtorch_hip", "libc10_hip", "/opt/rocm"};

bool names_hip(std::string_view text) {
    return std::any_of(std::begin(kHipNames), std::end(kHipNames),
        [&](std::string_view name) { return text.find(name) != std::string_view::npos; });
}

}  // namespace

TorchVersionGuess guess_torch_version(const Snapshot& snapshot) {
    const auto has_setting = [&](const char* key) {
        return std::any_of(snapshot.settings.begin(), snapshot.settings.end(),
            [&](const auto& setting) { return setting.first == key; });
    };
    const auto& entries = snapshot.records.entries;
    const bool pools =
        std::any_of(entries.begin(), entries.end(), [](const EntryRecord& entry) { return entry.pool != 0; });
    if (pools) return {"2.13", "2.13 or later"};
    if (has_setting("graph_capture_record_stream_reuse")) return {"2.12", "2.10 to 2.12"};
    if (snapshot.has_settings) return {"2.8", "2.2 to 2.9"};
    return {"2.1", "2.0 or 2.1"};
}

bool recorded_on_hip(const Snapshot& snapshot) {
    // release_lock_on_hipmalloc, pinned_use_hip_host_register.
    for (const auto& [key, value] : snapshot.settings)
        if (key.find("hip") != std::string::npos || key.find("HIP") != std::string::npos) return true;
    const SnapshotRecords& records = snapshot.records;
    for (std::uint32_t i = 0; i < records.frames.size(); ++i) {
        const FrameRecord frame = records.frame(i);
        if (names_hip(records.string(frame.function)) || names_hip(records.string(frame.file))) return true;
    }
    return false;
}

}  // namespace fragsim
