#include "apps/fragsim/cost_profile.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

using Json = nlohmann::ordered_json;
using Profile = CostModel::Profile;

constexpr const char* kSchema = "fragsim.cost_profile";

// What a profile is made of, by the names in the file.
constexpr std::pair<const char*, CostCurve Profile::*> kCurves[] = {{"malloc", &Profile::malloc},
    {"free", &Profile::free}, {"reserve", &Profile::reserve}, {"unreserve", &Profile::unreserve},
    {"create", &Profile::create}, {"map", &Profile::map}, {"set_access", &Profile::set_access},
    {"unmap", &Profile::unmap}, {"release", &Profile::release}, {"pool_grow", &Profile::pool_grow}};
constexpr std::pair<const char*, double Profile::*> kPrices[] = {{"access_page_ns", &Profile::access_page_ns}, {"pool_hit_ns", &Profile::pool_hit_ns},
    {"pool_free_ns", &Profile::pool_free_ns}, {"pool_move_ns", &Profile::pool_move_ns},
    {"record_ns", &Profile::record_ns}, {"wait_ns", &Profile::wait_ns}, {"synchronize_ns", &Profile::synchronize_ns}};

CostCurve read_curve(const Json& json) {
    CostCurve curve;
    for (const Json& point : json) {
        curve.push_back(
            {point.at("bytes").get<Bytes>(), point.at("alone_ns").get<double>(), point.at("crowded_ns").get<double>()});
        const bool rising = curve.size() < 2 || curve[curve.size() - 2].bytes < curve.back().bytes;
        if (curve.back().bytes <= 0 || !rising) throw std::invalid_argument("sizes do not rise");
    }
    if (curve.empty()) throw std::invalid_argument("a curve has no points");
    return curve;
}

}  // namespace

std::string write_cost_profile(const Profile& profile, const std::string& card, const std::string& date) {
    Json json{{"schema", {{"name", kSchema}, {"version", "1.0.0"}}}, {"card", card}, {"date", date},
        {"curves", Json::object()}};
    for (const auto& [name, member] : kCurves) {
        Json& curve = json["curves"][name] = Json::array();
        for (const CostPoint& point : profile.*member)
            curve.push_back({{"bytes", point.bytes}, {"alone_ns", point.alone_ns}, {"crowded_ns", point.crowded_ns}});
    }
    for (const auto& [name, member] : kPrices) json[name] = profile.*member;
    return json.dump(1) + '\n';
}

Profile read_cost_profile(const std::string& path) {
    std::ifstream in(path);
    if (!in)
        throw Error(ErrorCode::input, fmt::format("{}: cannot be read", path), "fragsim calibrate -o FILE writes one");
    try {
        const Json json = Json::parse(in);
        if (json.at("schema").at("name") != kSchema) throw std::invalid_argument("it has another schema");
        Profile profile{};
        for (const auto& [name, member] : kCurves) profile.*member = read_curve(json.at("curves").at(name));
        for (const auto& [name, member] : kPrices) profile.*member = json.at(name).get<double>();
        return profile;
    } catch (const std::exception& fault) {
        throw Error(ErrorCode::input, fmt::format("{}: no cost profile: {}", path, fault.what()),
            "fragsim calibrate -o FILE writes one");
    }
}

}  // namespace fragsim
