// The strings that mean something in a PyTorch snapshot. They are interned first, in this order, so that a string's
// number is its Word and keys are compared as integers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "traces/pickle_value.hpp"

namespace fragsim {

#define FRAGSIM_SNAPSHOT_WORDS(WORD)                                                                               \
    /* actions, in the order of enum Action */                                                                     \
    WORD(alloc)                                                                                                    \
    WORD(free_requested) WORD(free_completed) WORD(free) WORD(segment_alloc) WORD(segment_free) WORD(segment_map)  \
        WORD(segment_unmap) WORD(snapshot) WORD(oom) WORD(annotate)                            /* top level */     \
        WORD(segments) WORD(device_traces) WORD(allocator_settings) WORD(external_annotations) /* entries */       \
        WORD(action) WORD(addr) WORD(device_free) WORD(size) WORD(stream) WORD(time_us) WORD(pool_id)              \
            WORD(frames) /* segments and blocks */                                                                 \
        WORD(device) WORD(address) WORD(total_size) WORD(segment_type) WORD(segment_pool_id) WORD(is_expandable)   \
            WORD(blocks) WORD(requested_size) WORD(state) WORD(history) WORD(real_size) WORD(small) WORD(inactive) \
                WORD(active_allocated) WORD(active_pending_free)                                                   \
                    WORD(active_awaiting_free) /* frames and annotations */                                        \
        WORD(name) WORD(filename) WORD(line) WORD(stage) WORD(forward_frames)

enum class Word : std::uint32_t {
#define FRAGSIM_WORD(word) word,
    FRAGSIM_SNAPSHOT_WORDS(FRAGSIM_WORD)
#undef FRAGSIM_WORD
};

inline constexpr auto kSnapshotWords = std::to_array<std::string_view>({
#define FRAGSIM_WORD(word) #word,
    FRAGSIM_SNAPSHOT_WORDS(FRAGSIM_WORD)
#undef FRAGSIM_WORD
});

// Nothing of interest, also not a string.
inline constexpr Word kNoWord{0xffffffffu};

constexpr Word word_of(Value key) { return key.is(ValueKind::string) ? static_cast<Word>(key.index()) : kNoWord; }

// Keys of the snapshot itself.
constexpr bool is_top_level(Word key) {
    return key == Word::segments || key == Word::device_traces || key == Word::allocator_settings ||
           key == Word::external_annotations;
}

}  // namespace fragsim
