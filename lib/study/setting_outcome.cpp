#include "lib/study/setting_outcome.hpp"

#include "lib/core/parallel.hpp"
#include "lib/core/sizes.hpp"

namespace fragsim {
namespace {

void try_setting(SettingOutcome& outcome, const Trace& trace, RunOptions options) {
    const PolicySpec& spec = outcome.setting.spec;
    if (outcome.setting.traits.needs_memory_fraction && !outcome.in_force)
        options.limits.memory_limit = options.limits.bound();
    outcome.trial = try_policy(trace, spec, options);
    outcome.min_capacity = find_min_capacity(trace, spec, options);
    if (spec.info->advise) outcome.advice = spec.info->advise(spec.settings(), options.limits);
    const std::optional<Bytes> bound = spec.info->bounds(options.limits).reserved;
    if (const Bytes over = outcome.trial.reserved_peak - bound.value_or(outcome.trial.reserved_peak); over > 0)
        outcome.advice.push_back("reserves " + format_size(over) +
                                 " beyond the limit, as PyTorch's check of it allows; a full device would refuse that");
    if (outcome.setting.own && !outcome.setting.own->note.empty()) outcome.advice.push_back(outcome.setting.own->note);
    if (spec.other_end())
        outcome.advice.emplace_back("the worse of what the GPU may have done; nobody recorded it");
}

}  // namespace

Standing standing_of(const SettingOutcome& outcome, bool limited) {
    const std::optional<Bytes> card =
        outcome.min_capacity ? std::optional(outcome.min_capacity->bytes) : std::nullopt;
    const Trial& trial = outcome.trial;
    // What is reserved by a run that lacks some of its memory says nothing.
    const bool by_card = limited || !trial.survives();
    return {outcome.setting.traits, false, trial.survives() ? 0 : 1, by_card ? card : std::optional(trial.reserved_peak),
        card, trial.reserved_peak, trial.driver_time_ns};
}

std::vector<SettingOutcome> try_all_settings(const Trace& trace, const Setting& in_force,
    const std::vector<Setting>& settings, const RunOptions& options, int jobs) {
    std::vector<SettingOutcome> outcomes{{in_force, true, {}, {}, {}}};
    for (const Setting& setting : settings)
        if (!same_setting(setting.spec, in_force.spec)) outcomes.push_back({setting, false, {}, {}, {}});
    for_each_index(outcomes.size(), jobs, [&](std::size_t i) { try_setting(outcomes[i], trace, options); });
    return outcomes;
}

}  // namespace fragsim
