#include "lib/study/recommendation.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

namespace fragsim {
namespace {

constexpr double kEqualMemory = 0.01, kEqualStall = 0.4;  // single replays are off by as much, against measured ones
constexpr double kStallForAll = 50;  // what saving everything might cost, in multiples of the stall

using Indices = std::vector<std::size_t>;

double memory_of(const Standing& setting) {
    return setting.memory ? static_cast<double>(*setting.memory) : std::numeric_limits<double>::infinity();
}

class Ranking {
public:
    Ranking(const std::vector<Standing>& settings, const RankingRules& rules) : settings_(settings), rules_(rules) {}

    // Is `a` worth giving up `b` for?
    bool worth(std::size_t a, std::size_t b) const {
        const Standing &there = settings_[a], &here = settings_[b];
        if (there.refused) return false;
        if (there.failing != here.failing) return there.failing < here.failing;
        if (there.traits.last_resort) return false;
        if (rules_.stall_first) return there.stall_ns <= (1 - kEqualMemory) * here.stall_ns;
        return saves(there, here) && !larger_card(there, here) && !overpriced(there, here);
    }

    // Those that carry the most runs and, if there are any, need no larger card.
    Indices without_larger_cards(Indices among, std::size_t than) const {
        keep_least(among, [](const Standing& s) { return static_cast<double>(s.failing); });
        Indices kept = among;
        std::erase_if(kept, [&](std::size_t i) { return larger_card(settings_[i], settings_[than]); });
        return kept.empty() ? among : kept;
    }

    // `among` is not empty.
    std::size_t best(Indices among) const {
        const auto failing = [](const Standing& s) { return static_cast<double>(s.failing); };
        const auto entries = [](const Standing& s) { return static_cast<double>(s.traits.entries); };
        const auto stall = [](const Standing& s) { return s.stall_ns; };
        const auto reserved = [](const Standing& s) { return static_cast<double>(s.reserved); };
        const auto kind = [](const Standing& s) { return static_cast<double>(s.traits.kind); };
        keep_least(among, failing);
        keep_least(among, [](const Standing& s) { return s.traits.last_resort ? 1.0 : 0.0; });
        if (rules_.stall_first) {
            keep_least(among, stall, kEqualMemory);
            keep_least(among, entries);
            keep_least(among, memory_of, kEqualMemory);
        } else {
            drop_overpriced(among);
            keep_least(among, memory_of, kEqualMemory);
            keep_least(among, entries);
            keep_least(among, stall, kEqualStall, rules_.small_stall_ns);
        }
        keep_least(among, reserved, kEqualMemory);
        keep_least(among, kind);
        return *std::min_element(among.begin(), among.end(), [&](std::size_t a, std::size_t b) {
            const auto exact = [&](std::size_t i) {
                return std::tuple(memory_of(settings_[i]), settings_[i].stall_ns, settings_[i].reserved, i);
            };
            return exact(a) < exact(b);
        });
    }

private:
    // One per cent, and a difference that is there when both are printed in whole mebibytes.
    static bool saves(const Standing& a, const Standing& b) {
        if (!a.memory || !b.memory) return a.memory && !b.memory;
        return static_cast<double>(*a.memory) <= (1 - kEqualMemory) * static_cast<double>(*b.memory) &&
               round_up(*a.memory, kMiB) < round_up(*b.memory, kMiB);
    }
    static bool larger_card(const Standing& a, const Standing& b) { return a.card && b.card && *a.card > *b.card; }

    bool overpriced(const Standing& a, const Standing& b) const {
        if (a.stall_ns <= std::max(b.stall_ns + rules_.small_stall_ns, (1 + kEqualStall) * b.stall_ns)) return false;
        const double saved = b.memory ? 1 - memory_of(a) / static_cast<double>(std::max<Bytes>(1, *b.memory)) : 1;
        return a.stall_ns > b.stall_ns * (1 + kStallForAll * std::max(0.0, saved));
    }

    // The one with the least stall always stays.
    void drop_overpriced(Indices& among) const {
        const Indices all = among;
        std::erase_if(among, [&](std::size_t a) {
            return std::any_of(all.begin(), all.end(), [&](std::size_t b) {
                return settings_[b].traits.entries <= settings_[a].traits.entries &&
                       overpriced(settings_[a], settings_[b]);
            });
        });
    }

    // Those whose figure is the least, or as good as equal to it: by a part of it, or by no more than `small`.
    void keep_least(Indices& among, const std::function<double(const Standing&)>& figure, double part = 0,
        double small = 0) const {
        double least = std::numeric_limits<double>::infinity();
        for (const std::size_t i : among) least = std::min(least, figure(settings_[i]));
        const double most = std::max(least * (1 + part), least + small);
        std::erase_if(among, [&](std::size_t i) { return figure(settings_[i]) > most; });
    }

    const std::vector<Standing>& settings_;
    const RankingRules& rules_;
};

}  // namespace

Recommendation recommend(const std::vector<Standing>& settings, std::size_t in_force, const RankingRules& rules) {
    const Ranking ranking(settings, rules);
    Indices better, simple, extra;
    for (std::size_t i = 0; i < settings.size(); ++i) {
        if (settings[i].refused || settings[i].traits.needs_memory_fraction) continue;
        if (i != in_force && ranking.worth(i, in_force)) better.push_back(i);
        if (settings[i].traits.entries <= kSimpleEntries) simple.push_back(i);
    }
    Recommendation found{in_force, {}, {}};
    if (!better.empty()) found.best = ranking.best(ranking.without_larger_cards(std::move(better), in_force));
    if (!simple.empty()) found.simple = ranking.best(std::move(simple));
    for (std::size_t i = 0; i < settings.size(); ++i)
        if (settings[i].traits.needs_memory_fraction && settings[i].failing == 0 && i != in_force &&
            ranking.worth(i, found.best))
            extra.push_back(i);
    if (!extra.empty()) found.extra = ranking.best(ranking.without_larger_cards(std::move(extra), found.best));
    return found;
}

double small_stall_ns(double run_ns) { return std::max(1e6, run_ns / 1000); }

}  // namespace fragsim
