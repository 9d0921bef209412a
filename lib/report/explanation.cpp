// The answer to "why, and what now", in the order people ask: verdict, waste, who, which setting.
#include "lib/report/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/report/text_table.hpp"

namespace fragsim {

std::string arithmetic(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    const Waste& waste = moment.shortage.waste;
    std::string out;
    const auto line = [&](const char* what, Bytes bytes, std::string note = {}) {
        out += fmt::format("  {:<38}{:>16}{}\n", what, format_mib(bytes), note.empty() ? "" : "  " + note);
    };
    const bool asks = moment.kind != Moment::Kind::peak;  // what made a peak is live by then
    if (asks) line("asked for", oom.requested);
    line("live, as requested", oom.live_requested);
    if (oom.device_free >= 0) {
        const Bytes capacity = oom.reserved + oom.device_free,
                    left = capacity - oom.live_requested - (asks ? oom.requested : 0);
        line(moment.shortage.process_limit ? "memory limit" : "capacity", capacity,
            fmt::format("{} {} {}", asks ? "live and request" : "live blocks", left < 0 ? "exceed it by" : "leave",
                format_mib(std::abs(left))));
    }
    line("reserved", oom.reserved);
    if (oom.device_free >= 0) line("could still be reserved", oom.device_free);
    line("free inside reserved memory", oom.free_total);
    line(asks ? "  for this request, the largest hole" : "  the largest hole",
        moment.largest_ranges.empty() ? 0 : moment.largest_ranges.front(),
        moment.largest_ranges.size() < 2 ? "" : fmt::format("then {}", [&] {
            std::string sizes;
            for (std::size_t i = 1; i < moment.largest_ranges.size(); ++i)
                sizes += (i == 1 ? "" : ", ") + format_mib(moment.largest_ranges[i]);
            return sizes;
        }()));
    if (waste.pending > 0) line("  waiting for other streams", waste.pending);
    if (waste.other_size_class > 0) line("  kept for blocks of other sizes", waste.other_size_class);
    if (waste.other_streams > 0) line("  kept for other streams", waste.other_streams);
    if (waste.private_pools > 0) line("  kept for private pools", waste.private_pools);
    if (moment.shortage.device_free) line("free on the device, as recorded", *moment.shortage.device_free);
    return out;
}

namespace {

std::string moments_text(const Explanation& explanation, bool color) {
    std::string out;
    const auto& moments = explanation.moments;
    if (explanation.left_out > 0)
        out += fmt::format(
            "The start does not fit: {} of the buffers that were live when the recording begins have no "
            "room and are left out of what follows.\n\n",
            format_count(explanation.left_out));
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const bool full = i == 0;  // the others are alike more often than not
        out += full ? bold("Verdict: ", color) + verdict_sentence(moments[i]) + "\n\n" + arithmetic(moments[i])
                    : (i == 1 ? "\nThe others:\n" : "") + ("  " + verdict_sentence(moments[i]) + '\n');
    }
    if (const auto more = explanation.ooms - explanation.left_out - static_cast<std::int64_t>(moments.size()); more > 0)
        out += fmt::format("  and {} more\n", format_count(more));
    return out;
}

struct WasteRow {
    const char* what;
    Bytes Waste::*part;
};
constexpr WasteRow kWasteRows[] = {{"requested and in use", &Waste::requested}, {"rounding", &Waste::rounding},
    {"unsplit remainders", &Waste::unsplit}, {"frees waiting for streams", &Waste::pending},
    {"free, segments pinned", &Waste::pinned}, {"free, could be given back", &Waste::releasable},
    {"free, for other sizes", &Waste::other_size_class}, {"free, for other streams", &Waste::other_streams},
    {"free, in private pools", &Waste::private_pools}};

}  // namespace

// At the moment of the verdict, and at quarters of the run.
TextTable waste_table(const Explanation& explanation) {
    std::vector<TextTable::Column> columns{{"", TextTable::Align::left}, {"then"}, {"part"}};
    std::vector<Waste> course;
    constexpr std::size_t kShown = 4;
    for (std::size_t i = 1; i <= kShown && !explanation.course.empty(); ++i) {
        const WasteSample& sample = explanation.course[i * (explanation.course.size() - 1) / kShown];
        columns.push_back({fmt::format("op {}", format_count(sample.op))});
        course.push_back(sample.waste);
    }
    TextTable table(columns);
    const Waste& then = explanation.moments.front().shortage.waste;
    const auto add = [&](const char* what, auto of) {
        std::vector<TextTable::Cell> row{{what}, {format_mib(of(then))},
            {format_ratio(
                then.reserved() == 0 ? 0 : static_cast<double>(of(then)) / static_cast<double>(then.reserved()))}};
        for (const Waste& waste : course) row.push_back({format_size(of(waste))});
        table.add(std::move(row));
    };
    for (const WasteRow& row : kWasteRows) {
        const auto of = [&](const Waste& waste) { return waste.*row.part; };
        const bool any =
            of(then) > 0 || std::any_of(course.begin(), course.end(), [&](const Waste& w) { return of(w) > 0; });
        if (any) add(row.what, of);
    }
    add("reserved", [](const Waste& waste) { return waste.reserved(); });
    return table;
}

std::string pinner_lines(const Moment& moment) {
    std::string out;
    for (const Pinner& pinner : moment.pinners)
        out += fmt::format("  {} {}, {} in all, from op {}: beside {} in {} free {}\n", format_count(pinner.blocks),
            (pinner.blocks == 1 ? "block of " : "blocks of ") + pinner.who, format_size(pinner.bytes),
            pinner.oldest_op == pinner.youngest_op
                ? format_count(pinner.oldest_op)
                : fmt::format("{} to {}", format_count(pinner.oldest_op), format_count(pinner.youngest_op)),
            format_size(pinner.free_bytes), format_count(pinner.ranges), pinner.ranges == 1 ? "range" : "ranges");
    return out;
}

TextTable settings_table(const Explanation& explanation) {
    TextTable table({{"setting", TextTable::Align::left}, {"outcome", TextTable::Align::left}, {"reserved"},
        {bound_words(explanation.limits).smallest}, {"calls"}, {"stall"}});
    Bytes least_card = Bytes{1} << 62, most_card = 0;
    for (const SettingOutcome& outcome : explanation.settings) {
        const Bytes card = outcome.min_capacity ? outcome.min_capacity->bytes : Bytes{1} << 62;
        least_card = std::min(least_card, card), most_card = std::max(most_card, card);
    }
    for (const SettingOutcome& outcome : explanation.settings) {
        const auto& card = outcome.min_capacity;
        const bool fraction = outcome.setting.traits.needs_memory_fraction && !outcome.in_force;
        table.add({{setting_label(outcome.setting) + (outcome.in_force ? " (in force)" : fraction ? ", memory limit" : "")},
            {outcome_words(outcome.trial)}, {whole_mib(outcome.trial.reserved_peak)},
            {card ? whole_mib(card->bytes) + (card->monotone() ? "" : "?") : "none",
                card && least_card != most_card && card->bytes == least_card},
            {format_count(outcome.trial.driver_calls)}, {format_duration(outcome.trial.driver_time_ns)}});
    }
    return table;
}

namespace {

// The verdict's figure includes what the table's leave out.
std::string cache_at_start(const Explanation& explanation) {
    const Moment& first = explanation.moments.front();
    const Bytes recorded = first.shortage.waste.reserved(), replayed = explanation.settings.front().trial.reserved_peak;
    if (first.kind != Moment::Kind::peak || recorded <= replayed) return "";
    return fmt::format("; with the cache that it began with, the run reserved {}", whole_mib(recorded));
}

}  // namespace

std::string settings_notes(const Explanation& explanation) {
    std::string out;
    if (explanation.starts_in_mid_run) out += start_words(Start::live) + cache_at_start(explanation) + '\n';
    for (const SettingOutcome& outcome : explanation.settings) {
        if (outcome.min_capacity && !outcome.min_capacity->monotone())
            out += fmt::format("? {}: fails again at {}: more memory is not always better\n",
                setting_label(outcome.setting), whole_mib(outcome.min_capacity->highest_failing));
        for (const std::string& advice : outcome.advice)
            out += fmt::format("note: {}: {}\n", setting_label(outcome.setting), advice);
    }
    return out;
}

namespace {

std::string capacity_text(const Explanation& explanation) {
    const std::string size = describe(explanation.limits);
    if (!explanation.limits.bound()) return size + " (--capacity SIZE sets one)";
    if (!explanation.inferred) return size;
    if (const auto& retry = explanation.inferred->retry)
        return fmt::format(
            "{}, read off the recording: it held that much; at op {} it was refused {} with {} reserved, so that it "
            "had less than {}, and went on after giving cached memory back. Whether the card was full or a memory limit "
            "was in force does not show; a card is assumed",
            size, format_count(retry->op), format_mib(retry->wanted), format_mib(retry->reserved),
            format_mib(retry->below()));
    return size + (explanation.inferred->full_device
                          ? ", read off the recording: what it had reserved and what the device had free when it failed"
                          : ", read off the recording: it held that much and was refused more while the device had "
                            "room, so a memory limit was in force");
}

// What is not explained here, as --gpu chooses.
std::string other_devices(const TraceResults& explained) {
    std::string out;
    for (const Trace& other : explained.recording->traces)
        if (other.device != explained.trace->device)
            out += fmt::format("Device {} {}: --gpu {} explains it.\n", other.device,
                other.ooms.empty() ? "did not run out of memory" : "ran out of memory, too", other.device);
    return out.empty() ? out : out + '\n';
}

}  // namespace

std::string explanation_text(const TraceResults& explained, const RenderOptions& options) {
    const Explanation& explanation = *explained.explanation;
    const auto heading = [&](const char* text) { return '\n' + bold(text, options.color) + '\n'; };
    const auto prose = [&](const std::string& text) { return wrapped(text, options.width); };
    std::string out = prose(fmt::format("{}, device {}: {} ops, {}\n\n", explained.recording->path,
        explained.trace->device, format_count(explained.trace->ops), capacity_text(explanation)));
    out += prose(other_devices(explained));
    out += prose(moments_text(explanation, options.color));
    out += heading("Where reserved memory is") + waste_table(explanation).render(options.width, options.color);
    if (const std::string lines = pinner_lines(explanation.moments.front()); !lines.empty())
        out += heading("Who keeps the free ranges apart") + prose(lines);
    out +=
        heading("What would have carried the run") + settings_table(explanation).render(options.width, options.color);
    out += prose(settings_notes(explanation));
    return out + '\n' + recommendation(explanation);
}

}  // namespace fragsim
