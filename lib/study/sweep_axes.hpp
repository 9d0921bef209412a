// The axes of a sweep: which values one parameter of a policy, or a limit, takes in turn.
//
//   caching.max_split_size_mb=64              one value, as --policy takes it
//   caching.max_split_size_mb=[32,64,256]     each of them; commas and colons inside inner brackets belong to a value:
//   caching.roundup_power2_divisions=[4,[256:1,512:2,>:4]]
//   caching.max_split_size_mb=[20:100:10]     20, 30, ... 100: from, to (included), step; without a step 1
//   caching.max_split_size_mb=[32:512:*2]     32, 64, ... 512
//   capacity=[6GiB:12GiB:512MiB,none]         sizes; ranges and values mix
//   memory_limit=[80%,8GiB,none]              sizes, and shares of the capacity
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragsim {

struct SweepAxis {
    std::string policy;               // empty: a limit
    std::string parameter;            // "capacity" or "memory_limit" then
    std::vector<std::string> values;  // at least one, each once

    bool is_limit() const { return policy.empty(); }
};

// Throws Error(usage), also for a range without a value.
SweepAxis parse_sweep_axis(std::string_view text);

// The policies to run, as parse_policy_spec reads them, which also refuses what it does not know and what is set twice:
// each of `asked` with every combination of the axes of its name, the first axis changing slowest, then the policies
// that only axes name. Throws Error(usage) for two axes of one parameter.
std::vector<std::string> expand_policies(const std::vector<std::string>& asked, const std::vector<SweepAxis>& axes);

// How many runs that makes over `traces` traces, without making them; kUncountable: that many or more.
inline constexpr std::uint64_t kUncountable = 1'000'000'000'000'000'000;
std::uint64_t count_runs(std::size_t traces, const std::vector<std::string>& asked, const std::vector<SweepAxis>& axes);

}  // namespace fragsim
