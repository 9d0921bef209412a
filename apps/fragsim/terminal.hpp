// The terminal, judged stream by stream: is there one, how wide, may it be coloured; and a progress line on it.
#pragma once

#include <chrono>
#include <string>

#include "lib/trace/input.hpp"

namespace fragsim {

enum class ColorMode { automatic, always, never };

int stdout_width();              // columns; 0: not a terminal
bool use_color(ColorMode mode);  // on stdout

// Prints "fragsim: KIND: text" to stderr.
void print_diagnostic(const char* kind, const std::string& text);

// "reading run.pickle  45 %" on a terminal's stderr, from half a second on, erased at the end.
class ProgressLine {
public:
    explicit ProgressLine(std::string what, bool quiet);
    ~ProgressLine() { erase(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    Progress callback();  // valid as long as this
    void erase();

private:
    using Clock = std::chrono::steady_clock;
    std::string what_;
    bool enabled_;
    bool shown_ = false;
    Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(500);
};

}  // namespace fragsim
