#include "apps/fragsim/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lib/core/sizes.hpp"

namespace fragsim {
namespace {

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

}  // namespace

int stdout_width() {
    if (!stdout_is_terminal()) return 0;
    winsize size{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool use_color(ColorMode mode) {
    if (mode != ColorMode::automatic) return mode == ColorMode::always;
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return stdout_is_terminal() && !(no_color && *no_color) && !(term && std::string_view(term) == "dumb");
}

void print_diagnostic(const char* kind, const std::string& text) {
    std::fflush(stdout);
    fmt::print(stderr, "fragsim: {}: {}\n", kind, text);
}

ProgressLine::ProgressLine(std::string what, bool quiet)
    : what_(std::move(what)), enabled_(!quiet && isatty(STDERR_FILENO) == 1) {}

Progress ProgressLine::callback() {
    if (!enabled_) return {};
    return [this](std::uint64_t done, std::uint64_t total) {
        const auto now = Clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(100);
        shown_ = true;
        if (total > 0) {
            static constexpr std::size_t kBar = 24;
            const auto filled = static_cast<std::size_t>(kBar * done / total);
            fmt::print(stderr, "\r\x1b[K{}  [{:-<{}}] {} %", what_, std::string(filled, '#'), kBar, 100 * done / total);
        } else {
            fmt::print(stderr, "\r\x1b[K{}  {}", what_, format_size(static_cast<Bytes>(done)));
        }
        std::fflush(stderr);
    };
}

void ProgressLine::erase() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
    shown_ = false;
}

}  // namespace fragsim
