// Small random programs for comparing a policy with its reference, op by op.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim::test {

struct ReferenceOp {
    // a allocate; f free; w the program lets go and the free waits, c it completes; r it is used on a
    // stream, too; s synchronise; e empty_cache
    char kind;
    int id = 0;
    Bytes bytes = 0;
    int stream = 0;  // s: -1 is all of them
};
using ReferenceProgram = std::vector<ReferenceOp>;

// What a kind of program is made of.
struct ProgramShape {
    std::vector<Bytes> sizes;  // each request is one of these, one less, or something between it and half of it
    int streams = 1;
    bool waits = false, synchronizes = false, empties = false, records = false;
};
ReferenceProgram random_program(std::mt19937& random, const ProgramShape& shape, int ops);

// In the letters of tests/support/script.hpp.
std::string to_text(const ReferenceProgram& program);
ReferenceProgram parse_program(std::string_view text);

// What happened after each op: the place (number of the range got from the device, offset in it), the bytes set aside,
// and the bytes reserved.
std::vector<std::string> run_policy_on(
    const ReferenceProgram& program, const std::string& spec, std::optional<Bytes> capacity, Bytes card);
std::vector<std::string> run_reference_on(
    const ReferenceProgram& program, const std::string& spec, std::optional<Bytes> capacity, Bytes card);

// "": they agree. Otherwise the shortest program found on which they do not, and where.
std::string disagreement(ReferenceProgram program, const std::string& spec, std::optional<Bytes> capacity, Bytes card);

}  // namespace fragsim::test
