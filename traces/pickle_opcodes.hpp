// The opcodes of the pickle protocols 0 to 5, with CPython's names (Lib/pickletools.py).
#pragma once

#include <cstdint>

namespace fragsim {

// clang-format off
enum class Opcode : std::uint8_t {
    mark = '(', stop = '.', pop = '0', pop_mark = '1', dup = '2',
    // Protocol 0: operands are text that ends with a newline.
    float_text = 'F', int_text = 'I', long_text = 'L', string_text = 'S', unicode_text = 'V', get_text = 'g', put_text = 'p',
    none = 'N', append = 'a', dict = 'd', list = 'l', setitem = 's', tuple = 't',
    // Protocol 1.
    binint = 'J', binint1 = 'K', binint2 = 'M', binfloat = 'G', binstring = 'T', short_binstring = 'U', binunicode = 'X',
    appends = 'e', setitems = 'u', empty_dict = '}', empty_list = ']', empty_tuple = ')',
    binget = 'h', long_binget = 'j', binput = 'q', long_binput = 'r',
    // Protocol 2.
    proto = 0x80, tuple1 = 0x85, tuple2 = 0x86, tuple3 = 0x87, newtrue = 0x88, newfalse = 0x89, long1 = 0x8a, long4 = 0x8b,
    // Protocol 3.
    binbytes = 'B', short_binbytes = 'C',
    // Protocol 4.
    short_binunicode = 0x8c, binunicode8 = 0x8d, binbytes8 = 0x8e, empty_set = 0x8f, additems = 0x90, frozenset = 0x91,
    memoize = 0x94, frame = 0x95,
    // Protocol 5.
    bytearray8 = 0x96,
    // Refused: they import, call, build, or need something outside the file.
    global = 'c', reduce = 'R', build = 'b', inst = 'i', obj = 'o', persid = 'P', binpersid = 'Q',
    newobj = 0x81, ext1 = 0x82, ext2 = 0x83, ext4 = 0x84, newobj_ex = 0x92, stack_global = 0x93,
    next_buffer = 0x97, readonly_buffer = 0x98,
};
// clang-format on

// The name of an opcode that is refused; null for every other byte.
inline const char* refused_name(std::uint8_t opcode) {
    switch (static_cast<Opcode>(opcode)) {
        case Opcode::global: return "GLOBAL";
        case Opcode::reduce: return "REDUCE";
        case Opcode::build: return "BUILD";
        case Opcode::inst: return "INST";
        case Opcode::obj: return "OBJ";
        case Opcode::persid: return "PERSID";
        case Opcode::binpersid: return "BINPERSID";
        case Opcode::newobj: return "NEWOBJ";
        case Opcode::ext1: return "EXT1";
        case Opcode::ext2: return "EXT2";
        case Opcode::ext4: return "EXT4";
        case Opcode::newobj_ex: return "NEWOBJ_EX";
        case Opcode::stack_global: return "STACK_GLOBAL";
        case Opcode::next_buffer: return "NEXT_BUFFER";
        case Opcode::readonly_buffer: return "READONLY_BUFFER";
        default: return nullptr;
    }
}

}  // namespace fragsim
