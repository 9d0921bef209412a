#include "lib/trace/call_site.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

Trace with_stack(std::vector<StackFrame> frames) {
    Trace trace;
    trace.frames = std::move(frames);
    for (std::uint32_t i = 0; i < trace.frames.size(); ++i) trace.stack_frames.push_back(i);
    trace.stack_begin = {0, static_cast<std::uint32_t>(trace.frames.size())};
    return trace;
}

}  // namespace

TEST_CASE("the call site is the innermost frame of the program itself", "[unit][call-site]") {
    CHECK(call_site(with_stack({{"at::empty", "Empty.cpp", 7},
                        {"forward", "/usr/lib/python3/dist-packages/torch/nn/linear.py", 114},
                        {"block", "/home/me/model/net.py", 31}, {"main", "/home/me/train.py", 80}}),
              {0}) == "net.py:31 block");
}

TEST_CASE("without a frame of the program the innermost Python frame counts, else the innermost", "[unit][call-site]") {
    CHECK(call_site(with_stack({{"at::empty", "Empty.cpp", 7}, {"step", "/x/site-packages/torch/optim/adam.py", 5}}),
              {0}) == "adam.py:5 step");
    CHECK(call_site(with_stack({{"at::empty", "Empty.cpp", 7}, {"main", "main.cpp", 1}}), {0}) ==
          "Empty.cpp:7 at::empty");
    CHECK(call_site(with_stack({{"at::empty", "", 0}}), {0}) == "at::empty");
}

TEST_CASE("an empty or unrecorded stack has no call site", "[unit][call-site]") {
    CHECK(call_site(with_stack({}), {0}) == "");
    CHECK(call_site(Trace{}, {}) == "");
}
