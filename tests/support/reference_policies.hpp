// The policies that are not PyTorch's once more, written from spec/policies.md and spec/async-pool-rule.md to be
// obviously right and as slow as that makes it: maps, and every search a scan. They share no code with policies/ and
// serve as the oracle for it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lib/device/device.hpp"
#include "lib/policy/policy.hpp"

namespace fragsim::test {

class ReferencePolicy {
public:
    virtual ~ReferencePolicy() = default;
    // None: out of memory.
    virtual std::optional<Placement> allocate(int id, Bytes bytes, int stream) = 0;
    virtual void free(int id) = 0;                   // on the stream that allocated
    virtual void synchronize(std::optional<int>) {}  // none: all streams
    virtual void empty_cache() {}
    virtual void record_stream(int, int /*stream*/) {}
    virtual Bytes reserved() const = 0;
    // The program lets go of a buffer that other streams still use; free() comes when they are done.
    virtual void wait(int) {}
    // A request that fails while frees wait is tried again after all streams are synchronised.
    virtual bool tries_again() const { return true; }
    // What is done before that. True: it is tried again also if no free waits.
    virtual bool make_room() { return false; }
};

// Values as they are given to the policy of the same name; what is missing has the documented default.
struct ReferenceParameters {
    std::map<std::string, std::string> given;
    std::optional<Bytes> capacity;  // what the process may reserve

    Bytes number(const std::string& name, Bytes otherwise) const {
        return given.contains(name) ? std::stoll(given.at(name)) : otherwise;
    }
    double ratio(const std::string& name, double otherwise) const {
        return given.contains(name) ? std::stod(given.at(name)) : otherwise;
    }
    std::string word(const std::string& name, const std::string& otherwise) const {
        return given.contains(name) ? given.at(name) : otherwise;
    }
    bool flag(const std::string& name, bool otherwise) const {
        return word(name, otherwise ? "true" : "false") == "true";
    }
};

// `spec` as on the command line: "NAME[:key=value,...]". None: no reference of that name.
std::unique_ptr<ReferencePolicy> reference_policy(
    const std::string& spec, std::optional<Bytes> capacity, Device& device);
// The same behind the interface of a policy. Frees that wait are kept back until they complete, or until a request
// fails that is tried again: then all of them are given back first. Of the statistics, only the bytes reserved; no
// picture and no free sizes.
std::unique_ptr<Policy> reference_as_policy(const std::string& spec, std::optional<Bytes> capacity, Device& device);

}  // namespace fragsim::test
