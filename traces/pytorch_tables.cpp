// The parts of a snapshot that entries refer to by number: streams, pools, call stacks, and the lists of records.
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "traces/pytorch_schema.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kMaxStreams = 0xffff;
constexpr std::size_t kMaxPools = 0xfffe;

template <class Record>
std::string_view as_bytes(const Record& record) {
    static_assert(std::has_unique_object_representations_v<Record>);
    return {reinterpret_cast<const char*>(&record), sizeof record};
}

template <class Record>
Record from_bytes(std::string_view bytes) {
    Record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
}

}  // namespace

std::vector<std::uint32_t> SnapshotRecords::stack(std::uint32_t number) const {
    const std::string_view bytes = stacks.text(number);
    std::vector<std::uint32_t> result(bytes.size() / sizeof(std::uint32_t));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
}

FrameRecord SnapshotRecords::frame(std::uint32_t number) const { return from_bytes<FrameRecord>(frames.text(number)); }

std::uint64_t SnapshotRecords::stream(std::uint32_t number) const {
    return from_bytes<std::uint64_t>(streams.text(number));
}

std::pair<std::int64_t, std::int64_t> SnapshotRecords::pool(std::uint32_t number) const {
    const auto pair = from_bytes<std::array<std::int64_t, 2>>(pools.text(number));
    return {pair[0], pair[1]};
}

std::uint16_t SnapshotSink::other_stream(std::int64_t handle) {
    const std::uint32_t number = records_.streams.intern_exact(as_bytes(handle));
    if (number >= kMaxStreams) throw Malformed{"more than 65535 streams", kEdited};
    has_stream_ = true;
    last_handle_ = handle;
    return last_stream_ = static_cast<std::uint16_t>(number);
}

std::uint16_t SnapshotSink::pool_number(std::int64_t first, std::int64_t second) {
    const std::uint32_t number = records_.pools.intern_exact(as_bytes(std::array<std::int64_t, 2>{first, second}));
    if (number >= kMaxPools) throw Malformed{"more than 65534 memory pools", kEdited};
    return static_cast<std::uint16_t>(number);
}

// A pool is a tuple of two integers; a list of two where the snapshot went through JSON.
std::uint16_t SnapshotSink::pool_plus_one(Value value) {
    if (value.is(ValueKind::none)) return 0;
    if (value.is(ValueKind::tuple) && value.payload() >= 0) return static_cast<std::uint16_t>(value.payload() + 1);
    if (value.is(ValueKind::list) && lists_.size(value.index()) == 2) {
        std::array<std::int64_t, 2> pair{};
        std::size_t at = 0;
        lists_.for_each(value.index(), [&](Value item) { pair[at++] = integer(item, "a pool's number"); });
        return static_cast<std::uint16_t>(pool_number(pair[0], pair[1]) + 1);
    }
    throw Malformed{fmt::format("a memory pool is {}, not a pair of integers", describe(value)), kEdited};
}

Value SnapshotSink::tuple(std::span<const Value> items) {
    if (items.size() == 2 && items[0].is(ValueKind::integer) && items[1].is(ValueKind::integer))
        return Value::of(ValueKind::tuple, pool_number(items[0].payload(), items[1].payload()));
    return Value::of(ValueKind::tuple, -1);
}

void SnapshotSink::append(std::uint32_t list, std::span<const Value> items) {
    if (list < uses_.size() && uses_[list].kind != ListUse::unused)
        throw Malformed{"a list grows after it was used", kEdited};
    lists_.append(list, items);
}

ListUse& SnapshotSink::use_of(std::uint32_t list) {
    if (list >= uses_.size()) uses_.resize(list + std::size_t{1}, ListUse{});
    return uses_[list];
}

// A frame is shared by many stacks; it is looked up once.
std::uint32_t SnapshotSink::frame_number(std::uint32_t frame) {
    if (frame >= frame_numbers_.size()) frame_numbers_.resize(frame + std::size_t{1}, kUnnumbered);
    std::uint32_t& number = frame_numbers_[frame];
    if (number == kUnnumbered) number = records_.frames.intern_exact(as_bytes(frames_[frame]));
    return number;
}

// A frame without a file is known by nothing when its dict is read; here it is one by its place.
std::uint32_t SnapshotSink::frame_of(Value item) {
    const Folded dict = folded(item);
    if (dict.kind() == Role::frame) [[likely]]
        return frame_number(dict.index());
    FrameRecord frame{no_text_, no_text_, kNoLine};
    if (dict.kind() == Role::generic) {
        std::vector<Value> items;
        generic_.for_each(dict.index(), [&](Value value) { items.push_back(value); });
        fold_frame(frame, items);
    }
    if (frame.function == no_text_)
        unread_.count("frame of a call stack that has no name", fmt::format("a frame is {}", describe(item)));
    return records_.frames.intern_exact(as_bytes(frame));
}

std::uint32_t SnapshotSink::stack_number(Value list) {
    if (list.is(ValueKind::none)) return kNoStack;
    if (!list.is(ValueKind::list)) {
        unread_.count("call stack that is no list", fmt::format("frames are {}", describe(list)));
        return kNoStack;
    }
    ListUse& use = use_of(list.index());
    if (use.kind == ListUse::stack) return use.first;
    if (use.kind != ListUse::unused) throw Malformed{"a call stack is also another list", kEdited};

    std::uint32_t number = kNoStack;
    if (lists_.size(list.index()) > 0) {
        FlatArray<std::uint32_t> stack;
        lists_.for_each(list.index(), [&](Value item) { stack.push_back(frame_of(item)); });
        number = records_.stacks.intern_exact(
            {reinterpret_cast<const char*>(stack.data()), stack.size() * sizeof(std::uint32_t)});
        if (number >= kNoStack) throw Malformed{"more than 2^28 call stacks", kEdited};
        lists_.drop(list.index());
    }
    use = {ListUse::stack, number, 0};
    return number;
}

// The old form of blocks (2.0): whoever used the block, the latest first.
Bytes SnapshotSink::latest_user(Value list, std::uint32_t& stack) {
    if (list.is(ValueKind::none)) return kNoSize;
    if (!list.is(ValueKind::list)) wrong_type("history", list, "a list");
    Bytes requested = kNoSize;
    bool first = true;
    lists_.for_each(list.index(), [&](Value item) {
        if (!std::exchange(first, false)) return;
        const Folded user = folded(item);
        if (user.kind() != Role::history) return;
        requested = histories_[user.index()].requested;
        stack = histories_[user.index()].stack;
    });
    return requested;
}

template <class Record>
ListUse SnapshotSink::range_of(Value list, Role role, FlatArray<Record>& records, const char* what) {
    if (!list.is(ValueKind::list)) wrong_type(what, list, "part of a list");
    ListUse& use = use_of(list.index());
    if (use.kind == ListUse::range) return use;
    if (use.kind != ListUse::unused && lists_.size(list.index()) > 0)
        throw Malformed{"a call stack is also another list", kEdited};

    ListUse range{ListUse::range, 0, 0};
    bool in_place = true;
    lists_.for_each(list.index(), [&](Value item) {
        const Folded record = folded(item);
        if (record.kind() != role) wrong_type(what, item, "a dict with the keys of one");
        if (range.count == 0) range.first = record.index();
        in_place = in_place && record.index() == range.first + range.count;
        ++range.count;
    });
    if (!in_place) {
        // Records shared with another list, or out of order: this list gets copies of its own.
        range.first = static_cast<std::uint32_t>(records.size());
        lists_.for_each(list.index(), [&](Value item) {
            const Record copy = records[folded(item).index()];
            records.push_back(copy);
        });
    }
    lists_.drop(list.index());
    return use = range;
}

template ListUse SnapshotSink::range_of(Value, Role, FlatArray<BlockRecord>&, const char*);
template ListUse SnapshotSink::range_of(Value, Role, FlatArray<EntryRecord>&, const char*);

}  // namespace fragsim
