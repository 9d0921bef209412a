// Which requests a program may do without.
#include "lib/study/workspace.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// The first allocation has a stack of one frame.
Trace from(const std::string& function, const std::string& file, const std::string& text) {
    Trace trace = script(text);
    trace.frames = {{function, file, 1}};
    trace.stack_frames = {0};
    trace.stack_begin = {0, 1};
    trace.buffers[0].stack = StackId{0};
    return trace;
}

const char* const kSoon = "a 0 9M; f 0";
const char* const kWithin = "a 0 9M; a 1 1M; f 1; a 2 1M; f 2; f 0";  // five ops

}  // namespace

TEST_CASE("without a stack only what is freed at once is taken for a workspace", "[unit][workspace]") {
    CHECK(workspace_at(script(kSoon), 0)->ops == 1);
    CHECK(workspace_at(script(kSoon), 0)->library.empty());
    CHECK_FALSE(workspace_at(script(kWithin), 0));
    CHECK_FALSE(workspace_at(script("a 0 9M"), 0));  // never freed
}

TEST_CASE("a stack that names a library gives its workspace a few ops", "[unit][workspace]") {
    for (const char* function : {"at::native::raw_cudnn_convolution_forward_out(at::Tensor const&)",
             "at::native::miopen_convolution(at::Tensor const&)", "at::cuda::blas::cublasLt_workspace()",
             "at::cuda::hipblaslt_ext::run()"}) {
        INFO(function);
        const auto found = workspace_at(from(function, "??", kWithin), 0);
        REQUIRE(found);
        CHECK(found->ops == 5);
        CHECK(found->library == function);
    }
    CHECK(workspace_at(from("_conv_forward", "torch/nn/modules/conv.py", kWithin), 0));
}

TEST_CASE("a stack that names somebody else decides against it", "[unit][workspace]") {
    CHECK_FALSE(workspace_at(from("at::native::empty_like(at::Tensor const&)", "??", kSoon), 0));
    CHECK_FALSE(workspace_at(from("forward", "model.py", kWithin), 0));
    CHECK(workspace_at(from("forward", "model.py", kSoon), 0));  // Python does not say what it calls
}
