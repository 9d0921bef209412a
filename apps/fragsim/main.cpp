// Errors become messages and exit statuses here and nowhere else.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/core/error.hpp"

namespace {

int exit_status(fragsim::ErrorCode code) {
    switch (code) {
        case fragsim::ErrorCode::usage: return 2;
        case fragsim::ErrorCode::input: return 3;
        case fragsim::ErrorCode::environment: return 4;
        case fragsim::ErrorCode::internal: return 70;
    }
    return 70;
}

int fail(const std::string& message, const std::string& hint, int status) {
    fragsim::print_diagnostic("error", message);
    if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    fragsim::install_interrupt_handler();
    try {
        return fragsim::run_command_line(argc, argv);
    } catch (const fragsim::Error& error) {
        return fail(error.what(), error.hint(), exit_status(error.code()));
    } catch (const std::bad_alloc&) {
        return fail("out of host memory", "", 4);
    } catch (const std::exception& error) {
        return fail(error.what(), "this is a bug in fragsim; please report it with the command and the trace", 70);
    }
}
