#include "traces/pickle.hpp"

#include <algorithm>
#include <optional>

#include "traces/pickle_machine.hpp"
#include "traces/pickle_text.hpp"

namespace fragsim {

Value PickleMachine::execute() {
    const unsigned char* p = at_ = end_ = input_.data();
    Value* top = grow_stack(stack_.data());
    for (;;) {
        if (end_ - p < kMargin) [[unlikely]] {
            at_ = p;
            advance_to(p);
            input_.fill(static_cast<std::size_t>(kMargin));
            p = at_ = input_.data();
            end_ = p + input_.available();
            if (p == end_) truncated_at(end_ + 1);
        }
        if (top == stack_end_) [[unlikely]]
            top = grow_stack(top);  // no opcode pushes more than one value

        const unsigned char* const opcode = p++;
        switch (static_cast<Opcode>(*opcode)) {
            // References and numbers: the bulk of a snapshot.
            case Opcode::long_binget: {
                const auto index = load<std::uint32_t>(p);
                at_ = p += 4;
                *top++ = get(index);
                break;
            }
            case Opcode::binget: {
                const std::uint8_t index = *p++;
                at_ = p;
                *top++ = get(index);
                break;
            }
            case Opcode::binint:
                *top++ = Value::of(ValueKind::integer, load<std::int32_t>(p));
                p += 4;
                break;
            case Opcode::binint1: *top++ = Value::of(ValueKind::integer, *p++); break;
            case Opcode::binint2:
                *top++ = Value::of(ValueKind::integer, load<std::uint16_t>(p));
                p += 2;
                break;
            case Opcode::long1: {
                const std::uint8_t count = *p++;
                if (count - 1u < 7u) [[likely]] {  // 1 to 7 bytes: sign-extended by shifting
                    *top++ = Value::of(ValueKind::integer, sign_extend(load<std::uint64_t>(p), count));
                } else {
                    at_ = opcode;
                    p = demand(p, count);
                    *top++ = long_integer(p, count);
                }
                p += count;
                break;
            }
            case Opcode::short_binunicode:
            case Opcode::short_binstring: {
                at_ = opcode;
                const std::uint8_t count = *p++;
                p = demand(p, count);
                *top++ = values_.string(values_.strings.intern(text_at(p, count)));
                p += count;
                break;
            }
            case Opcode::memoize:
                at_ = opcode;
                need(top, 1);
                memo_.push(top[-1]);
                break;
            case Opcode::binput: {
                const std::uint8_t index = *p++;
                at_ = p;
                need(top, 1);
                put(index, top[-1]);
                break;
            }
            case Opcode::long_binput: {
                const auto index = load<std::uint32_t>(p);
                at_ = p += 4;
                need(top, 1);
                put(index, top[-1]);
                break;
            }

            // Containers.
            case Opcode::empty_dict: {
                at_ = opcode;
                *top++ = Value::of(ValueKind::dict, new_dict());
                const PickleCursor cursor = dict_literal({p, top});
                p = cursor.p;
                top = cursor.top;
                break;
            }
            case Opcode::empty_list:
                at_ = opcode;
                *top++ = Value::of(ValueKind::list, new_list());
                break;
            case Opcode::mark:
                if (marks_.size() == kMaxMarks) {
                    at_ = opcode;
                    damaged(fmt::format("nested more than {} deep", kMaxMarks));
                }
                marks_.push_back(static_cast<std::uint32_t>(top - stack_.data()));
                break;
            case Opcode::setitems: {
                at_ = opcode;
                const Value* first = pop_mark();
                const Value* last = top;
                top = const_cast<Value*>(first);
                need(top, 1);
                if ((last - first) % 2 != 0) damaged("a dict with a key that has no value");
                sink_.set_items(dict_number(top[-1]), {first, last});
                break;
            }
            case Opcode::setitem:
                at_ = opcode;
                need(top, 3);
                sink_.set_items(dict_number(top[-3]), {top - 2, top});
                top -= 2;
                break;
            case Opcode::appends:
            case Opcode::additems: {
                at_ = opcode;
                const Value* first = pop_mark();
                const Value* last = top;
                top = const_cast<Value*>(first);
                need(top, 1);
                append(top[-1], first, last);
                break;
            }
            case Opcode::append:
                at_ = opcode;
                need(top, 2);
                append(top[-2], top - 1, top);
                --top;
                break;
            case Opcode::dict: {
                at_ = opcode;
                Value* first = pop_mark();
                if ((top - first) % 2 != 0) damaged("a dict with a key that has no value");
                const std::uint32_t dict = new_dict();
                if (top != first) sink_.set_items(dict, {first, top});
                top = first;
                *top++ = Value::of(ValueKind::dict, dict);
                break;
            }
            case Opcode::list: {
                at_ = opcode;
                Value* first = pop_mark();
                const std::uint32_t list = new_list();
                if (top != first) sink_.append(list, {first, top});
                top = first;
                *top++ = Value::of(ValueKind::list, list);
                break;
            }
            case Opcode::tuple2:
            case Opcode::tuple1:
            case Opcode::tuple3: {
                at_ = opcode;
                const int count = *opcode - static_cast<int>(Opcode::tuple1) + 1;
                need(top, count);
                const Value made = make_tuple(top - count, top);
                top -= count;
                *top++ = made;
                break;
            }
            case Opcode::tuple: {
                at_ = opcode;
                Value* first = pop_mark();
                const Value made = make_tuple(first, top);
                top = first;
                *top++ = made;
                break;
            }
            case Opcode::empty_tuple:
                at_ = opcode;
                *top = make_tuple(top, top);
                ++top;
                break;
            case Opcode::empty_set: *top++ = Value::of(ValueKind::other); break;
            case Opcode::frozenset:
                at_ = opcode;
                top = pop_mark();
                *top++ = Value::of(ValueKind::other);
                break;

            // Constants and rarer scalars.
            case Opcode::none: *top++ = Value::of(ValueKind::none); break;
            case Opcode::newtrue: *top++ = Value::of(ValueKind::boolean, 1); break;
            case Opcode::newfalse: *top++ = Value::of(ValueKind::boolean, 0); break;
            case Opcode::binfloat:
                *top++ = values_.real(load_big_endian_double(p));
                p += 8;
                break;
            case Opcode::long4: {
                at_ = opcode;
                const auto count = load<std::int32_t>(p);
                p += 4;
                if (count < 0) damaged("an integer of negative length");
                p = demand(p, static_cast<std::uint64_t>(count));
                *top++ = long_integer(p, static_cast<std::uint64_t>(count));
                p += count;
                break;
            }
            case Opcode::binunicode:
            case Opcode::binstring: {
                at_ = opcode;
                const auto count = load<std::uint32_t>(p);
                p += 4;
                p = demand(p, count);
                *top++ = values_.string(values_.strings.intern(text_at(p, count)));
                p += count;
                break;
            }
            case Opcode::binunicode8: {
                at_ = opcode;
                const auto count = load<std::uint64_t>(p);
                p += 8;
                p = demand(p, count);
                *top++ = values_.string(values_.strings.intern(text_at(p, count)));
                p += count;
                break;
            }
            case Opcode::short_binbytes: {
                at_ = opcode;
                const std::uint64_t count = *p++;
                p = skip(p, count);
                *top++ = Value::of(ValueKind::other);
                break;
            }
            case Opcode::binbytes: {
                at_ = opcode;
                const std::uint64_t count = load<std::uint32_t>(p);
                p += 4;
                p = skip(p, count);
                *top++ = Value::of(ValueKind::other);
                break;
            }
            case Opcode::binbytes8:
            case Opcode::bytearray8: {
                at_ = opcode;
                const auto count = load<std::uint64_t>(p);
                p += 8;
                p = skip(p, count);
                *top++ = Value::of(ValueKind::other);
                break;
            }

            // Protocol 0.
            case Opcode::int_text:
            case Opcode::long_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<Value> value = parse_integer(text, values_);
                if (!value) damaged("text that is no integer");
                *top++ = *value;
                break;
            }
            case Opcode::float_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<double> value = parse_real(text);
                if (!value) damaged("text that is no float");
                *top++ = values_.real(*value);
                break;
            }
            case Opcode::string_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::string> plain = unquote(text);
                if (!plain) damaged("text that is no quoted string");
                *top++ = values_.string(values_.strings.intern_exact(*plain));
                break;
            }
            case Opcode::unicode_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::string> plain = unescape_unicode(text);
                if (!plain) damaged("text that is no escaped string");
                *top++ = values_.string(values_.strings.intern_exact(*plain));
                break;
            }
            case Opcode::put_text: {
                at_ = opcode;
                need(top, 1);
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::uint64_t> index = parse_index(text);
                if (!index) damaged("text that is no memo number");
                put(*index, top[-1]);
                break;
            }
            case Opcode::get_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::uint64_t> index = parse_index(text);
                if (!index) damaged("text that is no memo number");
                *top++ = get(*index);
                break;
            }

            // The machine itself.
            case Opcode::proto:
                at_ = ++p;
                if (p[-1] > 5) throw Malformed{fmt::format("pickle protocol {}", p[-1]), "protocols 0 to 5 are read"};
                break;
            case Opcode::frame:  // a hint for readers that fetch ahead
                p += 8;
                break;
            case Opcode::pop:
                at_ = opcode;
                if (top == bottom() && !marks_.empty()) {
                    pop_mark();
                } else {
                    need(top, 1);
                    --top;
                }
                break;
            case Opcode::pop_mark:
                at_ = opcode;
                top = pop_mark();
                break;
            case Opcode::dup:
                at_ = opcode;
                need(top, 1);
                *top = top[-1];
                ++top;
                break;
            case Opcode::stop:
                at_ = opcode;
                need(top, 1);
                advance_to(p);
                return top[-1];
            default: at_ = opcode; refuse(opcode, top);
        }
    }
}

void PickleMachine::refuse(const unsigned char* opcode, const Value* top) {
    const char* name = refused_name(*opcode);
    if (name == nullptr) damaged(fmt::format("unknown opcode 0x{:02x}", *opcode));

    std::string subject;
    const unsigned char* p = opcode + 1;
    switch (static_cast<Opcode>(*opcode)) {
        case Opcode::global:
        case Opcode::inst: {
            const std::string_view first = line(p);
            const std::string module(first);
            subject = fmt::format(" ({}.{})", module, line(after(first)));
            break;
        }
        case Opcode::stack_global:
            if (top - bottom() >= 2 && top[-1].is(ValueKind::string) && top[-2].is(ValueKind::string))
                subject = fmt::format(
                    " ({}.{})", values_.strings.text(top[-2].index()), values_.strings.text(top[-1].index()));
            break;
        default: break;
    }
    constexpr std::size_t kMaxSubject = 120;
    if (subject.size() > kMaxSubject) subject = subject.substr(0, kMaxSubject) + "...)";
    for (char& letter : subject)
        if (static_cast<unsigned char>(letter) < ' ') letter = '?';
    throw Malformed{fmt::format("opcode {}{} would run code", name, subject),
        "only plain data is read, as torch.cuda.memory._dump_snapshot writes it"};
}

std::string_view PickleMachine::line(const unsigned char* p) {
    std::size_t known = 0;
    for (;;) {
        p = demand(p, known + 1);
        const auto at_hand = static_cast<std::size_t>(end_ - p);
        const void* newline = std::memchr(p + known, '\n', at_hand - known);
        if (newline != nullptr)
            return text_at(p, static_cast<std::size_t>(static_cast<const unsigned char*>(newline) - p));
        known = at_hand;
    }
}

const unsigned char* PickleMachine::skip(const unsigned char* p, std::uint64_t count) {
    constexpr std::uint64_t kStep = 64 * 1024;
    while (count > 0) {
        const std::uint64_t step = std::min(count, kStep);
        p = demand(p, step) + step;
        count -= step;
    }
    return p;
}

// Two's complement, least byte first.
Value PickleMachine::long_integer(const unsigned char* from, std::uint64_t count) {
    const bool negative = count > 0 && (from[count - 1] & 0x80) != 0;
    const unsigned char filler = negative ? 0xff : 0x00;
    while (count > 0 && from[count - 1] == filler) --count;  // bytes that only repeat the sign
    if (count > 8) return values_.add_wide({0, negative, true});

    std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
    std::memcpy(&bits, from, count);
    if (!negative && bits > static_cast<std::uint64_t>(Value::kMaxPayload))
        return values_.add_wide({bits, false, false});
    if (negative && bits < (std::uint64_t{1} << 63)) return values_.add_wide({0, true, true});
    return values_.integer(static_cast<std::int64_t>(bits));
}

Value read_pickle(Input& input, PickleValues& values, PickleSink& sink) {
    return PickleMachine(input, values, sink).run();
}

}  // namespace fragsim
