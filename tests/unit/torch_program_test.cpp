// The environment variable of PyTorch's allocator settings, by the version and the build that read it.
#include "lib/policy/torch_program.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

TEST_CASE("the variable of the allocator's settings is spelled as the version reads it", "[unit][advice]") {
    for (const char* version : {"2.0", "2.1", "2.8", "2.8.1+cu128", "2.2 and later", "1.10 to 2.0", "1.3 and earlier"})
        CHECK(alloc_conf_variable({version}) == "PYTORCH_CUDA_ALLOC_CONF");
    for (const char* version : {"2.9", "2.9 and later", "2.10", "2.12", "2.13.0+cu130", "3.0"})
        CHECK(alloc_conf_variable({version}) == "PYTORCH_ALLOC_CONF");
    CHECK(alloc_conf_variable() == "PYTORCH_ALLOC_CONF");  // as the default version of the rules
    CHECK(alloc_conf_variable({"2.8", true}) == "PYTORCH_HIP_ALLOC_CONF");
    CHECK(alloc_conf_variable({"2.12", true}) == "PYTORCH_HIP_ALLOC_CONF");
}

TEST_CASE("every variable that could hold settings is known, so that all can be unset", "[unit][advice]") {
    using Names = std::vector<std::string_view>;
    CHECK(alloc_conf_variables({"2.8"}) == Names{"PYTORCH_CUDA_ALLOC_CONF"});
    CHECK(alloc_conf_variables({"2.11"}) == Names{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"});
    CHECK(alloc_conf_variables({"2.11", true}) ==
          Names{"PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"});
}
