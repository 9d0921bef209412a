// Does a call come back? Runs it in a child process, so that a crash or an endless loop is a result and not the end of
// the test run.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

namespace fragsim::test {

// True when `call` returns or throws within five seconds; false when it kills the process.
template <class Call>
bool comes_back(Call&& call) {
    const pid_t child = fork();
    if (child == 0) {
        for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGTERM})
            std::signal(number, SIG_DFL);  // not Catch2's
        alarm(5);
        try {
            call();
        } catch (const std::exception&) {}
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace fragsim::test
