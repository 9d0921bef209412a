#include "policies/fits/fit_policy.hpp"

namespace fragsim::fits {

std::vector<PolicyParameter> fit_parameters() {
    return {
        {"arena_bytes", "bytes", "0", "most that is reserved; 0: the capacity, or the card's memory"},
        {"growth", "extend|none|segment", "extend",
            "map the arena as its top rises, have it whole from the start, or get segments"},
        {"segment_bytes", "bytes", "20MiB", "growth=segment: the least that is got at once"},
        {"align_bytes", "bytes", "512", "sizes and addresses are multiples of it; a power of two"},
        {"min_split_bytes", "bytes", "0", "a smaller rest stays with the block; 0: align_bytes"},
    };
}

FitConfig read_fit_config(const ParameterReader& read, const PolicyContext& context) {
    FitConfig config{read.bytes("arena_bytes"), read.choice<Growth>("growth"), read.bytes("segment_bytes"),
        read.power_of_two("align_bytes", 1), read.bytes("min_split_bytes")};
    if (config.arena == 0) config.arena = context.budget();
    config.segment = round_up(std::max(config.segment, config.align), config.align);
    config.min_split = round_up(std::max(config.min_split, config.align), config.align);
    return config;
}

}  // namespace fragsim::fits
