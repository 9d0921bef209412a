// The snapshot as a whole: its own keys, the settings, the annotations.
#include <bit>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "traces/pytorch_schema.hpp"
#include "traces/pytorch_words.hpp"

namespace fragsim {
namespace {

[[noreturn]] void no_snapshot(std::string_view what) {
    throw Malformed{fmt::format("the file holds {}, not a memory snapshot", what),
        "a snapshot is what torch.cuda.memory._dump_snapshot writes"};
}

}  // namespace

void SnapshotSink::finish(Value document, Snapshot& snapshot, const std::string& file) {
    try {
        read_document(document, snapshot);
    } catch (const Malformed& problem) {
        throw Error(ErrorCode::input, fmt::format("{}: {}", file, problem.what), problem.hint);
    }
    for (const Diagnostics::Entry& entry : unread_.entries())
        for (std::int64_t i = 0; i < entry.count; ++i) snapshot.diagnostics.count(entry.kind, entry.first_position);
}

void SnapshotSink::read_document(Value document, Snapshot& snapshot) {
    if (document.is(ValueKind::list)) {
        bool all_segments = true;
        lists_.for_each(document.index(), [&](Value item) { all_segments &= folded(item).kind() == Role::segment; });
        if (!all_segments) no_snapshot("a list of something else");
        return read_segments(document, snapshot);
    }
    if (!document.is(ValueKind::dict)) no_snapshot(describe(document));

    const Folded top = folded(document);
    bool found = false;
    Value key;
    bool is_key = false;
    if (top.kind() != Role::generic) no_snapshot(top.kind() == Role::empty ? "an empty dict" : "a part of a snapshot");
    generic_.for_each(top.index(), [&](Value item) {
        is_key = !is_key;
        if (is_key) {
            key = item;
            return;
        }
        switch (word_of(key)) {
            case Word::segments: read_segments(item, snapshot); break;
            case Word::device_traces: read_histories(item, snapshot); break;
            case Word::allocator_settings: read_settings(item, snapshot); return;
            case Word::external_annotations: read_annotations(item, snapshot); return;
            default: return;
        }
        found = true;
    });
    if (!found) no_snapshot("a dict without segments and device_traces");
}

void SnapshotSink::read_segments(Value list, Snapshot& snapshot) const {
    if (!list.is(ValueKind::list)) wrong_type("segments", list, "a list");
    snapshot.segments.clear();
    snapshot.segments.reserve(lists_.size(list.index()));
    lists_.for_each(list.index(), [&](Value item) {
        const Folded segment = folded(item);
        if (segment.kind() != Role::segment) wrong_type("a segment", item, "a dict with a total_size");
        snapshot.segments.push_back(segment.index());
    });
}

void SnapshotSink::read_histories(Value list, Snapshot& snapshot) {
    if (!list.is(ValueKind::list)) wrong_type("device_traces", list, "a list");
    if (lists_.size(list.index()) > kMaxDevices)
        throw Malformed{fmt::format("device_traces holds {} devices", lists_.size(list.index())), kEdited};
    snapshot.histories.clear();
    std::vector<Value> histories;
    lists_.for_each(list.index(), [&](Value item) { histories.push_back(item); });
    for (std::size_t device = 0; device < histories.size(); ++device) {
        for (std::size_t other = 0; other < device; ++other)
            if (histories[other] == histories[device] && snapshot.histories[other].count > 0)
                throw Malformed{fmt::format("devices {} and {} share one history", other, device), kEdited};
        const ListUse range = range_of(histories[device], Role::entry, records_.entries, "an entry of a history");
        snapshot.histories.push_back({range.first, range.count});
    }
}

void SnapshotSink::read_settings(Value dict, Snapshot& snapshot) const {
    if (dict.is(ValueKind::none)) return;
    if (!dict.is(ValueKind::dict)) wrong_type("allocator_settings", dict, "a dict");
    snapshot.has_settings = true;
    snapshot.settings.clear();
    if (folded(dict).kind() != Role::generic) return;
    Value key;
    bool is_key = false;
    generic_.for_each(folded(dict).index(), [&](Value item) {
        is_key = !is_key;
        if (is_key) {
            key = item;
            return;
        }
        snapshot.settings.emplace_back(print(key, false), print(item, false));
        if (snapshot.settings.back().first == "max_split_size" && item.is(ValueKind::integer))
            snapshot.max_split_size = item.payload();
        if (snapshot.settings.back().first == "roundup_power2_divisions") snapshot.roundup = roundup_divisions(item);
    });
}

// {"1": 0, "2": 0, ..., "32768": 0}: keys are MiB. A value that is no power of two up to 512 counts as none.
RoundupDivisions SnapshotSink::roundup_divisions(Value dict) const {
    RoundupDivisions divisions{};
    if (folded(dict).kind() != Role::generic) return divisions;
    Value key;
    bool is_key = false;
    generic_.for_each(folded(dict).index(), [&](Value item) {
        is_key = !is_key;
        if (is_key) {
            key = item;
            return;
        }
        const std::string mib = print(key, true);
        for (std::size_t i = 0; i < divisions.size(); ++i)
            if (mib == fmt::format("{}", 1 << i) && item.is(ValueKind::integer) && item.payload() > 0 &&
                item.payload() <= 512 && std::has_single_bit(static_cast<std::uint64_t>(item.payload())))
                divisions[i] = item.payload();
    });
    return divisions;
}

// As the allocator's own settings string spells them: true, 128, 0.8, [1:0,2:0].
std::string SnapshotSink::print(Value value, bool nested) const {
    switch (value.kind()) {
        case ValueKind::boolean: return value.payload() != 0 ? "true" : "false";
        case ValueKind::integer: return fmt::format("{}", value.payload());
        case ValueKind::wide: {
            const WideInteger wide = records_.values.wide[value.index()];
            return fmt::format(
                "{}{}", wide.negative ? "-" : "", wide.overflow ? "2^64 or more" : fmt::format("{}", wide.magnitude));
        }
        case ValueKind::real: return fmt::format("{}", records_.values.reals[value.index()]);
        case ValueKind::string: return std::string(records_.string(value.index()));
        case ValueKind::dict: {
            if (nested || folded(value).kind() != Role::generic) return nested ? "[...]" : "[]";
            std::string out = "[";
            bool is_key = false;
            generic_.for_each(folded(value).index(), [&](Value item) {
                is_key = !is_key;
                if (is_key && out.size() > 1) out += ',';
                out += print(item, true);
                if (is_key) out += ':';
            });
            return out + "]";
        }
        case ValueKind::none: return "None";
        default: return describe(value);
    }
}

void SnapshotSink::read_annotations(Value list, Snapshot& snapshot) {
    snapshot.annotations.clear();
    if (list.is(ValueKind::none)) return;
    const auto skip = [&](Value value) {
        unread_.count("annotation that cannot be read", fmt::format("it is {}", describe(value)));
    };
    if (!list.is(ValueKind::list)) return skip(list);
    lists_.for_each(list.index(), [&](Value item) {
        const Folded annotation = folded(item);
        if (annotation.kind() != Role::annotation) return skip(item);
        const AnnotationRecord& record = records_.annotations[annotation.index()];
        if (record.time_us != kNoTime) snapshot.annotations.push_back(record);
    });
}

Snapshot read_snapshot(Input& input) {
    Snapshot snapshot;
    SnapshotSink sink(snapshot.records);
    const Value document = read_pickle(input, snapshot.records.values, sink);
    sink.finish(document, snapshot, input.name());
    return snapshot;
}

}  // namespace fragsim
