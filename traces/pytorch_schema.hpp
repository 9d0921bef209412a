// What the keys of a PyTorch memory snapshot mean: dicts become records as soon as they are complete.
//
// A dict is known by one key: an entry of the history by `action`, a block by `state`, a segment by `total_size`, a
// frame by `filename`, an annotation by `stage`, a past user of a block by `real_size`. All other dicts (the document
// itself, whatever else a user put into it, the settings) are kept as they are. Unknown keys are ignored at every
// level, missing ones have a value that says so. What the memory does not depend on (times, call stacks, annotations)
// is never a reason to refuse a file: what cannot be read is unknown, and counted unless it says nothing. Call stacks
// are interned when something refers to them, whereupon the list of frames itself is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/trace/flat_array.hpp"
#include "traces/pickle.hpp"
#include "traces/pytorch_records.hpp"
#include "traces/sequence_table.hpp"

namespace fragsim {

inline constexpr const char* kEdited = "the snapshot is damaged or was edited";  // hint
inline constexpr Bytes kMaxBytes = Bytes{1} << 62;  // below it the sum of an address and a size can be represented

// A record is what a dict has become.
enum class Role : std::uint8_t { empty, generic, entry, block, segment, frame, annotation, history };

struct Folded {
    std::uint32_t bits = 0;  // role in the low 4 bits, index of the record above; the machine counts dicts to 2^28

    static Folded of(Role role, std::size_t index) {
        return {static_cast<std::uint32_t>(index) << 4 | static_cast<std::uint32_t>(role)};
    }
    Role kind() const { return static_cast<Role>(bits & 15); }
    std::uint32_t index() const { return bits >> 4; }
};

// What a list has been read as. It must not grow afterwards.
struct ListUse {
    enum Kind : std::uint32_t { unused, stack, range } kind = unused;
    std::uint32_t first = 0, count = 0;  // stack: `first` is its number
};

class SnapshotSink final : public PickleSink {
public:
    explicit SnapshotSink(SnapshotRecords& records);

    void set_items(std::uint32_t dict, std::span<const Value> items) override;
    void append(std::uint32_t list, std::span<const Value> items) override;
    Value tuple(std::span<const Value> items) override;

    // Reads the document's own keys, which fills `snapshot` up to its records. Throws Error(input) that names `file`.
    void finish(Value document, Snapshot& snapshot, const std::string& file);

private:
    void find_role(Folded& folded, std::span<const Value> items);
    Folded new_record(Role role);
    void fold(Folded folded, std::span<const Value> items);
    void fold_entry(EntryRecord& entry, std::span<const Value> items);
    void fold_block(BlockRecord& block, std::span<const Value> items);
    void fold_segment(SegmentRecord& segment, std::span<const Value> items);
    void fold_frame(FrameRecord& frame, std::span<const Value> items);
    void fold_annotation(AnnotationRecord& annotation, std::span<const Value> items);
    void fold_history(HistoryRecord& history, std::span<const Value> items);

    // Scalars. `what` names the key.
    std::int64_t integer(Value value, const char* what) const {
        if (value.is(ValueKind::integer)) [[likely]]
            return value.payload();
        return other_integer(value, what);
    }
    std::int64_t other_integer(Value value, const char* what) const;
    Bytes bytes(Value value, const char* what) const {
        const std::int64_t number = integer(value, what);
        if (static_cast<std::uint64_t>(number) >= static_cast<std::uint64_t>(kMaxBytes)) [[unlikely]]
            impossible(what, number);
        return number;
    }
    Address address(Value value, const char* what) const { return static_cast<Address>(bytes(value, what)); }
    [[noreturn]] static void impossible(const char* what, std::int64_t number);
    static std::uint32_t string(Value value, const char* what) {
        if (!value.is(ValueKind::string)) wrong_type(what, value, "a string");
        return value.index();
    }
    [[noreturn]] static void wrong_type(const char* what, Value value, const char* expected);
    // Scalars that the memory does not depend on: whatever they are, fractions rounded down, or nothing.
    std::optional<std::int64_t> number_if_any(Value value) const;
    std::int64_t time(Value value);
    std::uint32_t text(Value value) const { return value.is(ValueKind::string) ? value.index() : no_text_; }
    std::int64_t stream_handle(Value value) const;

    // Small tables.
    std::uint16_t stream_number(std::int64_t handle) {
        return handle == last_handle_ && has_stream_ ? last_stream_ : other_stream(handle);
    }
    std::uint16_t other_stream(std::int64_t handle);
    std::uint16_t pool_number(std::int64_t first, std::int64_t second);
    std::uint16_t pool_plus_one(Value value);

    // Lists.
    ListUse& use_of(std::uint32_t list);
    std::uint32_t frame_number(std::uint32_t frame);
    std::uint32_t frame_of(Value item);
    std::uint32_t stack_number(Value list);
    Bytes latest_user(Value list, std::uint32_t& stack);
    template <class Record>
    ListUse range_of(Value list, Role role, FlatArray<Record>& records, const char* what);
    Folded folded(Value value) const {
        return value.is(ValueKind::dict) && value.index() < dicts_.size() ? dicts_[value.index()] : Folded{};
    }

    void read_document(Value document, Snapshot& snapshot);
    void read_segments(Value list, Snapshot& snapshot) const;
    void read_histories(Value list, Snapshot& snapshot);
    void read_settings(Value dict, Snapshot& snapshot) const;
    void read_annotations(Value list, Snapshot& snapshot);
    RoundupDivisions roundup_divisions(Value dict) const;
    std::string print(Value value, bool nested) const;

    SnapshotRecords& records_;
    FlatArray<Folded> dicts_;  // by number of the dict
    SequenceTable generic_;    // keys and values of generic dicts, by Folded::index
    std::uint32_t generic_count_ = 0;
    SequenceTable lists_;      // by number of the list
    FlatArray<ListUse> uses_;  // likewise, as far as used
    FlatArray<FrameRecord> frames_;
    static constexpr std::uint32_t kUnnumbered = 0xffffffffu;
    FlatArray<std::uint32_t> frame_numbers_;  // of frames_ that stacks refer to, in records_.frames
    FlatArray<HistoryRecord> histories_;
    std::uint32_t no_text_ = 0;  // the string that stands for a name that is unknown
    Diagnostics unread_;         // what could not be read
    std::int64_t last_handle_ = 0;
    std::uint16_t last_stream_ = 0;
    bool has_stream_ = false;
};

}  // namespace fragsim
