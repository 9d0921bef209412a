// The host model beside a real device, policy by policy.
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/report.hpp"
#include "lib/report/text_table.hpp"

namespace fragsim {
namespace {

std::string of(std::int64_t part, std::int64_t all) {
    return part == all ? "all " + format_count(all) : format_count(part) + " of " + format_count(all);
}

std::string render(const ResultSet& set, const RenderOptions& options) {
    std::string out;
    for (const TraceResults& on_trace : set.traces) {
        TextTable table({{"policy", TextTable::Align::left}, {"placements"}, {"reserved after"}, {"out of memory"},
            {"reserved"}, {"driver, modelled"}, {"measured"}, {"model's error"}, {"spoilt"}});
        std::string card, differences, hosts;
        for (const Result& result : on_trace.results) {
            if (result.device.kind == DeviceChoice::Kind::host) {
                hosts += fmt::format("{}{}", hosts.empty() ? "" : ", ", result.label);
                continue;
            }
            card = fmt::format("{}: {}", result.device.label(), result.card);
            if (!result.agreement) continue;
            const Agreement& agreement = *result.agreement;
            const double modelled = *result.host_driver_time_ns;
            const double measured =
                result.latency ? static_cast<double>(result.latency->driver_ns) /
                                     static_cast<double>(std::max<std::size_t>(1, result.latency->repetition_ns.size()))
                               : 0;
            table.add({{result.label}, {of(agreement.placements_equal, agreement.allocs)},
                {of(agreement.reserved_equal, agreement.events)},
                {agreement.ooms_equal ? fmt::format("same, {}", agreement.ooms_host)
                                      : fmt::format("{} / {}", agreement.ooms_host, agreement.ooms_device)},
                {format_size(result.count("reserved_bytes.all.peak"))}, {format_duration(modelled)},
                {measured > 0 ? format_duration(measured) : "not measured"},
                {measured > 0 ? format_change(modelled, measured) : ""}, {format_count(result.spoilt_words)}});
            if (agreement.first_difference)
                differences += fmt::format("{}: first differs at op {}: host {}, device {}; reserved by at most {}\n",
                    result.label, format_count(agreement.first_difference->op), agreement.first_difference->host,
                    agreement.first_difference->device, format_size(agreement.largest_reserved_difference));
        }
        if (!out.empty()) out += '\n';
        if (card.empty()) {
            out += fmt::format("{}, device {}: on the host only, nothing to compare: {}\n", on_trace.recording->path,
                on_trace.trace->device, hosts);
            continue;
        }
        out += fmt::format("{}, device {}: {} ops; host model against {}\n\n", on_trace.recording->path,
            on_trace.trace->device, format_count(on_trace.trace->ops), card);
        out += table.render(options.width, options.color);
        if (!differences.empty()) out += '\n' + differences;
    }
    return out;
}

}  // namespace

ReportInfo agreement_report() {
    return {"agreement", "the host model beside a real device: placements, reserved bytes, out of memory, driver time",
        render};
}

}  // namespace fragsim
