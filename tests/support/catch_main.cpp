// Catch2 2.13 wants its main defined once; version 3 brings its own (linked as Catch2WithMain).
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
