// References of the classic fits, TLSF (spec/policies.md, section 5) and of no policy at all.
#include <bit>
#include <tuple>
#include <vector>

#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

class Arena : public ReferencePolicy {
public:
    Arena(const ReferenceParameters& p, Device& device)
        : device_(device), arena_(p.number("arena_bytes", total_of(p, device))), growth_(p.word("growth", "extend")),
          segment_(p.number("segment_bytes", 20 * kMiB)), align_(p.number("align_bytes", 512)),
          min_split_(std::max(p.number("min_split_bytes", 0), align_)) {}

    std::optional<Placement> allocate(int id, Bytes bytes, int) override {
        Bytes n = round_up(bytes, align_);
        auto place = find(n);
        if (!place) place = grow(n);
        if (!place) return {};
        const auto [start, size] = *free_.around(*place, n);
        if (const Bytes left = start + size - *place - n; left < min_split_) n += left;
        free_.take(*place, n);
        taken(*place, n, start + size);
        live_[id] = {*place, n};
        return live_[id];
    }
    void free(int id) override {
        const Placement block = live_.extract(id).mapped();
        free_.put(block.address, block.allocated);
        freed(free_.around(block.address, block.allocated)->first);
    }
    void empty_cache() override {
        if (growth_ == "segment") release_segments();
        if (growth_ == "extend" && !segments_.empty()) release_top();
    }
    Bytes reserved() const override {
        Bytes sum = 0;
        for (const auto& [start, size] : segments_) sum += size;
        return sum;
    }

protected:
    virtual std::optional<Address> find(Bytes n) = 0;
    virtual void taken(Address, Bytes, Address /* end of the range it was taken from */) {}
    virtual void freed(Address /* of the joined range */) {}

    FreeRanges free_;

private:
    void release_segments() {  // those that are free from end to end
        for (auto segment = segments_.begin(); segment != segments_.end();) {
            const auto [start, size] = *segment;
            const auto range = free_.ranges.find(start);
            if (range == free_.ranges.end() || range->second != size) {
                ++segment;
                continue;
            }
            free_.ranges.erase(range);
            device_.free(start, size, {});
            segment = segments_.erase(segment);
        }
    }
    void release_top() {  // what was mapped at once is unmapped at once, the latest first
        auto& [base, mapped] = *segments_.begin();
        while (!pieces_.empty()) {
            const Bytes piece = pieces_.back();
            const auto top = free_.around(base + mapped - piece, piece);
            if (top == free_.ranges.end()) return;
            const Address start = top->first;
            free_.take(base + mapped - piece, piece);
            device_.unmap(base + mapped - piece, piece, 2 * kMiB, {});
            mapped -= piece;
            pieces_.pop_back();
            if (start < base + mapped) freed(start);
        }
    }
    // Where n bytes fit in new memory: at the start of the free range that it makes or belongs to.
    std::optional<Address> grow(Bytes n) {
        if (growth_ == "none") return segments_.empty() && add_segment(arena_) ? find(n) : std::nullopt;
        if (growth_ == "segment") return add_segment(std::max(n, segment_));
        if (segments_.empty()) segments_[device_.reserve(arena_, {})] = 0;
        auto& [base, mapped] = *segments_.begin();
        Bytes tail = 0;
        for (const auto& [start, size] : free_.ranges)
            if (start + size == base + mapped) tail = size;
        const Bytes more = round_up(std::max<Bytes>(0, n - tail), 2 * kMiB);  // 0: the search missed the free end
        if (mapped + more > arena_ || !device_.map(base + mapped, more, 2 * kMiB, {})) return {};
        const Address start = base + mapped - tail;
        if (more > 0) {
            free_.put(base + mapped, more);
            mapped += more;
            pieces_.push_back(more);
            freed(start);
        }
        return start;
    }
    std::optional<Address> add_segment(Bytes bytes) {
        const auto got = device_.malloc(bytes, {});
        if (!got) return {};
        segments_[*got] = bytes;
        free_.put(*got, bytes);
        freed(*got);
        return got;
    }

    Device& device_;
    const Bytes arena_;
    const std::string growth_;
    const Bytes segment_;

protected:
    const Bytes align_;

private:
    const Bytes min_split_;
    std::map<Address, Bytes> segments_;  // start, bytes got; growth=extend: the one arena and how much of it is mapped
    std::vector<Bytes> pieces_;          // growth=extend: mapped one behind the other
    std::map<int, Placement> live_;
};

class Fit final : public Arena {
public:
    Fit(std::string kind, const ReferenceParameters& p, Device& device) : Arena(p, device), kind_(std::move(kind)) {}

private:
    std::optional<Address> find(Bytes n) override {
        if (kind_ == "best-fit") return free_.best(n);
        if (kind_ == "worst-fit") return free_.worst(n);
        if (kind_ == "first-fit") return free_.first(n);
        for (const auto& [start, size] : free_.ranges) {
            if (start < rover_ && rover_ + n <= start + size) return rover_;  // the part above the rover
            if (start >= rover_ && size >= n) return start;
        }
        return free_.first(n);
    }
    void taken(Address place, Bytes n, Address) override { rover_ = place + n; }

    std::string kind_;
    Address rover_ = 0;
};

class Tlsf final : public Arena {
public:
    Tlsf(const ReferenceParameters& p, Device& device)
        : Arena(p, device), sl_(static_cast<int>(p.number("sl_log2", 5))), exact_(p.flag("exact_class_scan", false)) {}

private:
    using Class = std::pair<Bytes, Bytes>;
    static int log2(Bytes n) { return 63 - std::countl_zero(static_cast<std::uint64_t>(n)); }
    Class class_of(Bytes n) const {
        const Bytes small = align_ << sl_;
        if (n < small) return {0, n / align_};
        const int f = log2(n);
        return {f - log2(small) + 1, (n >> (f - sl_)) - (Bytes{1} << sl_)};
    }
    Class search_class(Bytes n) const {
        if (n < align_ << sl_) return class_of(n);
        return class_of(n + (Bytes{1} << (log2(n) - sl_)) - 1);
    }
    std::optional<Address> find(Bytes n) override {
        // The head of the first list that is not empty: lowest class, newest in it.
        std::optional<std::tuple<Class, int, Address>> found;
        const auto consider = [&](Address start, Bytes size) {
            const std::tuple entry(class_of(size), -stamp_.at(start), start);
            if (!found || entry < *found) found = entry;
        };
        for (const auto& [start, size] : free_.ranges)
            if (class_of(size) >= search_class(n)) consider(start, size);
        if (!found && exact_)
            for (const auto& [start, size] : free_.ranges)
                if (size >= n) consider(start, size);
        return found ? std::optional(std::get<2>(*found)) : std::nullopt;
    }
    void taken(Address place, Bytes n, Address end) override {
        if (place + n < end) stamp_[place + n] = ++clock_;
    }
    void freed(Address start) override { stamp_[start] = ++clock_; }

    int sl_;
    bool exact_;
    int clock_ = 0;
    std::map<Address, int> stamp_;  // when the free range that starts there came to the head of its list
};

class Direct final : public ReferencePolicy {
public:
    explicit Direct(Device& device) : device_(device) {}
    std::optional<Placement> allocate(int id, Bytes bytes, int) override {
        const Bytes n = round_up(bytes, 512);
        const auto got = device_.malloc(n, {});
        if (!got) return {};
        live_[id] = {*got, n};
        return live_[id];
    }
    void free(int id) override {
        const Placement block = live_.extract(id).mapped();
        device_.free(block.address, block.allocated, {});
    }
    Bytes reserved() const override {
        Bytes sum = 0;
        for (const auto& [id, block] : live_) sum += block.allocated;
        return sum;
    }

private:
    Device& device_;
    std::map<int, Placement> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_arena_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    if (name == "direct") return std::make_unique<Direct>(device);
    if (name == "tlsf") return std::make_unique<Tlsf>(parameters, device);
    if (name.ends_with("-fit")) return std::make_unique<Fit>(name, parameters, device);
    return nullptr;
}

}  // namespace fragsim::test
