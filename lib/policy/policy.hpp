// A policy decides addresses. It sees sizes, streams and a device; no clock, no files, no recorded addresses.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/limits.hpp"
#include "lib/core/memory_picture.hpp"
#include "lib/core/types.hpp"
#include "lib/device/device.hpp"
#include "lib/policy/allocator_stats.hpp"
#include "lib/policy/torch_settings.hpp"

namespace fragsim {

struct Request {
    Bytes bytes;  // > 0
    StreamId stream;
    std::uint16_t pool = 0;  // memory pool: index into Trace::pools; 0 is the default one
};

// Why a segment cannot serve a request, whatever is free in it. With several reasons the first.
enum class Barrier : std::uint8_t {
    none,
    other_pool,        // it belongs to another memory pool
    other_stream,      // its memory is handed out on another stream only
    other_size_class,  // it holds blocks of other sizes only
};

struct Placement {
    Address address;
    Bytes allocated;  // bytes the policy sets aside for it, >= requested
};

// A parameter that sizes are compared with, and the values of it, in bytes, for which everything so far would have gone
// the same way: (above, up_to].
struct SameCourse {
    std::string_view parameter;
    Bytes above, up_to;
};

// One allocator at work on one device. Buffers are dense ids, so a policy finds a buffer's block by index.
//
// A free is requested, then completed: in between the memory belongs to nobody but may not be reused, because another
// stream may still work on it. Most frees are both at once.
class Policy {
public:
    virtual ~Policy() = default;

    // None: out of memory, after everything the policy does about it. `buffer` is not alive.
    virtual std::optional<Placement> allocate(BufferId buffer, const Request& request) = 0;

    // The program lets go and nothing else uses the memory.
    virtual void free(BufferId buffer) = 0;
    // The program lets go; the memory may be reused from free_completed(buffer) on, or from a point where the policy
    // itself waits for all streams. A completion that comes after such a point does nothing.
    virtual void free_requested(BufferId buffer) = 0;
    virtual void free_completed(BufferId buffer) = 0;

    // The buffer is used on another stream too.
    virtual void record_stream(BufferId, StreamId) {}
    // The program asks for cached memory to go back to the device.
    virtual void empty_cache() {}
    // Nothing of the program refers to a memory pool any more: what it has cached may go back with the rest.
    virtual void release_pool(std::uint16_t) {}
    // The cached memory of one pool goes back.
    virtual void empty_pool(std::uint16_t) {}
    // The program waited for a stream; none: for all of them.
    virtual void synchronize(std::optional<StreamId>) {}

    // Takes over the memory a recording begins with, before the first call. False: the policy cannot, and the live
    // buffers are allocated one by one instead.
    virtual bool restore(const MemoryPicture&) { return false; }

    virtual Bytes alignment() const { return 512; }  // every address and every allocated size is a multiple of it
    // What a request becomes before a block is looked for; the block may be larger.
    virtual Bytes rounded(Bytes requested) const { return round_up(requested, alignment()); }
    virtual const AllocatorStats& stats() const = 0;  // the same object all along
    virtual Bytes largest_free()
        const = 0;  // the largest free range inside reserved memory; cheap, asked after every op
    virtual void free_sizes(std::vector<Bytes>& out) const = 0;  // appends the size of every free range, in any order
    virtual MemoryPicture picture() const = 0;
    // What keeps the request from a segment of the picture; `request.bytes` 0: of any size. Most policies serve every
    // request from every segment.
    virtual Barrier barrier(const SegmentPicture&, const Request&) const { return Barrier::none; }
    // Pages of this size can be given back without the rest of the segment; 0: it goes back whole or not at all.
    virtual Bytes page_of(const SegmentPicture&) const { return 0; }

    // For each parameter of that kind; those that are not here may change the course at any value.
    virtual std::vector<SameCourse> same_course() const { return {}; }
};

struct PolicyParameter {
    std::string_view name;  // upstream's spelling
    std::string_view unit;  // "MiB", "bool", "version", ...
    std::string_view default_value;
    std::string_view description;
};

using Parameters = std::vector<std::pair<std::string, std::string>>;  // name, value; each name once

// When a buffer occupies its memory, in events of the trace: [begin, end). `end` is where its free completes, or past
// the last event.
struct Lifespan {
    std::uint32_t begin, end;
    Bytes bytes;  // as requested
};

struct PolicyContext {
    Device& device;
    Limits limits;                                     // the device keeps to device_bound() of them by itself
    std::vector<PoolName> pools;                       // by index; may be empty when there is only the default pool
    const std::vector<Lifespan>* lifespans = nullptr;  // by BufferId; for policies that ask for them

    // What there is for the policy at most.
    Bytes budget() const { return limits.bound().value_or(device.total_memory()); }
};

// Another way to run an allocator that is not PyTorch's, in the words that its users have for it.
struct OwnSetting {
    std::string name;    // a few words, for tables
    std::string policy;  // what models it, as --policy takes it
    struct Line {
        std::string program;  // whose users write it: "JAX"
        std::string text;     // what they write
    };
    std::vector<Line> lines;
    std::string note = {};     // what has to be known with it; a sentence without its full stop
    bool last_resort = false;  // costs more than is modelled
};

// A policy as the command line knows it: an entry of policies/policies.def.
struct PolicyInfo {
    std::string_view name;
    std::string_view summary;    // two lines for `list policies`
    std::string_view reference;  // where its rules come from
    std::vector<PolicyParameter> parameters;
    std::vector<std::string_view> required;  // parameters without a default
    // A parameter that stands for something nobody can know, and the value at the other end of what is possible.
    std::pair<std::string_view, std::string_view> other_bound;  // empty: none
    // Plans with full knowledge of the trace: PolicyContext::lifespans is there.
    bool offline = false;
    // Takes single pages or allocations from the device and gives them back, so that it is not bound to hold a
    // contiguous range and may reserve less than the best plan for one.
    bool remaps = false;
    // What the policy itself does about Limits::memory_limit. The device always keeps to the capacity.
    enum class MemoryLimit {
        unknown,   // nothing: the device refuses at the memory limit, too
        reserved,  // it refuses what would reserve more
        used,      // it refuses what would put more in use, whatever is reserved
    } memory_limit = MemoryLimit::unknown;
    // Where the device refuses.
    std::optional<Bytes> device_bound(const Limits& limits) const {
        return memory_limit == MemoryLimit::unknown ? limits.bound() : limits.capacity;
    }
    Bounds bounds(const Limits& limits) const {
        if (memory_limit == MemoryLimit::used) return {limits.capacity, limits.memory_limit};
        return {limits.bound(), {}};
    }
    // `given`: the parameters the user set, already known by name. Throws Error(usage) on bad values.
    std::function<std::unique_ptr<Policy>(const Parameters& given, const PolicyContext& context)> make;
    // The same settings as PyTorch would export them; empty: not a policy of PyTorch's.
    std::function<TorchSettings(const Parameters& given)> torch_settings;
    // The settings string that chooses the policy in a PyTorch program; empty: not a policy of PyTorch's.
    std::function<std::string(const Parameters& given)> alloc_conf;
    // What else its users can set, where it is not PyTorch's: in order of preference among equals. Empty: nothing is known.
    std::function<std::vector<OwnSetting>(std::optional<Bytes> capacity)> own_settings;
    // What the user should know about these settings: keys without effect, values read differently than they look.
    std::function<std::vector<std::string>(const Parameters& given, const Limits& limits)> advise;  // may be empty
};

// A policy and its parameters as asked for: "split-capped:max_split_size_mb=128".
struct PolicySpec {
    const PolicyInfo* info = nullptr;
    Parameters given;
    Parameters assumed = {};  // by the program, for want of better: the version a recording was made with

    std::string label() const;          // as the user would write it
    Parameters settings() const;        // given values, and assumed ones where none is given
    Parameters all_parameters() const;  // the same and defaults for the rest, in the policy's order

    // The same policy at the other end of what it assumes (PolicyInfo::other_bound); none: it assumes nothing, or the
    // user said what holds.
    std::optional<PolicySpec> other_end() const;

    // Sets a value that the user did not, if the policy has the parameter.
    void assume(std::string_view name, std::string_view value);
};

// Do both set the same? Policies of PyTorch's under several names are compared by what they set.
bool same_setting(const PolicySpec& a, const PolicySpec& b);

// Reads "NAME[:key=value,...]"; commas inside brackets belong to the value. Throws Error(usage), naming the closest
// known policy or parameter.
PolicySpec parse_policy_spec(std::string_view text, const std::vector<PolicyInfo>& known);

}  // namespace fragsim
