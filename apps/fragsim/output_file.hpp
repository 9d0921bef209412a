// A result file: refused if it exists (without force), created before the work, written aside and renamed when
// complete, removed when the program ends before that, also by Ctrl-C.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace fragsim {

class OutputFile {
public:
    // Throws Error(usage) if `path` exists and not `force`, Error(environment) if it cannot be created. "-": stdout.
    OutputFile(std::string path, bool force);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view text);
    void commit(bool quiet);  // says "wrote PATH" on stderr

private:
    std::string path_, aside_;
    std::FILE* file_ = nullptr;
};

// Writes to stdout. Throws Error(environment) if it cannot be written.
void write_stdout(std::string_view text);

// Removes unfinished result files and ends the program with status 130 on SIGINT and SIGTERM.
void install_interrupt_handler();

}  // namespace fragsim
