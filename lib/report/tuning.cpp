#include "lib/report/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/report/text_table.hpp"
#include "lib/study/finalists.hpp"

namespace fragsim {
namespace {

std::string outcome(const Score& score, std::size_t traces) {
    const std::string words = outcome_words(score.ooms);
    return score.ooms == 0 || traces == 1 ? words : fmt::format("{} in {} of {}", words, score.failing, traces);
}

std::string card_words(const Candidate& candidate) {
    if (!candidate.card) return "";
    return candidate.card->bytes ? whole_mib(*candidate.card->bytes) : "none";
}

// Against the best, in what counts: the smallest card, or what is reserved where there is no limit.
std::string change(const TunedTraces& tuned, const Candidate& candidate) {
    const auto figure = [&](const Candidate& c) { return standing_of(c, tuned.task->limited()).memory; };
    const auto best = figure(tuned.tuning.tried[tuned.tuning.best]), here = figure(candidate);
    return best && here ? format_change(static_cast<double>(*here), static_cast<double>(*best)) : "";
}

// Cards, unless every run has a memory limit.
BoundWords bound_words(const TuneTask& task) {
    const bool limits = std::all_of(
        task.runs.begin(), task.runs.end(), [](const auto& run) { return run.options.limits.memory_limit; });
    return fragsim::bound_words(limits ? task.runs.front().options.limits : Limits{});
}

// Rows of settings.
std::string table_of(const TunedTraces& tuned, const std::vector<std::size_t>& rows, const RenderOptions& options) {
    const Tuning& tuning = tuned.tuning;
    TextTable table({{"setting", TextTable::Align::left}, {"outcome", TextTable::Align::left}, {"reserved"},
        {bound_words(*tuned.task).smallest}, {"change"}, {"calls"}, {"stall"}});
    for (const std::size_t row : rows) {
        const Candidate& candidate = tuning.tried[row];
        const Score& score = candidate.score;
        const char* const mark = row == tuning.in_force                 ? " (in force)"
                                 : candidate.traits.needs_memory_fraction ? ", memory limit"
                                                                          : "";
        table.add({{setting_label(candidate.alloc_conf) + mark},
            {outcome(score, tuned.recordings.size())}, {format_mib(score.reserved)}, {card_words(candidate)},
            {row == tuning.best ? "" : change(tuned, candidate)}, {format_count(score.driver_calls)},
            {format_duration(score.stall_ns)}});
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

std::optional<Bytes> common_bound(const TuneTask& task) {
    const std::optional<Bytes> bound = task.runs.front().options.limits.bound();
    const bool same = std::all_of(
        task.runs.begin(), task.runs.end(), [&](const TuneTask::Run& run) { return run.options.limits.bound() == bound; });
    return same ? bound : std::nullopt;
}

std::vector<std::size_t> rows_always_shown(const Tuning& tuning) {
    std::vector<std::size_t> rows;
    for (const auto& row : {std::optional(tuning.best), tuning.simple, tuning.in_force, std::optional(tuning.standard),
             tuning.expandable, tuning.extra})
        if (row && std::find(rows.begin(), rows.end(), *row) == rows.end()) rows.push_back(*row);
    return rows;
}

namespace {

std::string line_of(const TunedTraces& tuned, std::size_t row) {
    return fmt::format("\n    {}\n", setting_line(tuned.tuning.tried[row].alloc_conf, tuned.task->program));
}

// What to set, or why nothing.
std::string advice(const TunedTraces& tuned) {
    const Tuning& tuning = tuned.tuning;
    const TorchProgram& program = tuned.task->program;
    const Candidate &best = tuning.tried[tuning.best], &now = tuning.tried[tuning.reference()];
    const bool survives = best.score.failing == 0, changed = tuning.best != tuning.reference();
    const BoundWords words = bound_words(*tuned.task);
    std::string out;
    if (!survives)
        out += fmt::format("No setting carries {} {}{}.\n", tuned.recordings.size() == 1 ? "the run" : "every run",
            words.within, changed ? "; this one comes closest" : "");
    if (!changed)
        out += supposing(fmt::format("Keep {}: nothing {}.\n", setting_label(now.alloc_conf),
                             survives ? "is better by 1 % or more and worth its price"
                                      : fmt::format("does with a {} that is smaller by 1 % or more", words.name)),
            program);
    else
        out += supposing("Best:\n", program) + line_of(tuned, tuning.best);
    if (changed)
        for (const std::string& condition : setting_conditions(best.alloc_conf, now.alloc_conf, program))
            out += '\n' + condition + '\n';
    const bool larger = standing_of(best, true).card > standing_of(now, true).card;
    if (changed && larger)
        out += fmt::format(
            "\nIt needs a larger {}, {} instead of {}.\n", words.name, card_words(best), card_words(now));
    if (tuning.simple && changed && best.traits.entries > kSimpleEntries)
        out += fmt::format("\nThe best of at most {} settings:\n{}", kSimpleEntries, line_of(tuned, *tuning.simple));
    if (tuning.extra)
        out += fmt::format("\nBetter still under a memory limit that the program sets:\n{}    {}\n",
            line_of(tuned, *tuning.extra), fraction_line(common_bound(*tuned.task)));
    return out;
}

}  // namespace

std::string tuning_text(const TunedTraces& tuned, const RenderOptions& options) {
    const Tuning& tuning = tuned.tuning;
    const std::size_t traces = tuned.recordings.size();
    std::string out;
    for (std::size_t i = 0; i < traces; ++i) {
        const TuneTask::Run& run = tuned.task->runs[i];
        out += fmt::format("{}, device {}: {} ops, {}\n", tuned.recordings[i]->path, run.trace->device,
            format_count(run.trace->ops), describe(run.options.limits));
        if (!run.options.adopt_start) out += wrapped("  " + start_words(Start::live), options.width) + '\n';
    }
    out += wrapped(extent(tuning), options.width) + '\n';
    out += advice(tuned) + '\n';
    out += table_of(tuned, rows_always_shown(tuning), options);
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
