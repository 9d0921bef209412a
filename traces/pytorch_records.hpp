// A PyTorch memory snapshot as records of fixed size, without interpretation: what the file says, checked for type and
// range only.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/diagnostics.hpp"
#include "lib/core/types.hpp"
#include "lib/trace/flat_array.hpp"
#include "lib/trace/input.hpp"
#include "traces/intern_table.hpp"
#include "traces/pickle_value.hpp"
#include "traces/pytorch_rounding.hpp"

namespace fragsim {

inline constexpr Bytes kNoSize = -1;
inline constexpr Address kNoAddress = ~Address{0};
inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kNoLine = 0;  // as C++ frames have it that are not resolved
inline constexpr std::uint32_t kNoStack = (1u << 28) - 1;

enum class Action : std::uint8_t {
    unknown,
    alloc,
    free_requested,
    free_completed,
    free,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    snapshot,
    oom,
    annotate,
};

// 32 bytes: with the memo's 24 bytes an entry this is what reading a file costs.
struct EntryRecord {
    Bytes size = kNoSize;
    Address address = kNoAddress;  // oom: what the driver said was free
    std::int64_t time_us = kNoTime;
    std::uint32_t action : 4 = 0;
    std::uint32_t stack : 28 = kNoStack;
    std::uint16_t stream = 0;  // index into SnapshotRecords::streams
    std::uint16_t pool = 0;    // index into SnapshotRecords::pools plus 1; 0 when not recorded

    Action kind() const { return static_cast<Action>(action); }
};

enum class RecordedState : std::uint8_t { unknown, inactive, active_allocated, active_pending_free };

struct BlockRecord {
    Address address = kNoAddress;
    Bytes size = kNoSize;
    Bytes requested = kNoSize;
    Bytes last_user = kNoSize;  // requested bytes of the latest entry of `history`
    std::uint32_t stack = kNoStack;
    RecordedState state = RecordedState::unknown;
};

struct SegmentRecord {
    Address address = kNoAddress;
    Bytes size = kNoSize;
    std::int64_t device = 0;
    std::uint16_t stream = 0, pool = 0;  // pool as in EntryRecord
    bool small = false, expandable = false;
    std::uint32_t first_block = 0, block_count = 0;
};

struct FrameRecord {
    std::uint32_t function = 0, file = 0;  // strings
    std::int64_t line = 0;
};

struct AnnotationRecord {
    std::uint32_t stage = 0, name = 0;  // strings
    std::int64_t device = 0, time_us = 0;
};

struct HistoryRecord {
    Bytes requested = kNoSize;
    std::uint32_t stack = kNoStack;
};

// The parts of a document in one place. A stack is a list of frame numbers, a frame a FrameRecord, both kept as bytes.
struct SnapshotRecords {
    PickleValues values;
    FlatArray<EntryRecord> entries;
    FlatArray<BlockRecord> blocks;
    FlatArray<SegmentRecord> segments;
    FlatArray<AnnotationRecord> annotations;
    InternTable frames, stacks;
    InternTable streams;  // raw handles, eight bytes; 0 is 0
    InternTable pools;    // pairs of integers, sixteen bytes; 0 is (0, 0)

    std::string_view string(std::uint32_t number) const { return values.strings.text(number); }
    std::vector<std::uint32_t> stack(std::uint32_t number) const;  // frame numbers, innermost first
    FrameRecord frame(std::uint32_t number) const;
    std::uint64_t stream(std::uint32_t number) const;
    std::pair<std::int64_t, std::int64_t> pool(std::uint32_t number) const;
};

struct Recording;

inline constexpr std::size_t kMaxDevices = 1024;  // a node has 16; more is damage

struct Snapshot {
    struct Range {
        std::uint32_t first = 0, count = 0;
    };

    SnapshotRecords records;
    std::vector<Range> histories;         // by device ordinal, ranges of records.entries
    std::vector<std::uint32_t> segments;  // indices into records.segments, as listed
    std::vector<AnnotationRecord> annotations;
    bool has_settings = false;
    std::vector<std::pair<std::string, std::string>> settings;  // printed, in file order
    Bytes max_split_size = -1;                                  // -1: no limit
    RoundupDivisions roundup{};
    Diagnostics diagnostics;  // of the file's form

    std::span<const EntryRecord> history(std::size_t device) const {
        if (device >= histories.size()) return {};
        return {records.entries.data() + histories[device].first, histories[device].count};
    }
};

// Reads the whole input. Throws Error(input).
Snapshot read_snapshot(Input& input);

// What the records mean: a trace for each device. Throws Error(input) that names `file`.
Recording make_recording(Snapshot snapshot, const std::string& file);

}  // namespace fragsim
