#include "traces/pytorch_schema.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "traces/pytorch_words.hpp"

namespace fragsim {
namespace {

Role role_of(Value key) {
    switch (word_of(key)) {
        case Word::action: return Role::entry;
        case Word::state: return Role::block;
        case Word::total_size: return Role::segment;
        case Word::filename: return Role::frame;
        case Word::stage: return Role::annotation;
        case Word::real_size: return Role::history;
        default: return Role::generic;
    }
}

// A user's own keys may stand beside the snapshot's, spelled like any ("filename").
bool is_document(std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2)
        if (is_top_level(word_of(items[i]))) return true;
    return false;
}

}  // namespace

SnapshotSink::SnapshotSink(SnapshotRecords& records) : records_(records) {
    for (const std::string_view word : kSnapshotWords) records_.values.strings.intern_exact(word);
    no_text_ = records_.values.strings.intern_exact("");
    // Number 0 is what a record without the key has.
    pool_number(0, 0);
    stream_number(0);
}

void SnapshotSink::set_items(std::uint32_t dict, std::span<const Value> items) {
    // Nearly all dicts are entries, complete at once.
    if (dict == dicts_.size() && !items.empty() && word_of(items[0]) == Word::action) [[likely]] {
        dicts_.push_back(Folded::of(Role::entry, records_.entries.size()));
        records_.entries.push_back({});
        return fold_entry(records_.entries.back(), items);
    }
    if (dict >= dicts_.size()) dicts_.resize(dict + std::size_t{1}, Folded{});
    if (items.empty()) return;
    if (is_document(items) && dicts_[dict].kind() != Role::generic) dicts_[dict] = Folded{};
    if (dicts_[dict].kind() == Role::empty || dicts_[dict].kind() == Role::generic) find_role(dicts_[dict], items);
    fold(dicts_[dict], items);
}

void SnapshotSink::find_role(Folded& folded, std::span<const Value> items) {
    Role role = Role::generic;
    if (!is_document(items))
        for (std::size_t i = 0; i < items.size() && role == Role::generic; i += 2) role = role_of(items[i]);
    const Folded before = folded;
    if (role == Role::generic) {
        if (before.kind() == Role::empty) folded = Folded::of(Role::generic, generic_count_++);
        return;
    }
    folded = new_record(role);
    if (before.kind() == Role::empty) return;
    // The telling key came late; what was kept until now goes first.
    std::vector<Value> kept;
    generic_.for_each(before.index(), [&](Value value) { kept.push_back(value); });
    generic_.drop(before.index());
    fold(folded, kept);
}

Folded SnapshotSink::new_record(Role role) {
    const auto add = [role](auto& records) {
        records.push_back({});
        return Folded::of(role, records.size() - 1);
    };
    switch (role) {
        case Role::entry: return add(records_.entries);
        case Role::block: return add(records_.blocks);
        case Role::segment: return add(records_.segments);
        case Role::frame: frames_.push_back({no_text_, no_text_, kNoLine}); return Folded::of(role, frames_.size() - 1);
        case Role::annotation:
            records_.annotations.push_back({no_text_, no_text_, 0, 0});
            return Folded::of(role, records_.annotations.size() - 1);
        case Role::history: return add(histories_);
        case Role::empty:
        case Role::generic: break;
    }
    return {};
}

void SnapshotSink::fold(Folded folded, std::span<const Value> items) {
    switch (folded.kind()) {
        case Role::entry: return fold_entry(records_.entries[folded.index()], items);
        case Role::block: return fold_block(records_.blocks[folded.index()], items);
        case Role::segment: return fold_segment(records_.segments[folded.index()], items);
        case Role::frame:
            if (folded.index() < frame_numbers_.size()) frame_numbers_[folded.index()] = kUnnumbered;  // it changes
            return fold_frame(frames_[folded.index()], items);
        case Role::annotation: return fold_annotation(records_.annotations[folded.index()], items);
        case Role::history: return fold_history(histories_[folded.index()], items);
        case Role::generic: return generic_.append(folded.index(), items);
        case Role::empty: return;
    }
}

void SnapshotSink::fold_entry(EntryRecord& entry, std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const Value value = items[i + 1];
        switch (word_of(items[i])) {
            case Word::action: {
                const std::uint32_t word = string(value, "action");
                entry.action = (word <= static_cast<std::uint32_t>(Word::annotate) ? word + 1 : 0) & 15;
                break;
            }
            case Word::addr: entry.address = address(value, "addr"); break;
            case Word::device_free: {
                const std::optional<std::int64_t> free = number_if_any(value);
                entry.address = free && *free >= 0 ? static_cast<Address>(*free) : kNoAddress;
                break;
            }
            case Word::size: entry.size = bytes(value, "size"); break;
            case Word::stream: entry.stream = stream_number(stream_handle(value)); break;
            case Word::time_us: entry.time_us = time(value); break;
            case Word::pool_id: entry.pool = pool_plus_one(value); break;
            case Word::frames: entry.stack = stack_number(value) & kNoStack; break;
            default: break;
        }
    }
}

void SnapshotSink::fold_block(BlockRecord& block, std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const Value value = items[i + 1];
        switch (word_of(items[i])) {
            case Word::address: block.address = address(value, "address"); break;
            case Word::size: block.size = bytes(value, "size"); break;
            case Word::requested_size:  // the block's size stands in for it
                block.requested = value.is(ValueKind::none) ? kNoSize : bytes(value, "requested_size");
                break;
            case Word::frames: block.stack = stack_number(value); break;
            case Word::history: block.last_user = latest_user(value, block.stack); break;
            case Word::state:
                switch (static_cast<Word>(string(value, "state"))) {
                    case Word::inactive: block.state = RecordedState::inactive; break;
                    case Word::active_allocated: block.state = RecordedState::active_allocated; break;
                    case Word::active_pending_free:
                    case Word::active_awaiting_free: block.state = RecordedState::active_pending_free; break;
                    default: block.state = RecordedState::unknown; break;
                }
                break;
            default: break;
        }
    }
}

void SnapshotSink::fold_segment(SegmentRecord& segment, std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const Value value = items[i + 1];
        switch (word_of(items[i])) {
            case Word::device: segment.device = integer(value, "device"); break;
            case Word::address: segment.address = address(value, "address"); break;
            case Word::total_size: segment.size = bytes(value, "total_size"); break;
            case Word::stream: segment.stream = stream_number(stream_handle(value)); break;
            case Word::segment_type: segment.small = word_of(value) == Word::small; break;
            case Word::segment_pool_id: segment.pool = pool_plus_one(value); break;
            case Word::is_expandable: segment.expandable = value == Value::of(ValueKind::boolean, 1); break;
            case Word::blocks: {
                const ListUse use = range_of(value, Role::block, records_.blocks, "a block");
                segment.first_block = use.first;
                segment.block_count = use.count;
                break;
            }
            default: break;
        }
    }
}

void SnapshotSink::fold_frame(FrameRecord& frame, std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const Value value = items[i + 1];
        switch (word_of(items[i])) {
            case Word::name: frame.function = text(value); break;
            case Word::filename: frame.file = text(value); break;
            case Word::line: {
                // Code without a line has -1, which Python 3.13 writes as 2^64 - 1.
                const std::int64_t line = number_if_any(value).value_or(kNoLine);
                frame.line = line < 0 || line > std::numeric_limits<std::int32_t>::max() ? kNoLine : line;
                break;
            }
            default: break;
        }
    }
}

void SnapshotSink::fold_annotation(AnnotationRecord& annotation, std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const Value value = items[i + 1];
        switch (word_of(items[i])) {
            case Word::stage: annotation.stage = text(value); break;
            case Word::name: annotation.name = text(value); break;
            case Word::device: annotation.device = number_if_any(value).value_or(-1); break;
            case Word::time_us: annotation.time_us = time(value); break;
            default: break;
        }
    }
}

void SnapshotSink::fold_history(HistoryRecord& history, std::span<const Value> items) {
    for (std::size_t i = 0; i < items.size(); i += 2) {
        const Value value = items[i + 1];
        switch (word_of(items[i])) {
            case Word::real_size:
                history.requested = value.is(ValueKind::none) ? kNoSize : bytes(value, "real_size");
                break;
            case Word::frames: history.stack = stack_number(value); break;
            default: break;
        }
    }
}

std::int64_t SnapshotSink::other_integer(Value value, const char* what) const {
    if (value.is(ValueKind::boolean)) return value.payload();
    if (!value.is(ValueKind::wide)) wrong_type(what, value, "an integer");
    const WideInteger wide = records_.values.wide[value.index()];
    constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (wide.overflow || wide.magnitude > kLimit)
        throw Malformed{fmt::format("{} is an integer of more than 63 bits", what), kEdited};
    const auto magnitude = static_cast<std::int64_t>(wide.magnitude);
    return wide.negative ? -magnitude : magnitude;
}

std::optional<std::int64_t> SnapshotSink::number_if_any(Value value) const {
    constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    switch (value.kind()) {
        case ValueKind::boolean:
        case ValueKind::integer: return value.payload();
        case ValueKind::wide: {
            const WideInteger wide = records_.values.wide[value.index()];
            if (wide.overflow || wide.magnitude > kLimit) return {};
            const auto magnitude = static_cast<std::int64_t>(wide.magnitude);
            return wide.negative ? -magnitude : magnitude;
        }
        case ValueKind::real: {
            const double real = std::floor(records_.values.reals[value.index()]);
            if (!(std::abs(real) < 0x1p63)) return {};
            return static_cast<std::int64_t>(real);
        }
        default: return {};
    }
}

std::int64_t SnapshotSink::time(Value value) {
    if (value.is(ValueKind::integer)) [[likely]]
        return value.payload();
    const std::optional<std::int64_t> time = number_if_any(value);
    if (!time) unread_.count("time that is no number", fmt::format("a time is {}", describe(value)));
    return time.value_or(kNoTime);
}

// A handle only has to be told from others; some write it unsigned.
std::int64_t SnapshotSink::stream_handle(Value value) const {
    if (value.is(ValueKind::wide)) {
        const WideInteger wide = records_.values.wide[value.index()];
        if (!wide.overflow && !wide.negative) return static_cast<std::int64_t>(wide.magnitude);
    }
    return integer(value, "stream");
}

void SnapshotSink::impossible(const char* what, std::int64_t number) {
    throw Malformed{fmt::format("{} cannot be {}", what, number), kEdited};
}

void SnapshotSink::wrong_type(const char* what, Value value, const char* expected) {
    throw Malformed{fmt::format("{} is {}, not {}", what, describe(value), expected), kEdited};
}

}  // namespace fragsim
