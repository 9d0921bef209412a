// What explain recommends, as sentences and lines to paste.
#include <fmt/format.h>

#include "lib/core/sizes.hpp"
#include "lib/report/explanation.hpp"
#include "lib/report/format.hpp"
#include "lib/report/setting_words.hpp"

namespace fragsim {
namespace {

std::string card_words(const SettingOutcome& outcome) {
    return outcome.min_capacity ? whole_mib(outcome.min_capacity->bytes) : std::string("more than was tried");
}

// Why nothing is recommended.
std::string no_recommendation(const Explanation& explanation) {
    const SettingOutcome& now = explanation.settings.front();
    const BoundWords words = bound_words(explanation.limits);
    const std::string label = setting_label(now.setting);
    if (explanation.settings.size() == 1)
        return fmt::format(
            "No setting that users of {} have is known here; fragsim compare has other allocators side by side.\n", label);
    if (now.trial.survives())
        return supposing(fmt::format("Keep {}: none of these settings {} at a fair price.\n", label,
                             explanation.limits.bound() ? fmt::format("does with a {} that is 1 % smaller,", words.name)
                                                        : "reserves 1 % less, on no larger card and"),
            explanation.program);
    const SettingOutcome* least = nullptr;
    for (const SettingOutcome& outcome : explanation.settings)
        if (outcome.min_capacity && (!least || outcome.min_capacity->bytes < least->min_capacity->bytes))
            least = &outcome;
    if (!least) return fmt::format("No setting carries the run with any {} that was tried.\n", words.name);
    const std::string no = fmt::format("No setting of these carries the run {}, and none ", words.within);
    if (!now.min_capacity || least->min_capacity->bytes < now.min_capacity->bytes)
        return fmt::format("{}is worth a change: the {} is {} ({} in force).\n", no, words.smallest,
            card_words(*least), card_words(now));
    return fmt::format("{}does with less than {}.\n", no, card_words(now));
}

std::string written(const Setting& setting, const TorchProgram& program) {
    const std::vector<OwnSetting::Line> lines = setting_lines(setting, program);
    std::string out;
    for (const OwnSetting::Line& line : lines)
        out += fmt::format("    {}{}\n", line.text, setting.own ? "  # " + line.program : "");
    return out;
}

std::string extra_text(const Explanation& explanation) {
    const SettingOutcome& extra = explanation.settings[*explanation.extra];
    const SettingOutcome& other = explanation.settings[explanation.recommended.value_or(0)];
    const std::string gain =
        extra.trial.survives() && !other.trial.survives()
            ? "would have carried the run"
            : fmt::format("would do with a smaller card, {} instead of {}", card_words(extra), card_words(other));
    return fmt::format("\nUnder a memory limit that the program sets, this {}:\n\n{}    {}\n", gain,
        written(extra.setting, explanation.program), fraction_line(explanation.limits.bound()));
}

}  // namespace

std::string recommendation(const Explanation& explanation) {
    const SettingOutcome& now = explanation.settings.front();
    std::string out;
    if (!explanation.recommended) {
        out = no_recommendation(explanation);
    } else {
        const SettingOutcome& best = explanation.settings[*explanation.recommended];
        const BoundWords words = bound_words(explanation.limits);
        std::string sentence;
        if (!best.trial.survives())
            sentence = fmt::format(
                "No setting carries the run {}; this one comes closest, it needs {} ({} in force):", words.within,
                card_words(best), card_words(now));
        else if (!now.trial.survives())
            sentence = "This would have carried the run:";
        else if (explanation.limits.bound())
            sentence = fmt::format("It fits as it is. This would do with a smaller {}, {} instead of {}:", words.name,
                card_words(best), card_words(now));
        else
            sentence = fmt::format("Nothing failed. This reserves less, {} instead of {}:",
                whole_mib(best.trial.reserved_peak), whole_mib(now.trial.reserved_peak));
        const TorchProgram& program = explanation.program;
        out = (best.setting.own ? sentence : supposing(sentence, program)) + "\n\n" + written(best.setting, program);
        if (best.setting.alloc_conf)
            for (const std::string& condition :
                setting_conditions(*best.setting.alloc_conf, now.setting.alloc_conf.value_or(""), program))
                out += '\n' + condition + '\n';
        if (const double more = best.trial.driver_time_ns - now.trial.driver_time_ns; more > 0)
            out += fmt::format("\nIt costs {} more in driver calls over the whole run.\n", format_duration(more));
    }
    return explanation.extra ? out + extra_text(explanation) : out;
}

}  // namespace fragsim
