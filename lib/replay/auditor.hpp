// A second opinion: follows a replay with plain maps and checks what must always hold. It shares no code with the
// policies and believes nothing they say about themselves.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/replay/replay.hpp"

namespace fragsim {

enum class AuditRule {
    overlap,           // two live buffers share bytes
    not_reserved,      // a buffer lies outside the memory got from the device
    misaligned,        // an address is not a multiple of 512
    too_small,         // fewer bytes set aside than requested
    over_capacity,     // more reserved than allowed; the pages that a last map call rounds up to do not count
    wrong_statistics,  // a statistic differs from what the ops add up to
    released_in_use,   // a segment went back to the device with a live buffer in it
    bad_picture,       // the policy's own picture: blocks do not tile their segment, or do not add up
};
const char* name(AuditRule rule);

struct AuditFinding {
    AuditRule rule;
    std::uint32_t op;
    std::string what;
};

class Auditor final : public ReplayObserver {
public:
    // All must outlive this. `capacity`: what the policy may reserve. Start after the policy was restored, if it was;
    // `placed`: the buffers that it allocated for that.
    Auditor(const Trace& trace, const Policy& policy, const LoggedDevice& device, std::optional<Bytes> capacity,
        std::span<const std::pair<BufferId, Placement>> placed = {});

    void observe(const Step& step) override;
    void finish();  // checks the policy's picture; call once after the last step

    const std::vector<AuditFinding>& findings() const { return findings_; }

private:
    struct Range {
        Address end;
        BufferId buffer;
    };
    struct Alias {
        Address end, source;
    };
    struct Place {
        Address start, end;
    };

    void find(AuditRule rule, std::string what) { findings_.push_back({rule, op_, std::move(what)}); }
    void begin_with(const MemoryPicture& start);
    void place(BufferId buffer, const Placement& placement);
    void complete(BufferId buffer);
    void occupy(BufferId buffer, Address start, Address end);
    template <class Visit>
    void for_each_memory(Address start, Address end, Visit visit) const;
    void follow_device_calls();
    void map(Address start, Address end);
    void unmap(Address start, Address end);
    void expect_nothing_live(Address start, Address end);
    void check_statistics();

    const Trace& trace_;
    const Policy& policy_;
    const LoggedDevice& device_;
    std::optional<Bytes> capacity_;

    std::multimap<Address, Range> live_;    // by address, aliases looked through; pending ones included
    std::map<std::uint32_t, Place> where_;  // by buffer, as the program sees it
    std::map<Address, Alias> aliases_;      // by start
    std::vector<BufferId> pending_;         // free requested, perhaps complete by now
    std::map<Address, Address> segments_;   // start -> end
    std::map<Address, Address> mapped_;     // the same for memory mapped into reserved ranges; touching ranges are one
    std::int64_t waits_seen_;
    std::size_t calls_seen_ = 0;
    Bytes reserved_bytes_ = 0, active_bytes_ = 0, requested_bytes_ = 0;
    std::uint32_t op_ = 0;
    std::vector<AuditFinding> findings_;
};

}  // namespace fragsim
