// Hand-made cases for spec/cudamalloc-addresses.md, sections 1 and 2. Addresses are written as offsets from T = kTop;
// chunks are multiples of 32 MiB that go down from T - 512 MiB.
#include "lib/device/cuda_malloc_addresses.hpp"

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using test::bytes_of;

namespace {

class Heap {
public:
    explicit Heap(CudaMallocAddresses::Start start = CudaMallocAddresses::Start::fresh) : addresses_(start) {}

    // Where it went: bytes below T.
    Bytes malloc(std::string_view bytes) { return below_top(addresses_.malloc(bytes_of(bytes))); }
    void free(Bytes below, std::string_view bytes) {
        addresses_.free(CudaMallocAddresses::kTop - static_cast<Address>(below), bytes_of(bytes));
    }

    // Uses up the two holes that context creation leaves, so that only chunks made here are left.
    Heap& without_holes() {
        malloc("2M");
        malloc("24M");
        return *this;
    }
    const CudaMallocAddresses& addresses() const { return addresses_; }

private:
    static Bytes below_top(Address address) { return static_cast<Bytes>(CudaMallocAddresses::kTop - address); }

    CudaMallocAddresses addresses_;
};

constexpr Bytes kFirst = 512 * kMiB;  // the first chunk made ends here below T

}  // namespace

TEST_CASE("a fresh process has holes of 2 and 24 MiB, then chunks below 512 MiB", "[unit][addresses]") {
    Heap heap;
    CHECK(heap.malloc("2M") == 98 * kMiB);
    CHECK(heap.malloc("24M") == 24 * kMiB);
    CHECK(heap.malloc("2M") == kFirst + 32 * kMiB);
    CHECK(heap.malloc("2M") == kFirst + 30 * kMiB);
}

TEST_CASE("the smallest hole that fits is taken, at its lower end", "[unit][addresses]") {
    Heap heap;
    CHECK(heap.malloc("4M") == 24 * kMiB);
    CHECK(heap.malloc("20M") == 20 * kMiB);
}

TEST_CASE("streams use up the holes and leave the tail of a chunk", "[unit][addresses]") {
    Heap heap(CudaMallocAddresses::Start::extra_streams);
    CHECK(heap.malloc("2M") == kFirst + 26 * kMiB);
    CHECK(heap.malloc("24M") == kFirst + 24 * kMiB);
    CHECK(heap.malloc("2M") == kFirst + 64 * kMiB);
}

TEST_CASE("the newest chunk with room is used, however well an older one fits", "[unit][addresses]") {
    Heap heap;
    heap.without_holes();
    CHECK(heap.malloc("30M") == kFirst + 32 * kMiB);  // leaves exactly 2 MiB
    CHECK(heap.malloc("20M") == kFirst + 64 * kMiB);  // leaves 12 MiB
    CHECK(heap.malloc("2M") == kFirst + 44 * kMiB);   // of the newer one
    CHECK(heap.malloc("10M") == kFirst + 42 * kMiB);
    CHECK(heap.malloc("2M") == kFirst + 2 * kMiB);
}

TEST_CASE("inside a chunk the smallest range that fits is taken, among equals the lowest", "[unit][addresses]") {
    Heap heap;
    heap.without_holes();
    const Bytes a = heap.malloc("4M");
    heap.malloc("2M");
    const Bytes b = heap.malloc("4M");
    heap.malloc("2M");
    const Bytes c = heap.malloc("6M");
    heap.malloc("14M");
    heap.free(c, "6M");
    heap.free(b, "4M");
    heap.free(a, "4M");
    CHECK(heap.malloc("4M") == a);
    CHECK(heap.malloc("4M") == b);
    CHECK(heap.malloc("2M") == c);
}

TEST_CASE("a chunk is a multiple of 32 MiB, and its rest is one range", "[unit][addresses]") {
    Heap heap;
    heap.without_holes();
    CHECK(heap.malloc("33M") == kFirst + 64 * kMiB);  // 34 MiB of 64
    CHECK(heap.malloc("30M") == kFirst + 30 * kMiB);
}

TEST_CASE("freed neighbours of a chunk join; ranges of two chunks never do", "[unit][addresses]") {
    Heap heap;
    heap.without_holes();
    const Bytes a = heap.malloc("8M"), b = heap.malloc("8M");
    heap.malloc("16M");
    heap.free(a, "8M");
    heap.free(b, "8M");
    CHECK(heap.malloc("16M") == a);

    Heap two;
    two.without_holes();
    const Bytes upper = two.malloc("16M");  // upper chunk: 16 free at its upper end after the next
    two.malloc("16M");
    two.malloc("16M");  // lower chunk, directly below
    const Bytes lower = two.malloc("16M");
    two.free(upper, "16M");
    two.free(lower, "16M");
    CHECK(two.malloc("32M") == kFirst + 96 * kMiB);
}

TEST_CASE("an empty chunk is returned at once and its place can be taken again", "[unit][addresses]") {
    Heap heap;
    heap.without_holes();
    const Bytes only = heap.malloc("64M");
    heap.free(only, "64M");
    CHECK(heap.malloc("32M") == kFirst + 32 * kMiB);
}

TEST_CASE("a new chunk goes to the top of the highest hole that is larger than it", "[unit][addresses]") {
    Heap heap;
    heap.without_holes();
    const Bytes a = heap.malloc("32M"), b = heap.malloc("32M"), c = heap.malloc("32M");
    const Bytes d = heap.malloc("32M");
    CHECK(d == kFirst + 128 * kMiB);
    heap.free(b, "32M");
    CHECK(heap.malloc("32M") == kFirst + 160 * kMiB);  // a hole of exactly its size is passed over
    heap.free(c, "32M");
    CHECK(heap.malloc("32M") == b);                    // 64 MiB: the upper end
    CHECK(heap.malloc("32M") == kFirst + 192 * kMiB);  // what is left is exact again
    heap.free(a, "32M");
    CHECK(heap.malloc("64M") == kFirst + 256 * kMiB);
}

TEST_CASE("requests below 2 MiB share slabs of 2 MiB", "[unit][addresses]") {
    Heap heap;
    const Bytes slab = 98 * kMiB;
    CHECK(heap.malloc("1") == slab);
    CHECK(heap.malloc("1000") == slab - 512);
    CHECK(heap.malloc("2M-1536") == slab - 1536);  // fills it to the end
    CHECK(heap.malloc("512") == 24 * kMiB);
    CHECK(heap.malloc("2M") == 22 * kMiB);
    CHECK(heap.addresses().physical_bytes() == 6 * kMiB);
}

TEST_CASE("in slabs the smallest range is taken, among equals the one that is free longest", "[unit][addresses]") {
    Heap heap;
    std::vector<Bytes> piece;
    for (int i = 0; i < 8; ++i) piece.push_back(heap.malloc("512"));
    heap.free(piece[5], "512");
    heap.free(piece[1], "512");
    heap.free(piece[3], "512");
    CHECK(heap.malloc("512") == piece[5]);
    CHECK(heap.malloc("512") == piece[1]);
    CHECK(heap.malloc("512") == piece[3]);
}

TEST_CASE("a joined range of a slab counts as new", "[unit][addresses]") {
    Heap heap;
    std::vector<Bytes> piece;
    for (int i = 0; i < 10; ++i) piece.push_back(heap.malloc("512"));
    heap.free(piece[1], "512");
    heap.free(piece[4], "512");
    heap.free(piece[5], "512");  // joins with 4: 1024
    heap.free(piece[7], "512");
    heap.free(piece[8], "512");  // joins with 7: 1024, newer
    heap.free(piece[2], "512");  // joins with 1: 1024, newest
    CHECK(heap.malloc("1024") == piece[4]);
    CHECK(heap.malloc("1024") == piece[7]);
    CHECK(heap.malloc("1024") == piece[1]);
}

TEST_CASE("a slab with nothing in it goes back at once", "[unit][addresses]") {
    Heap heap;
    const Bytes a = heap.malloc("512"), b = heap.malloc("1M");
    heap.free(a, "512");
    CHECK(heap.addresses().physical_bytes() == 2 * kMiB);
    heap.free(b, "1M");
    CHECK(heap.addresses().physical_bytes() == 0);
    CHECK(heap.malloc("2M") == a);
}

TEST_CASE("what a request would cost is what it then costs", "[unit][addresses]") {
    CudaMallocAddresses addresses(CudaMallocAddresses::Start::fresh);
    for (const Bytes bytes :
        {Bytes{1}, kMiB, kMiB, Bytes{512}, 2 * kMiB, 2 * kMiB + 1, 3 * kMiB, 2 * kMiB - 512, Bytes{512}}) {
        const Bytes before = addresses.physical_bytes(), cost = addresses.physical_cost(bytes);
        addresses.malloc(bytes);
        CHECK(addresses.physical_bytes() == before + cost);
    }
}
