// What matters of a setting to whoever sets it, beside what it does.
#pragma once

namespace fragsim {

// In order of preference among equals: the least intrusive first.
enum class SettingKind {
    standard,    // nothing is set
    expandable,  // expandable segments, whatever else is set
    native,      // other keys of the native allocator
    async,       // another backend: the driver's pool
};

struct SettingTraits {
    SettingKind kind = SettingKind::standard;
    int entries = 0;                     // keys that are set; a list counts by its entries
    bool needs_memory_fraction = false;  // does nothing unless the program limits its memory, too
    bool last_resort = false;            // costs more than is modelled: only where nothing else carries the run
};

}  // namespace fragsim
