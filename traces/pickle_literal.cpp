#include "traces/pickle_machine.hpp"

namespace fragsim {

// The common form of a dict, in one go: MARK, keys by reference each with a plain value, SETITEMS. Does only what the
// opcodes would do one by one, and stops before the first that it does not know; so the mark and the pairs that it
// leaves then are what the machine needs to go on.
PickleCursor PickleMachine::dict_literal(PickleCursor cursor) {
    auto [p, top] = cursor;
    const unsigned char* const limit = end_ - kMargin;
    if (end_ - p < kMargin || stack_end_ - top < static_cast<std::ptrdiff_t>(2 * DictShape::kMaxKeys)) return cursor;
    p = memoized(p, top[-1]);
    if (*p != static_cast<unsigned char>(Opcode::mark) || marks_.size() == kMaxMarks) return {p, top};
    ++p;
    Value* const first = top;
    marks_.push_back(static_cast<std::uint32_t>(top - stack_.data()));
    if (shape_.memo_replaced != memo_.replaced()) shape_ = {.keys = {}, .memo_replaced = memo_.replaced()};

    for (DictShape::Key& key : shape_.keys) {
        if (p > limit) break;
        const auto word = load<std::uint64_t>(p);
        if ((word & key.mask) != key.bytes && !look_up(key, word)) {
            if (*p != static_cast<unsigned char>(Opcode::setitems)) break;
            at_ = p;
            marks_.shrink(marks_.size() - 1);
            sink_.set_items(first[-1].index(), {first, top});
            return {p + 1, first};
        }
        *top++ = key.key;
        p += key.length;
        const unsigned char* const behind = plain_value(p, *top);
        if (behind == nullptr) break;
        p = behind;
        ++top;
    }
    return {p, top};
}

// Makes `key` the one that `word` refers to; false if it refers to none.
bool PickleMachine::look_up(DictShape::Key& key, std::uint64_t word) const {
    const auto opcode = static_cast<Opcode>(word & 0xff);
    if (opcode != Opcode::binget && opcode != Opcode::long_binget) return false;
    const std::ptrdiff_t length = opcode == Opcode::binget ? 2 : 5;
    const std::uint64_t mask = (std::uint64_t{1} << 8 * length) - 1;
    Value value;
    if (!memo_.get_plain((word & mask) >> 8, value)) return false;
    key = {word & mask, mask, length, value};
    return true;
}

// Puts `value` into the memo if the opcode at `p` says so, in the order in which picklers count; where that opcode
// ends.
FRAGSIM_INLINE inline const unsigned char* PickleMachine::memoized(const unsigned char* p, Value value) {
    switch (static_cast<Opcode>(*p)) {
        case Opcode::memoize: memo_.push(value); return p + 1;
        case Opcode::binput: return memo_.push_as(p[1], value) ? p + 2 : p;
        case Opcode::long_binput: return memo_.push_as(load<std::uint32_t>(p + 1), value) ? p + 5 : p;
        default: return p;
    }
}

// The value at `p` if it is a plain one; where it ends, or null. What varies from record to record (the width of a
// size, the width of a reference) is computed and not branched on, so that the branches repeat with every record.
FRAGSIM_INLINE inline const unsigned char* PickleMachine::plain_value(const unsigned char* p, Value& value) {
    const std::uint8_t opcode = *p;
    if (opcode == static_cast<std::uint8_t>(Opcode::long_binget))
        return memo_.get_plain(load<std::uint32_t>(p + 1), value) ? p + 5 : nullptr;
    if (opcode == static_cast<std::uint8_t>(Opcode::long1)) {
        const unsigned count = p[1];
        if (count - 1u >= 8u) return nullptr;
        const std::int64_t number = sign_extend(load<std::uint64_t>(p + 2), count);
        value = Value::of(ValueKind::integer, number);
        return value.payload() == number ? p + 2 + count : nullptr;
    }
    if (opcode - static_cast<unsigned>(Opcode::binint) <= 3u) {
        struct Layout {
            std::uint32_t mask, sign;
            std::uint64_t length;
        };
        static constexpr std::array<Layout, 4> kLayouts{
            {{0xffffffff, 0x80000000, 5}, {0xff, 0, 2}, {0, 0, 0}, {0xffff, 0, 3}}};
        const Layout& layout = kLayouts[opcode - static_cast<unsigned>(Opcode::binint)];
        if (layout.length == 0) return nullptr;  // LONG
        const std::int64_t bits = load<std::uint32_t>(p + 1) & layout.mask;
        value = Value::of(ValueKind::integer, (bits ^ layout.sign) - layout.sign);
        return p + layout.length;
    }
    if (opcode == static_cast<std::uint8_t>(Opcode::binget)) return memo_.get_plain(p[1], value) ? p + 2 : nullptr;
    if (opcode == static_cast<std::uint8_t>(Opcode::short_binunicode) ||
        opcode == static_cast<std::uint8_t>(Opcode::binunicode)) {
        const bool is_short = opcode == static_cast<std::uint8_t>(Opcode::short_binunicode);
        const std::ptrdiff_t count = is_short ? p[1] : load<std::uint32_t>(p + 1);
        const unsigned char* const text = p + (is_short ? 2 : 5);
        if (count > end_ - text - kMargin) return nullptr;
        value = values_.string(values_.strings.intern(text_at(text, static_cast<std::uint64_t>(count))));
        return memoized(text + count, value);
    }
    if (opcode == static_cast<std::uint8_t>(Opcode::newtrue) || opcode == static_cast<std::uint8_t>(Opcode::newfalse)) {
        value = Value::of(ValueKind::boolean, opcode == static_cast<std::uint8_t>(Opcode::newtrue));
        return p + 1;
    }
    return nullptr;
}

}  // namespace fragsim
