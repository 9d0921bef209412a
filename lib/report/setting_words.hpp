// How reports speak of settings of PyTorch's allocator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/limits.hpp"
#include "lib/policy/torch_program.hpp"
#include "lib/study/setting_outcome.hpp"

namespace fragsim {

std::string setting_label(const std::string& alloc_conf);  // itself, or "PyTorch's default"
std::string setting_label(const Setting& setting);         // that, or a name of it where it is none of PyTorch's

// "export PYTORCH_ALLOC_CONF=..."; for PyTorch's default, the line that goes back to it.
std::string setting_line(const std::string& alloc_conf, const TorchProgram& program = {});
// The lines to write, each with whose users write it; not empty.
std::vector<OwnSetting::Line> setting_lines(const Setting& setting, const TorchProgram& program);
// What has to be said with some of PyTorch's settings, where `before` was in force; sentences.
std::vector<std::string> setting_conditions(
    const std::string& alloc_conf, const std::string& before, const TorchProgram& program);
// The line of the program that makes a memory fraction of `limit`.
std::string fraction_line(std::optional<Bytes> limit);

// "if this is PyTorch's program, " before a sentence of advice, where nothing says so.
std::string supposing(const std::string& sentence, const TorchProgram& program);
// How to speak of what bounds the runs: the memory limit where there is one, else the card.
struct BoundWords {
    const char *name, *smallest, *within;
};
BoundWords bound_words(const Limits& limits);

std::string outcome_words(std::int64_t ooms);   // "fits", "3 OOM"
std::string outcome_words(const Trial& trial);  // the same, or "may fit, 3 OOM": the program may do without those

// Where a replay of a recording that starts in mid-run begins, and why there; "" when it starts from nothing.
std::string start_words(Start start);

}  // namespace fragsim
