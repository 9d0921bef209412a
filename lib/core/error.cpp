#include "lib/core/error.hpp"

#include <fmt/format.h>

namespace fragsim {

void fail_assertion(const char* condition, const char* file, int line) {
    throw Error(ErrorCode::internal, fmt::format("{}:{}: broken invariant: {}", file, line, condition),
        "this is a bug in fragsim; please report it with the command and the trace");
}

}  // namespace fragsim
