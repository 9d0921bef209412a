// The end of a search for settings: the few that are worth it get their smallest cards, and one is recommended.
#pragma once

#include "lib/study/recommendation.hpp"
#include "lib/study/tune.hpp"

namespace fragsim {

// How a setting that was tried stands against others. Without a card where one counts it stands behind all.
Standing standing_of(const Candidate& candidate, bool limited);

// Fills Tuning::best, simple, extra and the cards of all that a report shows, of a search that is done.
void choose_from(Tuning& tuning, const TuneTask& task);

}  // namespace fragsim
