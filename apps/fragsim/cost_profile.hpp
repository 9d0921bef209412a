// What driver calls cost on a card, as a file: written by `calibrate`, read by --cost-profile.
#pragma once

#include <string>

#include "lib/device/cost_model.hpp"

namespace fragsim {

// `card`, `date`: where and when it was measured.
std::string write_cost_profile(const CostModel::Profile& profile, const std::string& card, const std::string& date);

// Throws Error(input) with the file's name and what is wrong.
CostModel::Profile read_cost_profile(const std::string& path);

}  // namespace fragsim
