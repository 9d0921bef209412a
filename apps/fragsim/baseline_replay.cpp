#include "apps/fragsim/baseline_replay.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "lib/core/error.hpp"
#include "lib/core/parallel.hpp"
#include "policies/registry.hpp"

namespace fragsim {
namespace {

std::filesystem::path folder_of(const std::string& baseline) {
    const std::filesystem::path folder = std::filesystem::path(baseline).parent_path();
    return folder.empty() ? "." : folder;
}

std::string in_words(const Error& error) {
    return error.hint().empty() ? error.what() : fmt::format("{} ({})", error.what(), error.hint());
}

// A replay that is ready to run.
struct Prepared {
    const Trace* trace = nullptr;  // none: it is not
    PolicySpec spec;
    RunOptions options;
};

}  // namespace

const Recording& TraceStore::get(const std::string& path) {
    const auto [at, fresh] = loaded_.try_emplace(path);
    Loaded& loaded = at->second;
    if (fresh) try {
            loaded.recording.emplace(load(invocation_, path, true));
        } catch (const Error& error) {
            loaded.error.emplace(error);
        }
    if (loaded.error) throw Error(*loaded.error);
    return *loaded.recording;
}

std::string path_in_baseline(const std::string& baseline, const std::string& path) {
    return std::filesystem::proximate(path, folder_of(baseline)).generic_string();
}

std::string path_from_baseline(const std::string& baseline, const BaselineEntry& entry) {
    return (folder_of(baseline) / entry.trace).lexically_normal().generic_string();
}

RunName name_of(const std::string& baseline, const BaselineEntry& entry) {
    RunName name;
    name.trace = path_from_baseline(baseline, entry);
    name.gpu = entry.gpu;
    name.policy = entry.policy;
    name.limits = parse_limits(entry.capacity, entry.memory_limit);
    return name;
}

std::vector<Replayed> replay_entries(
    const std::string& baseline, const std::vector<BaselineEntry>& entries, TraceStore& traces, int jobs) {
    std::vector<Replayed> replayed(entries.size());
    std::vector<Prepared> prepared(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        // Each of these may fail on its own, and all that do are told.
        const auto attempt = [&](auto&& part) {
            try {
                part();
            } catch (const Error& error) {
                if (error.code() != ErrorCode::usage && error.code() != ErrorCode::input) throw;
                replayed[i].problems.push_back(in_words(error));
            }
        };
        attempt([&] { prepared[i].spec = parse_policy_spec(entries[i].policy, policies()); });
        attempt([&] {
            const Recording& recording = traces.get(path_from_baseline(baseline, entries[i]));
            replayed[i].sha256 = recording.sha256;
            prepared[i].trace = &choose_history(recording, entries[i].gpu);
            if (!prepared[i].spec.info) return;
            prepared[i].spec.assume("torch_version", recording.torch_version);
            prepared[i].options.adopt_start = takes_over_start(prepared[i].spec, policy_of(recording), true);
        });
        prepared[i].options.limits = name_of(baseline, entries[i]).limits;
        prepared[i].options.record_courses = true;
    }
    for_each_index(entries.size(), jobs, [&](std::size_t i) {
        if (!replayed[i].problems.empty()) return;
        try {
            replayed[i].figures = figures_of(run_policy(*prepared[i].trace, prepared[i].spec, prepared[i].options));
        } catch (const Error& error) {
            if (error.code() != ErrorCode::usage) throw;
            replayed[i].problems.push_back(in_words(error));
        }
    });
    return replayed;
}

}  // namespace fragsim
