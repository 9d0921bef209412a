#include "lib/report/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/report/text_table.hpp"

namespace fragsim {
namespace {

std::string outcome(const Score& score, std::size_t traces) {
    const std::string words = outcome_words(score.ooms);
    return score.ooms == 0 || traces == 1 ? words : fmt::format("{} in {} of {}", words, score.failing, traces);
}

// Rows of settings; changes are against the best.
std::string table_of(const TunedTraces& tuned, const std::vector<std::size_t>& rows, const RenderOptions& options) {
    const Tuning& tuning = tuned.tuning;
    TextTable table({{"setting", TextTable::Align::left}, {"outcome", TextTable::Align::left}, {"reserved"}, {"change"},
        {"calls"}, {"stall"}});
    const auto best = static_cast<double>(tuning.tried[tuning.best].score.reserved);
    for (const std::size_t row : rows) {
        const auto& [conf, score] = tuning.tried[row];
        table.add({{setting_label(conf)}, {outcome(score, tuned.recordings.size())}, {format_mib(score.reserved)},
            {row == tuning.best ? "" : format_change(static_cast<double>(score.reserved), best)},
            {format_count(score.driver_calls)}, {format_duration(score.stall_ns)}});
    }
    return table.render(options.width, options.color);
}

// "40 to 70, 96 to unset"
std::string ranges(const SettingKey& key, const std::vector<CurvePiece>& curve,
    const std::function<bool(const CurvePiece&)>& belongs) {
    std::string out;
    for (std::size_t i = 0; i < curve.size(); ++i) {
        if (!belongs(curve[i])) continue;
        const std::int64_t low = curve[i].low;
        while (i + 1 < curve.size() && belongs(curve[i + 1]) && curve[i + 1].low == curve[i].high + 1) ++i;
        out += (out.empty() ? "" : ", ") + values_of(key, low, curve[i].high);
    }
    return out;
}

std::string flatness(const TunedTraces& tuned) {
    std::string out;
    for (const KeySearch& search : tuned.tuning.keys) {
        const SettingKey& key = tuned.task->keys[search.key];
        if (search.curve.empty()) continue;
        const auto best = std::min_element(search.curve.begin(), search.curve.end(),
            [&](const CurvePiece& a, const CurvePiece& b) { return better(a.score, b.score, tuned.task->goals); });
        const auto as_good = [&](const CurvePiece& piece) {
            return !better(best->score, piece.score, tuned.task->goals);
        };
        if (std::all_of(search.curve.begin(), search.curve.end(), as_good)) {
            out += fmt::format("  {}: no value makes a difference\n", search.name);
            continue;
        }
        const auto near = [&](const CurvePiece& piece) {
            return piece.score.ooms == best->score.ooms &&
                   static_cast<double>(piece.score.reserved) <= 1.01 * static_cast<double>(best->score.reserved);
        };
        out += fmt::format("  {}: best {} ({}, {}); within 1 %: {}\n", search.name, ranges(key, search.curve, as_good),
            outcome(best->score, tuned.recordings.size()), format_mib(best->score.reserved),
            ranges(key, search.curve, near));
    }
    return out;
}

// Of the front, those that stall noticeably less than the one before.
std::vector<std::size_t> worth_showing(const Tuning& tuning) {
    std::vector<std::size_t> rows;
    for (const std::size_t row : tuning.pareto)
        if (rows.empty() || tuning.tried[row].score.stall_ns < 0.9 * tuning.tried[rows.back()].score.stall_ns)
            rows.push_back(row);
    return rows;
}

std::string extent(const Tuning& tuning) {
    double decided = 0, values = 0;
    for (const KeySearch& key : tuning.keys) decided += key.cover.covered, values += key.cover.points;
    std::string out = fmt::format("{} replays decided {} of {} values of single keys", format_count(tuning.replays),
        format_count(static_cast<std::int64_t>(decided)), format_count(static_cast<std::int64_t>(values)));
    if (tuning.jointly.points > 1)
        out += fmt::format(" and {} of their combinations",
            tuning.jointly.complete ? "all"
                                    : format_ratio(tuning.jointly.covered / std::max(1.0, tuning.jointly.points)));
    out += "; the rest key by key from the best on";
    if (tuning.exhausted) out += ", until the price was paid (--price)";
    return out + ".\n";
}

}  // namespace

std::string values_of(const SettingKey& key, std::int64_t low, std::int64_t high) {
    const auto value = [&](std::int64_t index) {
        const std::string& text = key.values[static_cast<std::size_t>(index)];
        return text.empty() ? std::string("unset") : text;
    };
    return low == high ? value(low) : value(low) + " to " + value(high);
}

std::string tuning_text(const TunedTraces& tuned, const RenderOptions& options) {
    const Tuning& tuning = tuned.tuning;
    const Candidate& best = tuning.tried[tuning.best];
    const std::size_t traces = tuned.recordings.size();
    std::string out;
    for (std::size_t i = 0; i < traces; ++i) {
        const TuneTask::Run& run = tuned.task->runs[i];
        out += fmt::format("{}, device {}: {} ops, {}\n", tuned.recordings[i]->path, run.trace->device,
            format_count(run.trace->ops),
            describe(run.options.limits));
        if (!run.options.adopt_start)
            out += "  begins in mid-run: every setting starts from what was live then, without a cache\n";
    }
    out += wrapped(extent(tuning), options.width) + '\n';
    const bool in_force = tuning.in_force && *tuning.in_force == tuning.best;
    if (in_force)
        out += fmt::format("Keep {}: nothing is better.\n\n", setting_label(best.alloc_conf));
    else
        out += fmt::format("Best:\n\n    {}\n\n", setting_line(best.alloc_conf));
    if (tuning.simplest != tuning.best)
        out += fmt::format("Simpler, and within 1 % of it in what counts:\n\n    {}\n\n",
            setting_line(tuning.tried[tuning.simplest].alloc_conf));
    const bool nobody = std::all_of(tuning.tried.begin(), tuning.tried.end(),
        [](const Candidate& c) { return c.score.refused || c.score.ooms > 0; });
    if (!nobody && best.score.ooms > 0)
        out += "It runs out of memory, which others do not: --objective survive,... asks for that first.\n\n";
    if (nobody) out += "No setting carries the run at this capacity; this one fails least.\n\n";
    if (const std::string condition = setting_condition(best.alloc_conf); !condition.empty()) out += condition + "\n\n";

    std::vector<std::size_t> rows{tuning.best};
    const auto add = [&](std::size_t row) {
        if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    };
    add(tuning.simplest);
    if (tuning.in_force) add(*tuning.in_force);
    add(tuning.standard);
    out += table_of(tuned, rows, options);
    const auto heading = [&](const char* text) { out += '\n' + bold(text, options.color) + '\n'; };
    if (worth_showing(tuning).size() > 1) {
        heading("Less stall for more memory");
        out += table_of(tuned, worth_showing(tuning), options);
    }
    heading("The values that everybody tries");
    out += table_of(tuned, tuning.folklore, options);
    heading("How flat it is, one key at a time");
    out += wrapped(flatness(tuned), options.width);
    return out;
}

}  // namespace fragsim
